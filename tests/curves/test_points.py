"""Points of every instruction set against py_ecc and arkworks: multiples of a base, sums, membership."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import oracle
import py_arkworks_bls12381 as arkworks
import pytest

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve, Group
from snarkline.curves.pairing import combine, is_member, negate
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import ints_to_limbs
from snarkline.native import core

ISAS = core.instruction_sets()
GROUPS = [pytest.param(c, g, id=f"{c.name}-{g.name}") for c, g in product(CURVES.values(), Group)]
every_group = pytest.mark.parametrize(("curve", "group"), GROUPS)
every_isa = pytest.mark.parametrize("isa", ISAS)

COFACTOR = {
    (BN254, Group.G1): 1,
    (BN254, Group.G2): 2 * BN254.q - BN254.r,
    (BLS12_381, Group.G1): 0x396C8C005555E1568C00AAAB0000AAAB,
    (
        BLS12_381,
        Group.G2,
    ): 0x5D543A95414E7F1091D50792876A202CD91DE4547085ABAA68A205B2E5A7DDFA628F1CB4D9E82EF21537E293A6691AE1616EC6E786F0C70CF1C38E31C7238E5,  # noqa: E501
}


def fixed_base(isa: str, base: Point, scalars: list[int], threads: int = 2) -> list[Point]:
    curve, group = base.curve, base.group
    out = np.empty((len(scalars), curve.point_limbs(group)), np.uint64)
    limbs = PointTable.from_points(curve, group, [base]).limbs
    core.Executor(threads, isa).fixed_base(curve.name, group.value, out, limbs, ints_to_limbs(scalars, 4))
    return PointTable(curve, group, out).to_points()


def first_bad(isa: str, points: list[Point], subgroup: bool = True) -> int:
    curve, group = points[0].curve, points[0].group
    limbs = PointTable.from_points(curve, group, points).limbs
    return core.Executor(2, isa).first_bad_point(curve.name, group.value, limbs, subgroup)


def points_off_subgroup(curve: Curve, group: Group, n: int) -> list[Point]:
    """Points of the curve with small and random x."""
    rng = random.Random(7)
    found: list[Point] = []
    for k in range(100 * n):
        draw = [k if k < 3 * n else rng.randrange(curve.q), rng.randrange(curve.q)]
        point = oracle.on_curve_above(curve, group, draw[0] if group is Group.G1 else (draw[0], draw[1]))
        if point is not None:
            found.append(point)
        if len(found) == n:
            break
    return found


@cache
def multiples(curve: Curve, group: Group) -> tuple[Point, list[tuple[int, Point]]]:
    """A base and its multiples by edges of a scalar, also such as are not below r."""
    rng = random.Random(group.value)
    r = curve.r
    edges = [0, 1, 2, 3, r - 1, r, r + 1, r // 2, (1 << 256) - 1, 1 << 255, 1 << 63, 1 << 64, (1 << 128) - 1]
    edges += [int("0fff" * 16, 16), int("1000" * 16, 16), rng.randrange(r)]
    base = oracle.multiple(Point.generator(curve, group), rng.randrange(r))
    return base, [(s, oracle.multiple(base, s)) for s in edges]


@every_isa
@every_group
def test_multiples_of_a_base(curve: Curve, group: Group, isa: str) -> None:
    """One by one for few scalars, by tables for many; pieces of the work meet without a seam."""
    base, known = multiples(curve, group)
    edges, want = [s for s, _ in known], [p for _, p in known]
    assert fixed_base(isa, base, edges) == want
    assert fixed_base(isa, base, []) == []
    many = (edges * 70)[: 1024 + len(edges) + 1]
    got = fixed_base(isa, base, many, threads=3)
    assert got == [want[i % len(edges)] for i in range(len(many))]


@every_isa
@every_group
def test_multiples_of_infinity_and_of_small_orders(curve: Curve, group: Group, isa: str) -> None:
    infinity = Point.infinity(curve, group)
    for n in (3, 40):
        assert fixed_base(isa, infinity, [0, 5, curve.r - 1][:n] * (n // 3)) == [infinity] * (n // 3 * 3)
    if curve is BLS12_381 and group is Group.G1:
        # (0, 2) has order 3: sums in a table meet equal, opposite and infinite operands all the time.
        base = Point(curve, group, 0, 2)
        cycle = [infinity, base, negate(base)]
        scalars = list(range(64)) + [(1 << 255) + k for k in range(10)]
        assert fixed_base(isa, base, scalars) == [cycle[s % 3] for s in scalars]


def test_multiples_against_arkworks() -> None:
    rng = random.Random(3)
    scalars = [1, 2, BLS12_381.r - 1] + [rng.randrange(BLS12_381.r) for _ in range(40)]
    size = 48
    for group, generator in ((Group.G1, arkworks.G1Point()), (Group.G2, arkworks.G2Point())):
        got = fixed_base("auto", Point.generator(BLS12_381, group), scalars)
        for point, s in zip(got, scalars, strict=True):
            data = (generator * arkworks.Scalar(s)).to_xy_bytes_be()
            words = sorted(int.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size))
            assert sorted(point.coordinates()) == words


@every_group
def test_combinations(curve: Curve, group: Group) -> None:
    """combine() and negate() on equal, opposite and infinite points and on scalars beyond [0, r)."""
    g = Point.generator(curve, group)
    p, q = oracle.multiple(g, 123456789), oracle.multiple(g, curve.r - 5)
    infinity = Point.infinity(curve, group)
    assert negate(infinity) == infinity
    assert negate(p) == oracle.multiple(p, curve.r - 1)
    assert combine([p, q], [1, 1]) == oracle.total([p, q])
    assert combine([p, p], [1, 1]) == oracle.multiple(p, 2)
    assert combine([p, negate(p)], [1, 1]) == infinity
    assert combine([p, infinity], [1, 7]) == p
    assert combine([p], [0]) == infinity
    assert combine([p], [curve.r]) == infinity
    assert combine([p], [-1]) == negate(p)
    assert combine([p, q, g], [3, -2, curve.r + 9]) == oracle.total(
        [oracle.multiple(p, 3), oracle.multiple(negate(q), 2), oracle.multiple(g, 9)]
    )


@dataclass(frozen=True)
class Torsion:
    """A point of the curve, its part in the cofactor's torsion and its part in the group of order r."""

    point: Point
    torsion: Point
    cleared: Point
    member_plus_torsion: Point


