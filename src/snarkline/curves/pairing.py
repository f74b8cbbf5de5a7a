"""Arithmetic on single points and products of pairings, on one thread of the compiled core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector, Limbs
from snarkline.native import core


def combine(points: Sequence[Point], scalars: Sequence[int]) -> Point:
    """sum_i scalars[i] points[i]: one or more points of one group, all of order r; scalars modulo r."""
    curve, group = points[0].curve, points[0].group
    table = PointTable.from_points(curve, group, points)
    scalar_limbs = FrVector.from_ints(curve, scalars).limbs
    (total,) = _executor().msm(curve.name, [(group.value, table.limbs)], scalar_limbs, False)
    return PointTable(curve, group, total).point(0)


def fold_windows(curve: Curve, group: Group, sums: Limbs, starts: Sequence[int]) -> PointTable:
    """The point sum of 2^starts[i] * sums[i]: `sums` in XYZZ coordinates, Montgomery form, `starts` ascending, at most
    256."""
    out = np.empty((1, curve.point_limbs(group)), np.uint64)
    core.fold_windows(curve.name, group.value, out, sums, np.array(starts, np.uint32))
    return PointTable(curve, group, out)


def negate(point: Point) -> Point:
    """-point, of a point whose coordinates are in [0, q)."""
    q = point.curve.q
    if point.y is None:
        return point
    if isinstance(point.y, tuple):
        return Point(point.curve, point.group, point.x, (-point.y[0] % q, -point.y[1] % q))
    return Point(point.curve, point.group, point.x, -point.y % q)


def is_member(point: Point) -> bool:
    """Whether coordinates are in [0, q) and the point is on its curve, in the subgroup of order r. Infinity is."""
    coordinates = point.coordinates()
    if not all(0 <= c < point.curve.q for c in coordinates):
        return False
    if not any(coordinates):
        return point.is_infinity  # zeros stand for infinity in a table, but (0, 0) is on neither curve
    table = PointTable.from_points(point.curve, point.group, [point])
    return _executor().first_bad_point(point.curve.name, point.group.value, table.limbs, True) < 0


def pairing_product_is_one(pairs: Sequence[tuple[Point, Point]]) -> bool:
    """Whether the product of e(p, q) over pairs (p in G1, q in G2) is 1. Points must be members of their groups."""
    if not pairs:
        return True
    curve = pairs[0][0].curve
    p = PointTable.from_points(curve, Group.G1, [p for p, _ in pairs])
    q = PointTable.from_points(curve, Group.G2, [q for _, q in pairs])
    return _executor().pairing_product_is_one(curve.name, p.limbs, q.limbs)


@cache
def _executor() -> core.Executor:
    return core.Executor(1)
