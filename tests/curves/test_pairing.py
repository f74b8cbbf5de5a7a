"""The pairing against py_ecc and arkworks, and its laws."""

from __future__ import annotations

import random

import numpy as np
import oracle
import py_arkworks_bls12381 as arkworks
import pytest

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve, Group
from snarkline.curves.pairing import combine, negate, pairing_product_is_one
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import limbs_to_ints
from snarkline.native import core

ISAS = core.instruction_sets()
every_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=repr)
every_isa = pytest.mark.parametrize("isa", ISAS)

# The core raises to a fixed multiple of (q^12 - 1) / r, py_ecc to that number itself; on BLS12-381 py_ecc takes the
# absolute value of the seed, which inverts the pairing.
SEED_BN254 = 4965661367192848881
EXPONENT = {BN254: 2 * SEED_BN254 * (6 * SEED_BN254**2 + 3 * SEED_BN254 + 1), BLS12_381: -3}
XI = {BN254: 9, BLS12_381: 1}  # w^6 = XI + u


def multiple_of_generator(curve: Curve, group: Group, scalar: int) -> Point:
    return combine([Point.generator(curve, group)], [scalar])


def value(isa: str, p: Point, q: Point) -> object:
    """e(p, q) as py_ecc's FQ12: polynomials in w, with u = w^6 - XI."""
    curve = p.curve
    limbs = core.Executor(1, isa).pairing(
        curve.name,
        PointTable.from_points(curve, Group.G1, [p]).limbs,
        PointTable.from_points(curve, Group.G2, [q]).limbs,
    )
    unit = pow(1 << (64 * curve.fp_limbs), -1, curve.q)
    v = [c * unit for c in limbs_to_ints(limbs)]
    coefficients = [0] * 12
    for i in range(6):  # over (1, v, v^2) and (1, w): v = w^2
        c0, c1 = v[6 * (i % 2) + 2 * (i // 2) :][:2]
        coefficients[i] = (c0 - XI[curve] * c1) % curve.q
        coefficients[i + 6] = c1 % curve.q
    return oracle.module(curve).FQ12(coefficients)


def product_is_one(isa: str, pairs: list[tuple[Point, Point]], curve: Curve, threads: int = 2) -> bool:
    return core.Executor(threads, isa).pairing_product_is_one(
        curve.name,
        PointTable.from_points(curve, Group.G1, [p for p, _ in pairs]).limbs,
        PointTable.from_points(curve, Group.G2, [q for _, q in pairs]).limbs,
    )


@every_curve
def test_value(curve: Curve) -> None:
    ecc = oracle.module(curve)
    p = multiple_of_generator(curve, Group.G1, 0x123456789ABCDEF)
    q = multiple_of_generator(curve, Group.G2, curve.r - 987654321)
    want = ecc.pairing(oracle.lift(q), oracle.lift(p)) ** (EXPONENT[curve] % curve.r)
    assert want != ecc.FQ12.one()
    for isa in ISAS:
        assert value(isa, p, q) == want


@every_isa
@every_curve
def test_values_at_infinity_and_order(curve: Curve, isa: str) -> None:
    one = oracle.module(curve).FQ12.one()
    g1, g2 = Point.generator(curve, Group.G1), Point.generator(curve, Group.G2)
    assert value(isa, Point.infinity(curve, Group.G1), g2) == one
    assert value(isa, g1, Point.infinity(curve, Group.G2)) == one
    e = value(isa, g1, g2)
    assert e != one
    assert e**curve.r == one  # type: ignore[operator]


@every_isa
@every_curve
def test_bilinear(curve: Curve, isa: str) -> None:
    """prod e(a_i P, b_i Q) = 1 if and only if sum a_i b_i = 0 mod r, for any number of pairs and threads."""
    rng = random.Random(curve.r)
    for n in (0, 1, 2, 3, 4, 5, 16, 17, 40):
        a = [rng.choice([1, 2, curve.r - 1, rng.randrange(curve.r)]) for _ in range(n)]
        b = [rng.choice([1, curve.r - 2, rng.randrange(1, curve.r)]) for _ in range(n)]
        if n > 1:
            a[-1] = -sum(x * y for x, y in zip(a[:-1], b[:-1], strict=True)) * pow(b[-1], -1, curve.r) % curve.r
        pairs = [
            (multiple_of_generator(curve, Group.G1, x), multiple_of_generator(curve, Group.G2, y))
            for x, y in zip(a, b, strict=True)
        ]
        for threads in (1, 2, 5):
            assert product_is_one(isa, pairs, curve, threads) == (n != 1)
        if n > 2:
            p, q = pairs[n // 2]
            for wrong in ((negate(p), q), (p, negate(q)), (p, combine([q], [2])), (Point.infinity(curve, Group.G1), q)):
                assert not product_is_one(isa, [*pairs[: n // 2], wrong, *pairs[n // 2 + 1 :]], curve)


@every_isa
@every_curve
def test_infinity_contributes_one(curve: Curve, isa: str) -> None:
    g1, g2 = Point.generator(curve, Group.G1), Point.generator(curve, Group.G2)
    o1, o2 = Point.infinity(curve, Group.G1), Point.infinity(curve, Group.G2)
    assert product_is_one(isa, [(o1, g2), (g1, o2), (o1, o2)], curve)
    assert not product_is_one(isa, [(o1, g2), (g1, g2), (g1, o2)], curve)
    assert product_is_one(isa, [(g1, g2), (o1, g2), (negate(g1), g2)], curve)


@every_curve
def test_single_points(curve: Curve) -> None:
    g1, g2 = Point.generator(curve, Group.G1), Point.generator(curve, Group.G2)
    assert pairing_product_is_one([(g1, combine([g2], [3])), (combine([g1], [-3]), g2)])
    assert not pairing_product_is_one([(g1, g2)])
    assert pairing_product_is_one([])


def test_against_arkworks() -> None:
    """The same products, random ones and ones that cancel, are 1 for arkworks."""
    rng = random.Random(11)
    curve = BLS12_381
    for cancels in (True, False):
        a, b = rng.randrange(1, curve.r), rng.randrange(1, curve.r)
        scalars = [(a, b), (-a * b % curve.r + (not cancels), 1)]
        theirs = arkworks.GT.pairing_check(
            [arkworks.G1Point() * arkworks.Scalar(x) for x, _ in scalars],
            [arkworks.G2Point() * arkworks.Scalar(y) for _, y in scalars],
        )
        ours = pairing_product_is_one(
            [(multiple_of_generator(curve, Group.G1, x), multiple_of_generator(curve, Group.G2, y)) for x, y in scalars]
        )
        assert ours == theirs == cancels


def test_many_pairs_of_equal_points() -> None:
    """e(P, Q)^k = e(k P, Q), with pairs in several pieces of the work."""
    k = 100
    for curve in CURVES.values():
        g1, g2 = Point.generator(curve, Group.G1), Point.generator(curve, Group.G2)
        p = PointTable.from_points(curve, Group.G1, [g1]).limbs.repeat(k, axis=0)
        q = PointTable.from_points(curve, Group.G2, [g2]).limbs.repeat(k, axis=0)
        last = PointTable.from_points(curve, Group.G1, [combine([g1], [-k])]).limbs
        executor = core.Executor(2)
        assert executor.pairing_product_is_one(curve.name, np.vstack([p, last]), np.vstack([q, q[:1]]))
        assert not executor.pairing_product_is_one(curve.name, p, q)