@cache
def torsion_cases(curve: Curve, group: Group) -> list[Torsion]:
    h, generator = COFACTOR[curve, group], Point.generator(curve, group)
    cases = []
    for point in points_off_subgroup(curve, group, 4):
        torsion, cleared = oracle.multiple(point, curve.r), oracle.multiple(point, h)
        assert oracle.multiple(torsion, h).is_infinity and oracle.multiple(cleared, curve.r).is_infinity
        cases.append(Torsion(point, torsion, cleared, oracle.total([generator, torsion])))
    return cases


@every_isa
@every_group
def test_points_outside_the_subgroup_are_found(curve: Curve, group: Group, isa: str) -> None:
    """The fast membership tests agree with multiplication by r."""
    generator, infinity = Point.generator(curve, group), Point.infinity(curve, group)
    assert first_bad(isa, [generator, infinity, negate(generator)]) == -1
    for case in torsion_cases(curve, group):
        assert first_bad(isa, [case.point], subgroup=False) == -1
        assert first_bad(isa, [generator, case.cleared, infinity]) == -1
        if COFACTOR[curve, group] == 1:
            assert case.torsion.is_infinity and first_bad(isa, [case.point]) == -1
            continue
        assert not case.torsion.is_infinity
        assert first_bad(isa, [generator, case.point, case.torsion]) == 1
        assert first_bad(isa, [generator, case.cleared, case.torsion]) == 2
        assert first_bad(isa, [case.member_plus_torsion]) == 0


@pytest.mark.parametrize(
    ("curve", "group", "order"),
    [(BLS12_381, Group.G1, 3), (BLS12_381, Group.G1, 11), (BLS12_381, Group.G2, 13), (BN254, Group.G2, 10069)],
)
def test_torsion_of_small_order_is_found(curve: Curve, group: Group, order: int) -> None:
    """Cofactors have small prime factors; points of those orders are no members."""
    h, rest = COFACTOR[curve, group], COFACTOR[curve, group]
    assert h % order == 0
    while rest % order == 0:
        rest //= order
    found = 0
    for candidate in points_off_subgroup(curve, group, 4):
        small = oracle.multiple(candidate, rest * curve.r)
        while not small.is_infinity and not oracle.multiple(small, order).is_infinity:
            small = oracle.multiple(small, order)
        if small.is_infinity:
            continue
        found += 1
        for isa in ISAS:
            assert first_bad(isa, [small], subgroup=False) == -1
            assert first_bad(isa, [small]) == 0
    assert found > 0


@cache
def edge_points(curve: Curve, group: Group) -> list[Point]:
    q, radix = curve.q, 1 << (64 * curve.fp_limbs)
    unit = pow(radix, -1, q)
    raw = [0, 1, 2, q - 1, q - 2, (1 << 192) - 1, (1 << 64) - 1, ((1 << 64) - 1) << 64, 1 << 63, q // 2, q >> 1 << 1]
    points = []
    for i, a in enumerate(raw):
        x = (a * unit % q, raw[3 * i % len(raw)] * unit % q)
        point = oracle.on_curve_above(curve, group, x if group is Group.G2 else x[0])
        points += [point, negate(point)] if point is not None else []
    return points


@every_isa
@every_group
def test_points_with_edge_coordinates(curve: Curve, group: Group, isa: str) -> None:
    """Points whose Montgomery words are all ones, all zeros or the modulus's ends lie on the curve."""
    points = edge_points(curve, group)
    assert len(points) >= 6
    assert first_bad(isa, points * 4, subgroup=False) == -1


@every_group
def test_membership_of_single_points(curve: Curve, group: Group) -> None:
    g = Point.generator(curve, group)
    assert is_member(g)
    assert is_member(Point.infinity(curve, group))
    zero, one = (0, 1) if group is Group.G1 else ((0, 0), (1, 0))
    assert not is_member(Point(curve, group, zero, zero))
    assert not is_member(Point(curve, group, g.x, one))
    if isinstance(g.x, int) and isinstance(g.y, int):
        assert not is_member(Point(curve, group, g.x + curve.q, g.y))
        assert not is_member(Point(curve, group, g.x, g.y - curve.q))
    for point in points_off_subgroup(curve, group, 3):
        assert is_member(point) == (COFACTOR[curve, group] == 1)
