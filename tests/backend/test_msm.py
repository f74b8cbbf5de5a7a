"""Multi-scalar multiplications of every instruction set against sums of known discrete logarithms."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from py_ecc import optimized_bls12_381, optimized_bn128

from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.native import core

CURVES = [BN254, BLS12_381]
GROUPS = [Group.G1, Group.G2]
SIZES = [0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 1023, 1025]
MANY = 10_000

every_curve = pytest.mark.parametrize("curve", CURVES, ids=repr)
every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
every_isa = pytest.mark.parametrize("isa", core.instruction_sets())


def limbs(curve: Curve, values: Sequence[int], form: Form = Form.CANONICAL) -> Limbs:
    return FrVector.from_ints(curve, values, form).limbs


def multiples(curve: Curve, group: Group, logs: Sequence[int]) -> Limbs:
    """logs[i] times the generator, rows of a table."""
    base = PointTable.from_points(curve, group, [Point.generator(curve, group)]).limbs
    out = np.zeros((len(logs), curve.point_limbs(group)), np.uint64)
    core.Executor(2).fixed_base(curve.name, group.value, out, base, limbs(curve, logs))
    return out


@cache
def uniform_logs(curve: Curve) -> list[int]:
    rng = random.Random(1)
    return [rng.randrange(curve.r) for _ in range(MANY)]


@cache
def uniform_points(curve: Curve, group: Group) -> Limbs:
    return multiples(curve, group, uniform_logs(curve))


@cache
def crowded_logs(curve: Curve) -> list[int]:
    """Few different points, their opposites and infinity: all special cases of an addition."""
    rng = random.Random(2)
    return [rng.choice([0, 1, -1, 2, -2, 3, rng.randrange(curve.r)]) % curve.r for _ in range(MANY)]


@cache
def crowded_points(curve: Curve, group: Group) -> Limbs:
    return multiples(curve, group, crowded_logs(curve))


def eigenvalue(curve: Curve) -> int:
    """A primitive cube root of 1 mod r: the endomorphism multiplies by it or by its square."""
    return pow(curve.generator, (curve.r - 1) // 3, curve.r)


def edge_scalars(curve: Curve, n: int, seed: int) -> list[int]:
    """Edges of the range, of narrow scalars, of windows and of half-length scalars, and uniform ones."""
    rng, r = random.Random(seed), curve.r
    edges = [0, 1, 2, r - 1, r - 2, (r - 1) // 2, (r + 1) // 2]
    for bits in (8, 15, 16, 31, 32, 62, 63, 64, 65, 126, 127, 128, 192, 253):
        edges += [sign * ((1 << bits) + offset) % r for sign in (1, -1) for offset in (-1, 0, 1)]
    for half in (1, 2, 1 << 126, (1 << 127) - 1):
        edges += [half * root % r for root in (eigenvalue(curve), eigenvalue(curve) ** 2, -eigenvalue(curve))]
    return [rng.choice(edges) if rng.random() < 0.6 else rng.randrange(r) for _ in range(n)]


def msm(
    curve: Curve, group: Group, points: Limbs, scalars: Sequence[int], *, isa: str = "auto", threads: int = 2
) -> Limbs:
    table = (group.value, points[: len(scalars)])
    return core.Executor(threads, isa).msm(curve.name, [table], limbs(curve, scalars), False)[0]


def expected(curve: Curve, group: Group, logs: Sequence[int], scalars: Sequence[int]) -> Limbs:
    return multiples(curve, group, [sum(d * s for d, s in zip(logs, scalars, strict=False)) % curve.r])


@every_curve
@every_group
@every_isa
def test_every_size_with_edge_scalars_and_special_points(curve: Curve, group: Group, isa: str) -> None:
    points, logs = crowded_points(curve, group), crowded_logs(curve)
    for n in SIZES:
        scalars = edge_scalars(curve, n, n)
        want = expected(curve, group, logs, scalars)
        assert np.array_equal(msm(curve, group, points, scalars, isa=isa), want), n


@every_curve
@every_group
@every_isa
def test_many_uniform_points(curve: Curve, group: Group, isa: str) -> None:
    points, logs = uniform_points(curve, group), uniform_logs(curve)
    for n in (8191, 8193, MANY) if isa == core.instruction_sets()[-1] else (MANY,):
        scalars = edge_scalars(curve, n, 3) if n % 2 else uniform_logs(curve)[:n][::-1]
        want = expected(curve, group, logs, scalars)
        assert np.array_equal(msm(curve, group, points, scalars, isa=isa), want), n


@every_curve
@every_group
def test_windows_are_worked_off_in_groups(curve: Curve, group: Group) -> None:
    """So many points that one thread takes two or three windows at a time."""
    repeats = 1 + 80_000 // MANY
    points, logs = np.tile(uniform_points(curve, group), (repeats, 1)), uniform_logs(curve) * repeats
    scalars = edge_scalars(curve, len(logs), 8)
    assert np.array_equal(msm(curve, group, points, scalars, threads=1), expected(curve, group, logs, scalars))


@every_curve
@every_group
@every_isa
def test_scalars_that_crowd_few_buckets(curve: Curve, group: Group, isa: str) -> None:
    n = 3000
    points, logs = crowded_points(curve, group), crowded_logs(curve)
    uniform = uniform_logs(curve)[0]
    rng = random.Random(4)
    for scalars in (
        [0] * n,
        [1] * n,
        [curve.r - 1] * n,
        [uniform] * n,
        [0] * (n - 1) + [uniform],
        [rng.choice([0, 1]) for _ in range(n)],
        [rng.choice([1, -1, 1 << 40]) % curve.r for _ in range(n)],
        [rng.randrange(256) for _ in range(n)],
        [rng.randrange(1 << 63) for _ in range(n)],
    ):
        want = expected(curve, group, logs, scalars)
        assert np.array_equal(msm(curve, group, points, scalars, isa=isa), want), scalars[:3]


@every_curve
@every_group
@every_isa
def test_all_points_equal_or_opposite(curve: Curve, group: Group, isa: str) -> None:
    n = 300
    one = np.tile(multiples(curve, group, [5]), (n, 1))
    scalars = edge_scalars(curve, n, 5)
    assert np.array_equal(msm(curve, group, one, scalars, isa=isa), expected(curve, group, [5] * n, scalars))
    paired = multiples(curve, group, [7, curve.r - 7] * (n // 2))
    scalars = [s for s in scalars[: n // 2] for _ in range(2)]
    assert not msm(curve, group, paired, scalars, isa=isa).any()
    assert not msm(curve, group, np.zeros_like(paired), scalars, isa=isa).any()


@every_curve
@every_isa
def test_jobs_share_scalars_in_both_forms(curve: Curve, isa: str) -> None:
    """Tables with different points at infinity in both groups, as the queries of a key have."""
    n = 2500
    logs, scalars = uniform_logs(curve)[:n], edge_scalars(curve, n, 6)
    jobs, wants = [], []
    for group, share in ((Group.G1, 0), (Group.G1, 3), (Group.G2, 3), (Group.G2, 1)):
        points = uniform_points(curve, group)[:n].copy()
        hidden = np.arange(n) % 4 < share
        points[hidden] = 0
        jobs.append((group.value, points))
        wants.append(expected(curve, group, [0 if h else d for d, h in zip(logs, hidden, strict=True)], scalars))
    for form in Form:
        results = core.Executor(2, isa).msm(curve.name, jobs, limbs(curve, scalars, form), form is Form.MONTGOMERY)
        for result, want in zip(results, wants, strict=True):
            assert np.array_equal(result, want)


@every_curve
@every_group
def test_results_do_not_depend_on_threads(curve: Curve, group: Group) -> None:
    points, scalars = uniform_points(curve, group), edge_scalars(curve, MANY, 7)
    one = msm(curve, group, points, scalars, threads=1)
    assert np.array_equal(one, expected(curve, group, uniform_logs(curve), scalars))
    for threads in (2, 5):
        assert np.array_equal(one, msm(curve, group, points, scalars, threads=threads))


@every_curve
@every_isa
def test_against_py_ecc(curve: Curve, isa: str) -> None:
    library = optimized_bn128 if curve is BN254 else optimized_bls12_381
    scalars = [3, curve.r - 1, 1 << 200, 0, 5]
    for group, base in ((Group.G1, library.G1), (Group.G2, library.G2)):
        total = None
        for i, s in enumerate(scalars):
            term = library.multiply(base, s * (i + 1))
            total = term if total is None else library.add(total, term)
        x, y = library.normalize(total)
        result = msm(curve, group, multiples(curve, group, range(1, 6)), scalars, isa=isa)
        got = PointTable(curve, group, result).point(0)
        if group is Group.G1:
            assert (got.x, got.y) == (int(x), int(y))
        else:
            assert (got.x, got.y) == (tuple(map(int, x.coeffs)), tuple(map(int, y.coeffs)))


def test_an_interrupt_stops_a_sum() -> None:
    n = 1 << 16
    points = np.tile(uniform_points(BN254, Group.G2), (7, 1))[:n]
    scalars = np.tile(limbs(BN254, uniform_logs(BN254)), (7, 1))[:n]
    jobs = [(1, points)] * 200
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        core.Executor(2).msm("bn254", jobs, scalars, False)
    timer.join()
