"""Structured systems on an emulated device: a, b, c and the wires, against flat matrices and the CPU backend."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from emulation import EmulatedDevice
from handmade_templates import Recorder, Row, system
from test_structured import inputs, small
from test_structured_native import flat_products, instances, run_with, sha256_chain, values_for
from test_structured_prover import make_key, merkle, witness_of

import snarkline.backend.cuda.backend
import snarkline.backend.cuda.structured
from snarkline.backend.base import Domain
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.plan import MemoryPlan
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.groth16 import prove
from snarkline.groth16.products import assign
from snarkline.memory import Arena
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_form import SystemForm
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import StructuredWitness

COUNTS = [1, 2, 31, 32, 33, 63, 64, 65, 97, 257]
"""Instances: halves of words, words, and batches of eight words with some to spare."""


def domain_of(s: StructuredR1CS, spare: int = 0) -> Domain:
    """The least domain, or one that is 2^spare times as large."""
    return Domain(s.curve, (s.n_constraints + s.n_public).bit_length() + spare, 1)


def check(device: CudaBackend, cpu: CpuBackend, w: StructuredWitness, *, spare: int = 0, flat: bool = True) -> None:
    """Values of all wires, and a, b, c with their padding, are those of the CPU and of the matrices written out."""
    s = w.system
    domain = domain_of(s, spare)
    ours, theirs = (backend.evaluate_structured(w, domain) for backend in (device, cpu))
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine.form is expected.form
        assert np.array_equal(device._on_host(mine).limbs, expected.limbs)
    if flat:
        products = [device._on_host(v).limbs[: s.n_constraints] for v in ours[1:]]
        assert np.array_equal(np.array(products), flat_products(s, device._on_host(ours[0]).to_ints()))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("count", COUNTS)
def test_bits_elements_and_publics(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, count: int) -> None:
    s = small(curve, count)
    check(emulated, cpu, run_with(s, values_for(s, random.Random(count))), spare=count % 3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 33, 65])
def test_every_kind_of_row(emulated: CudaBackend, cpu: CpuBackend, seed: int, count: int) -> None:
    """Constants, sums of few and of many bits, coefficients of all sizes and both signs, elements, and mixtures."""
    s = instances(list(CURVES.values())[seed % 2], seed, count)
    check(emulated, cpu, run_with(s, values_for(s, random.Random(seed))))


@pytest.mark.parametrize("count", [1, 64, 65, 511, 513])
def test_bits_alone(emulated: CudaBackend, cpu: CpuBackend, count: int) -> None:
    s = instances(BN254, 1000 + count, count, bits_only=True)
    check(emulated, cpu, run_with(s, values_for(s, random.Random(count))))


def of_rows(curve: Curve, n_bits: int, rows: list[tuple[Row, Row, Row]], count: int = 40) -> StructuredR1CS:
    """`count` instances of these rows over their own bits (columns from 1 on) and one element behind them."""
    template = Recorder(curve, [True] * n_bits + [False], rows=rows).template("rows")
    base = [*range(1, 1 + n_bits), 1 + count * n_bits]
    runs = [(inputs(curve, count * n_bits, count), 1, [], []), (template, count, base, [n_bits] * n_bits + [1])]
    n = count * (n_bits + 1)
    return system(curve, 0, runs, list(range(1, 1 + n)), [True] * (count * n_bits) + [False] * count)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("all_ones", [False, True])
def test_sums_at_the_bounds(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, all_ones: bool) -> None:
    """Rows of just as many bits as a code holds, and one more; digits at both ends; sums below -2^256 and above."""
    bits = range(1, 131)
    sums: list[Row] = [
        dict.fromkeys(bits[:120], 1), dict.fromkeys(bits[:120], -1), {0: -60} | dict.fromkeys(bits[:60], -1),
        dict.fromkeys(bits[:121], 1), {i: 1 if i % 2 else -1 for i in bits}, {1: 120}, {1: 121}, {1: -120}, {0: 120},
        {i: (1 << 253) - 1 - i for i in bits}, dict.fromkeys(bits, -(1 << 252)), dict.fromkeys(bits, 1 << 31),
        {i: 1 << (2 * i % 252) for i in bits}, {i: -(1 << (i % 33 + 31)) for i in bits}, {131: 1}, {131: -1, 0: 5},
        {131: 7} | {i: 1 << i for i in bits}, {0: -1}, {0: curve.r // 3}, {}, {i: curve.r // 3 + i for i in bits[:7]},
    ]  # fmt: skip
    rows = [(sums[i], sums[i - 1], sums[i - 2]) for i in range(len(sums))] * 3
    s = of_rows(curve, len(bits), rows)
    given = values_for(s, random.Random(1))
    check(emulated, cpu, run_with(s, [1 if bit and all_ones else x for bit, x in zip(s.bits, given, strict=True)]))


@pytest.mark.slow
def test_sha256(emulated: CudaBackend, cpu: CpuBackend) -> None:
    s = sha256_chain(2)
    check(emulated, cpu, run_with(s, values_for(s, random.Random(3))))


def test_poseidon_merkle_paths(emulated: CudaBackend, cpu: CpuBackend) -> None:
    for curve in CURVES.values():
        check(emulated, cpu, witness_of(merkle(curve)))


def test_sums_in_pieces(emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many pieces as it takes to stay within so many sums, and one each where 64 instances have more."""
    s = instances(BN254, 2, 300)
    w = run_with(s, values_for(s, random.Random(2)))
    each = int(SystemForm.of(s).templates["n_sums"][1])
    for limit, pieces in ((1, 5), (64 * each, 5), (129 * each, 3), (300 * each, 1)):
        monkeypatch.setattr(snarkline.backend.cuda.structured, "SUMS_AT_ONCE", limit)
        device = CudaBackend(EmulatedDevice(), cpu)
        check(device, cpu, w, flat=False)
        assert device._device.driver.kernels().count("sum_items") == pieces  # type: ignore[attr-defined]


