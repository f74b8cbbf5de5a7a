"""The kernels, run by the processor, against the CPU backend: every operation, inputs biased to the edges."""

from __future__ import annotations

import random

import numpy as np
import pytest

import snarkline.backend.cuda.msm
import snarkline.backend.cuda.ntt
import snarkline.backend.cuda.sums
from snarkline.backend.base import Domain
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.inverse import invert_planes, scratch_elements
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.pairing import negate
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, ints_to_limbs, limbs_to_ints
from snarkline.r1cs.matrices import SparseMatrix

CURVES = [BN254, BLS12_381]


def domain(curve: Curve, log_size: int) -> Domain:
    return Domain(curve, log_size, pow(curve.generator, (curve.r - 1) >> log_size, curve.r))


def elements(curve: Curve, n: int, seed: int = 1) -> FrVector:
    rng = random.Random(seed)
    edges = [0, 1, curve.r - 1, curve.r // 2, 1 << 64, (1 << 64) - 1]
    values = [rng.choice(edges) if rng.random() < 0.3 else rng.randrange(curve.r) for _ in range(n)]
    return FrVector.from_ints(curve, values, Form.MONTGOMERY)


def ints(backend: CudaBackend, v: FrVector) -> list[int]:
    return backend._on_host(v).to_ints()


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("log_size", [0, 1, 2, 3, 4, 5, 6, 8])
def test_transforms(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, log_size: int) -> None:
    d = domain(curve, log_size)
    for run in (
        lambda b, v: b.ntt(v, d),
        lambda b, v: b.ntt(v, d, shift=7),
        lambda b, v: b.ntt(v, d, inverse=True),
        lambda b, v: b.ntt(v, d, inverse=True, shift=7),
        lambda b, v: b.coset_evaluations(v, d, 7),
    ):
        assert ints(emulated, run(emulated, elements(curve, d.size))) == run(cpu, elements(curve, d.size)).to_ints()


@pytest.mark.parametrize("sizes", [[3, 3], [5, 4], [3, 4, 3], [4, 3, 5]], ids=str)
def test_transforms_of_several_passes(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    # Passes of so few rows are not chosen otherwise.
    monkeypatch.setattr(snarkline.backend.cuda.ntt, "pass_sizes", lambda log_n: sizes)
    monkeypatch.setattr(snarkline.backend.cuda.ntt, "LOG_MIN_TILE", 5)
    d = domain(BLS12_381, sum(sizes))
    v = emulated.coset_evaluations(elements(BLS12_381, d.size), d, 7)
    assert ints(emulated, v) == cpu.coset_evaluations(elements(BLS12_381, d.size), d, 7).to_ints()
    v = emulated.ntt(elements(BLS12_381, d.size), d, shift=5)
    assert ints(emulated, v) == cpu.ntt(elements(BLS12_381, d.size), d, shift=5).to_ints()


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("n", [1, 2, 3, 31, 33])
def test_elementwise(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, n: int) -> None:
    a, b, c = (lambda s=s: elements(curve, n, s) for s in (1, 2, 3))
    assert ints(emulated, emulated.add(a(), b())) == cpu.add(a(), b()).to_ints()
    assert ints(emulated, emulated.multiply(a(), b())) == cpu.multiply(a(), b()).to_ints()
    expected = cpu.multiply_subtract(a(), b(), c()).to_ints()
    assert ints(emulated, emulated.multiply_subtract(a(), b(), c())) == expected
    assert ints(emulated, emulated.scale(a(), curve.r - 2)) == cpu.scale(a(), curve.r - 2).to_ints()
    assert ints(emulated, emulated.powers(curve, n, 5, curve.r - 3)) == cpu.powers(curve, n, 5, curve.r - 3).to_ints()
    index = np.array([n - 1, 0, n // 2], np.uint32)
    assert ints(emulated, emulated.select(a(), index)) == cpu.select(a(), index).to_ints()


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_matrices(emulated: CudaBackend, cpu: CpuBackend, curve: Curve) -> None:
    rng = np.random.default_rng(4)
    lengths = [0, 1, 3, 200, 0, 64, 65]  # rows for a thread and rows for a block
    row_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    n = int(row_start[-1])
    matrix = SparseMatrix(
        n_columns=40,
        row_start=row_start,
        column=rng.integers(0, 40, n, dtype=np.uint32),
        value=rng.integers(0, 5, n, dtype=np.uint32),
        coefficients=FrVector.from_ints(curve, [1, -1, 2, 7, curve.r // 3], Form.MONTGOMERY),
    )
    w = FrVector.from_ints(curve, [i % 3 if i % 4 else curve.r - i for i in range(40)])
    d = domain(curve, 4)
    assert ints(emulated, emulated.evaluate(matrix, w, d)) == cpu.evaluate(matrix, w, d).to_ints()
    v = elements(curve, len(lengths))
    assert ints(emulated, emulated.evaluate_transposed(matrix, v)) == cpu.evaluate_transposed(matrix, v).to_ints()


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("n", [1, 2, 31, 33, 256, 257, 512, 513, 1500])
def test_inverses(emulated: CudaBackend, curve: Curve, n: int) -> None:
    rng, device, limbs = random.Random(n), emulated._device, curve.fp_limbs
    values = [rng.choice([1, 2, curve.q - 1, 1 << 64, rng.randrange(1, curve.q)]) for _ in range(n)]
    planes = device.upload(ints_to_limbs(values, limbs).reshape(n, -1, 2).transpose(1, 0, 2).reshape(-1).copy())
    scratch = device.empty(max(1, scratch_elements(n) * limbs), "u8")
    invert_planes(device, Module("inverse", curve.name), planes, n, limbs, scratch)
    inverses = limbs_to_ints(device.download(planes).reshape(-1, n, 2).transpose(1, 0, 2).reshape(n, limbs).copy())
    r2 = pow(2, 2 * 64 * limbs, curve.q)  # values are taken for Montgomery form: a R^-1 has the inverse R^2 / a R
    assert all(a * b % curve.q == r2 for a, b in zip(values, inverses, strict=True))


def scalars_of(kind: str, curve: Curve, n: int) -> list[int]:
    rng, r = random.Random(n), curve.r
    edges = [0, 1, 2, r - 1, r - 2, r // 2, r // 2 + 1, 1 << 64, (1 << 253) - 1]
    return {
        "random": lambda: [rng.randrange(r) for _ in range(n)],
        "bits": lambda: [rng.randrange(r) if i % 10 == 0 else i % 2 for i in range(n)],
        "equal": lambda: [r // 3] * n,
        "edges": lambda: [rng.choice(edges) for _ in range(n)],
        "zero": lambda: [0] * n,
        "one of them": lambda: [0] * (n - 1) + [r // 5],
    }[kind]()


def points_of(cpu: CpuBackend, curve: Curve, group: Group, n: int) -> PointTable:
    """Few distinct points, so that equal and opposite ones meet in buckets, and infinity."""
    rng = random.Random(n)
    multiples = [rng.randrange(1, 4) if i % 3 else rng.randrange(1, curve.r) for i in range(n)]
    points = cpu.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, multiples)).to_points()
    points = [negate(p) if i % 5 == 4 else p for i, p in enumerate(points)]
    return PointTable.from_points(
        curve, group, [Point.infinity(curve, group) if i % 7 == 6 else p for i, p in enumerate(points)]
    )


CASES = [
    ("random", 300),
    ("bits", 700),
    ("equal", 255),
    ("edges", 257),
    ("zero", 3),
    ("one of them", 128),
    ("random", 2),
]


def check_msm(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, group: Group) -> None:
    for kind, n in CASES:
        for form in Form:
            scalars = FrVector.from_ints(curve, scalars_of(kind, curve, n), form)
            table = points_of(cpu, curve, group, n)
            assert emulated.msm([table], scalars) == cpu.msm([table], scalars), (kind, n, form)


def test_msm(emulated: CudaBackend, cpu: CpuBackend) -> None:
    check_msm(emulated, cpu, BN254, Group.G1)


@pytest.mark.slow
@pytest.mark.parametrize(("curve", "group"), [(BN254, Group.G2), (BLS12_381, Group.G1), (BLS12_381, Group.G2)])
def test_msm_in_the_other_groups(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, group: Group) -> None:
    check_msm(emulated, cpu, curve, group)


@pytest.mark.parametrize(
    ("group", "n"), [(Group.G1, 1400), (Group.G1, 333), pytest.param(Group.G2, 333, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["random", "bits", "equal", "edges"])
def test_msm_of_many_rounds(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, group: Group, n: int, kind: str
) -> None:
    """Rounds down to the last addition: denominators that a round leaves for the next and those that it does not."""
    monkeypatch.setattr(snarkline.backend.cuda.msm, "MIN_ADDITIONS", 1)
    scalars = FrVector.from_ints(BN254, scalars_of(kind, BN254, n))
    table = points_of(cpu, BN254, group, n)
    assert emulated.msm([table], scalars) == cpu.msm([table], scalars)
    assert emulated._device.driver.kernels().count("later_additions") >= 2  # type: ignore[attr-defined]


def test_msm_in_slices_where_memory_is_short(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.sums, "MIN_SLICE", 100)
    monkeypatch.setattr(emulated._device, "free_bytes", lambda: 1 << 20)
    scalars = FrVector.from_ints(BN254, scalars_of("random", BN254, 350))
    table = points_of(cpu, BN254, Group.G1, 350)
    assert emulated.msm([table], scalars) == cpu.msm([table], scalars)
    assert emulated._device.driver.kernels().count("make_digits") == 4  # type: ignore[attr-defined]


def test_tables_that_share_their_scalars(emulated: CudaBackend, cpu: CpuBackend) -> None:
    scalars = FrVector.from_ints(BN254, scalars_of("bits", BN254, 200))
    tables = [points_of(cpu, BN254, Group.G1, 200), points_of(cpu, BN254, Group.G1, 200)]
    tables[1].limbs[0] = tables[1].limbs[1]
    assert emulated.msm(tables, scalars) == cpu.msm(tables, scalars)
    assert emulated._device.driver.kernels().count("make_digits") == 1  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
@pytest.mark.parametrize("group", list(Group))
def test_fixed_base(emulated: CudaBackend, cpu: CpuBackend, curve: Curve, group: Group) -> None:
    base = Point.generator(curve, group)
    scalars = FrVector.from_ints(curve, scalars_of("edges", curve, 40), Form.MONTGOMERY)
    assert np.array_equal(emulated.fixed_base(base, scalars).limbs, cpu.fixed_base(base, scalars).limbs)
