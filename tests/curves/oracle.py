"""Both curves in py_ecc: points and pairing values translated from and to its representation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import py_ecc.optimized_bls12_381 as ecc_bls12_381
import py_ecc.optimized_bn128 as ecc_bn254

from snarkline.curves.curve import BLS12_381, Curve, Group
from snarkline.curves.point import Coordinate, Point


def module(curve: Curve) -> ModuleType:
    return ecc_bls12_381 if curve is BLS12_381 else ecc_bn254


def lift(point: Point) -> Any:
    """A point as py_ecc's projective triple."""
    ecc = module(point.curve)
    field = ecc.FQ if point.group is Group.G1 else ecc.FQ2
    if point.is_infinity:
        return (field.one(), field.one(), field.zero())
    return (field(point.x), field(point.y), field.one())


def lower(curve: Curve, group: Group, triple: Any) -> Point:
    """The inverse of `lift`."""
    ecc = module(curve)
    if ecc.is_inf(triple):
        return Point.infinity(curve, group)

    def coordinate(value: Any) -> Coordinate:
        return int(value) if group is Group.G1 else (int(value.coeffs[0]), int(value.coeffs[1]))

    x, y = ecc.normalize(triple)
    return Point(curve, group, coordinate(x), coordinate(y))


def multiple(point: Point, scalar: int) -> Point:
    """scalar * point by double and add; the scalar is not reduced."""
    ecc, base = module(point.curve), lift(point)
    total = lift(Point.infinity(point.curve, point.group))
    for bit in bin(scalar)[2:]:
        total = ecc.double(total)
        if bit == "1":
            total = ecc.add(total, base)
    return lower(point.curve, point.group, total)


def total(points: list[Point]) -> Point:
    ecc, first = module(points[0].curve), points[0]
    acc = lift(Point.infinity(first.curve, first.group))
    for point in points:
        acc = ecc.add(acc, lift(point))
    return lower(first.curve, first.group, acc)


def _square_root(curve: Curve, a: Any) -> Any | None:
    """In Fp or Fp2, p = 3 mod 4; Adj, Rodriguez-Henriquez, "Square root computation over even extension fields"
    (eprint 2012/685), algorithm 9, for Fp2."""
    ecc, q = module(curve), curve.q
    if isinstance(a, ecc.FQ):
        root = a ** ((q + 1) // 4)
        return root if root * root == a else None
    start = a ** ((q - 3) // 4)
    root = start * a
    alpha = start * root
    unit = ecc.FQ2([0, 1]) if alpha == ecc.FQ2([q - 1, 0]) else (ecc.FQ2.one() + alpha) ** ((q - 1) // 2)
    root = unit * root
    return root if root * root == a else None


def on_curve_above(curve: Curve, group: Group, x: Coordinate) -> Point | None:
    """A point with that x, nearly never in the subgroup of order r; None if there is none."""
    ecc = module(curve)
    field, b = (ecc.FQ, ecc.b) if group is Group.G1 else (ecc.FQ2, ecc.b2)
    lifted = field(x)
    y = _square_root(curve, lifted * lifted * lifted + b)
    return None if y is None else lower(curve, group, (lifted, y, field.one()))
