"""On a real GPU: `pytest -m gpu tests/cuda`. Every kernel against its emulation, every operation against the CPU."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lockstep import LockstepDevice
from test_device_program import SHAPES, given_for, of_steps, powers, sums, tree
from test_device_program import check as check_program
from test_device_structured import check as check_structured
from test_digits import KINDS, check_sort
from test_emulated import CURVES, check_msm, domain, elements, ints, scalars_of
from test_structured_native import instances, run_with, sha256_chain, values_for
from test_structured_prover import make_key, merkle, witness_of

import snarkline.backend.cuda.backend
import snarkline.backend.cuda.buckets
import snarkline.backend.cuda.msm
import snarkline.backend.cuda.program
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend, open_device
from snarkline.curves.curve import BLS12_381, Curve, Group
from snarkline.curves.point import Point
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import DeviceError
from snarkline.groth16.prover import Prover
from snarkline.memory import Arena

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> CudaBackend:
    try:
        device = open_device()
    except DeviceError:
        pytest.skip("no CUDA device")
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    return CudaBackend(device, CpuBackend(4, Arena()))


@pytest.fixture
def cpu() -> CpuBackend:
    return CpuBackend(4, Arena())


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("log_size", [0, 1, 2, 3, 7, 11, 12, 16, 20, 21])
def test_transforms(gpu: CudaBackend, cpu: CpuBackend, curve: Curve, log_size: int) -> None:
    d = domain(curve, log_size)
    data = np.resize(elements(curve, min(d.size, 4096)).limbs, (d.size, 4))
    for run in (
        lambda b, v: b.ntt(v, d, shift=7),
        lambda b, v: b.ntt(v, d, inverse=True, shift=7),
        lambda b, v: b.coset_evaluations(v, d, 7),
    ):
        mine, theirs = (run(b, FrVector(curve, data.copy(), Form.MONTGOMERY)) for b in (gpu, cpu))
        assert np.array_equal(gpu._on_host(mine).limbs, theirs.limbs)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("group", list(Group))
@pytest.mark.parametrize("least", [20, 200_000])
def test_msm(
    gpu: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, curve: Curve, group: Group, least: int
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.msm, "MIN_ADDITIONS", least)
    check_msm(gpu, cpu, curve, group)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("group", list(Group))
@pytest.mark.parametrize("n", [2**12 - 1, 2**12, 2**12 + 1, 2**16])
def test_every_number_of_windows(
    gpu: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, curve: Curve, group: Group, n: int
) -> None:
    rng = np.random.default_rng(n)
    limbs = rng.integers(0, 2**64, (n, 4), dtype=np.uint64)
    limbs[:, 3] %= np.uint64(curve.r >> 192)
    scalars = FrVector(curve, limbs, Form.CANONICAL)
    table = cpu.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, range(1, n + 1)))
    expected = cpu.msm([table], scalars)
    for count in range(13, 32):
        monkeypatch.setattr(snarkline.backend.cuda.buckets, "best_count", lambda curve, n, count=count: count)
        assert gpu.msm([table], scalars) == expected, count


@pytest.mark.parametrize("form", list(Form), ids=lambda form: form.name)
@pytest.mark.parametrize("kind", list(KINDS))
def test_digits_are_sorted(gpu: CudaBackend, kind: str, form: Form) -> None:
    for n in (1, 2, 3, 1025, 17 << 10, (17 << 10) + 1):
        rng = random.Random(n)
        scalars = [KINDS[kind](BLS12_381)(rng) for _ in range(n)]
        if any(scalars):
            check_sort(gpu._device, BLS12_381, scalars, form)


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_structured_systems(gpu: CudaBackend, cpu: CpuBackend, curve: Curve) -> None:
    both = CudaBackend(LockstepDevice(gpu._device), cpu)
    for seed in range(4):
        for count in (1, 31, 33, 65, 300):
            for bits_only in (False, True):
                s = instances(curve, seed, count, bits_only=bits_only)
                w = run_with(s, values_for(s, random.Random(seed)))
                check_structured(gpu, cpu, w, spare=seed % 2)
                if count == 33:
                    check_structured(both, cpu, w)
    check_structured(gpu, cpu, witness_of(merkle(curve)))


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_witness_programs(gpu: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, curve: Curve) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.program, "FEW", 0)
    both = CudaBackend(LockstepDevice(gpu._device), cpu)
    for seed in range(4):
        check_program(both, cpu, given_for(of_steps(curve, seed, 5, table=seed == 0), seed))
        for count in (1, 33, 300, 5000):
            check_program(gpu, cpu, given_for(of_steps(curve, seed, count), seed))
        for bits_only in (False, True):
            check_program(both, cpu, given_for(instances(curve, seed, 5, bits_only=bits_only), seed))
            for count in (1, 33, 64, 513):
                check_program(gpu, cpu, given_for(instances(curve, seed, count, bits_only=bits_only), seed))
    for s in (sums(curve, 70, SHAPES), powers(curve, 35)):
        check_program(gpu, cpu, given_for(s, 1))
    for leaves in (2, 64, 4096):
        check_program(gpu, cpu, given_for(tree(curve, leaves), leaves))


def test_a_proof_from_inputs(gpu: CudaBackend) -> None:
    system = tree(CURVES[0], 256)
    key, given = make_key(system), given_for(system, 1)
    proofs = []
    for backend in ("cpu", "cuda"):
        with Prover(key, r1cs=system, backend=backend, threads=2) as prover:
            proofs.append(prover.prove(given, blinding_for_tests=(3, 5)))
    assert proofs[0] == proofs[1]


def test_a_sha256_chain(gpu: CudaBackend, cpu: CpuBackend) -> None:
    s = sha256_chain(66)
    check_structured(gpu, cpu, run_with(s, values_for(s, random.Random(7))), flat=False)


def test_a_proof_from_a_packed_witness(gpu: CudaBackend) -> None:
    system = merkle(CURVES[0])
    key, witness = make_key(system), witness_of(system)
    proofs = []
    for backend in ("cpu", "cuda"):
        with Prover(key, r1cs=system, backend=backend, threads=2) as prover:
            proofs.append(prover.prove(witness, blinding_for_tests=(3, 5)))
    assert proofs[0] == proofs[1]


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("group", list(Group))
def test_kernels_are_their_emulation(
    gpu: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, curve: Curve, group: Group
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.msm, "MIN_ADDITIONS", 20)
    both = CudaBackend(LockstepDevice(gpu._device), cpu)
    for kind, n in (("random", 1 + 1), ("random", 200), ("bits", 250), ("equal", 100)):
        scalars = FrVector.from_ints(curve, scalars_of(kind, curve, n))
        table = cpu.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, range(1, n + 1)))
        assert both.msm([table], scalars) == cpu.msm([table], scalars)
    d = domain(curve, 9)
    assert ints(both, both.coset_evaluations(elements(curve, d.size), d, 7)) == ints(
        gpu, gpu.coset_evaluations(elements(curve, d.size), d, 7)
    )
    scalars = FrVector.from_ints(curve, scalars_of("edges", curve, 40))
    base = Point.generator(curve, group)
    assert np.array_equal(both.fixed_base(base, scalars).limbs, cpu.fixed_base(base, scalars).limbs)
