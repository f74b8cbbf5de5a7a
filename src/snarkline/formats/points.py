"""Points as the files hold them: affine, Montgomery form, little-endian, infinity all zero; and their checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Coordinate, Point, PointTable
from snarkline.curves.vector import limbs_to_ints
from snarkline.errors import FormatError
from snarkline.formats import _native


def bytes_per_point(curve: Curve, group: Group) -> int:
    return 8 * curve.point_limbs(group)


def check_points(
    path: str | None, where: str, table: PointTable, *, subgroup: bool, first: int = 0, threads: int | None = None
) -> None:
    """Raises FormatError for the first point that is not on its curve (or, if asked, outside the subgroup of order r).

    `where` is the place in the file of a table in which the points of `table` begin at index `first`. Infinity passes.
    """
    index = _native.executor(threads).first_bad_point(table.curve.name, table.group.value, table.limbs, subgroup)
    if index >= 0:
        raise FormatError(path, f"{where}: point {first + index}", *_diagnose(table, index))


def check_point(path: str | None, where: str, table: PointTable) -> None:
    """Raises FormatError unless the only point of `table` is of order r, or infinity."""
    if _native.executor().first_bad_point(table.curve.name, table.group.value, table.limbs, True) >= 0:
        raise FormatError(path, where, *_diagnose(table, 0))


def _diagnose(table: PointTable, index: int) -> tuple[str, str]:
    """What was expected of a bad point, and what was found."""
    curve, group = table.curve, table.group
    raw = limbs_to_ints(np.ascontiguousarray(table.limbs[index]).reshape(-1, curve.fp_limbs))
    if any(v >= curve.q for v in raw):
        return "coordinates below the modulus q", "a larger one"
    if _native.executor().first_bad_point(curve.name, group.value, table.limbs[index : index + 1], False) >= 0:
        return f"a point of {curve.name}'s {group.name}", "a point off the curve"
    return f"a point of order r in {curve.name}'s {group.name}", "a point outside the subgroup"


def to_points(table: PointTable) -> list[Point]:
    """The points in Python integers, converted together."""
    curve, group = table.curve, table.group
    raw = np.array(table.limbs, copy=True).reshape(-1, curve.fp_limbs)
    canonical = np.empty_like(raw)
    _native.executor().to_canonical(curve.name, "fp", canonical, raw)
    values = limbs_to_ints(canonical)
    width = 2 if group is Group.G1 else 4
    return [point_from_coordinates(curve, group, values[i : i + width]) for i in range(0, len(values), width)]


def point_from_coordinates(curve: Curve, group: Group, values: Sequence[int]) -> Point:
    """(x, y) or (x.c0, x.c1, y.c0, y.c1), with zeros for infinity."""
    if not any(values):
        return Point.infinity(curve, group)
    x: Coordinate
    y: Coordinate
    if group is Group.G1:
        x, y = values
    else:
        x, y = (values[0], values[1]), (values[2], values[3])
    return Point(curve, group, x, y)