@pytest.mark.parametrize("keep", [True, False])
def test_the_structure_stays_as_the_plan_says(cpu: CpuBackend, keep: bool) -> None:
    backend = CudaBackend(EmulatedDevice(), cpu)
    backend.plan = MemoryPlan(True, keep, 1 << 20, 1 << 30)
    s = small(BLS12_381, 70)
    w = run_with(s, values_for(s, random.Random(0)))
    check(backend, cpu, w)
    uploads = backend._device.driver.names().count("to_device")  # type: ignore[attr-defined]
    check(backend, cpu, w)
    again = backend._device.driver.names().count("to_device") - uploads  # type: ignore[attr-defined]
    assert (again == 3) is keep  # the packed witness


@pytest.mark.parametrize("make", [lambda: instances(BN254, 3, 300), lambda: merkle(BN254), lambda: small(BN254, 1)])
def test_bounds_of_the_bytes_on_the_device(cpu: CpuBackend, make: Callable[[], StructuredR1CS]) -> None:
    s = make()
    backend, w = CudaBackend(EmulatedDevice(), cpu), run_with(s, values_for(s, random.Random(0)))
    before = backend._device.used_bytes()
    there = backend._system(s)
    matrices = StructuredMatrices(s)
    held = backend._device.used_bytes() - before
    assert held <= matrices.structure_bytes + 2 * 8192 + 20 * 512  # tables of integers; allocations are rounded up
    assert w.nbytes <= matrices.packed_bytes <= 2 * w.nbytes
    assert there.n_rows == s.n_constraints


def test_sums_of_a_proof_from_a_packed_witness(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 1 << 20)  # sums are not what is tested
    s = merkle(BN254, 1)
    key, w = make_key(s), witness_of(s)
    assert key.matrices is not None
    for witness in (w, w.expand()):
        products = assign(key.matrices, witness, threads=2, arena=Arena()).products
        assert prove.start(emulated, key, products) == prove.start(cpu, key, products)
