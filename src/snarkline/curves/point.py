"""Points: `Point` is one affine point in Python integers, `PointTable` an array of them in Montgomery form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from snarkline.curves.curve import Curve, Group
from snarkline.curves.vector import Limbs, ints_to_limbs, limbs_to_ints
from snarkline.trace import span

Coordinate = int | tuple[int, int]


@dataclass(frozen=True)
class Point:
    """An affine point of G1 (coordinates are integers) or G2 (pairs c0 + c1 u), or infinity (coordinates None).

    Coordinates are in [0, q). Building one checks nothing: see `curves.pairing` and the backends for membership.
    """

    curve: Curve
    group: Group
    x: Coordinate | None
    y: Coordinate | None

    @classmethod
    def infinity(cls, curve: Curve, group: Group) -> Point:
        return cls(curve, group, None, None)

    @classmethod
    def generator(cls, curve: Curve, group: Group) -> Point:
        x, y = curve.g1 if group is Group.G1 else curve.g2
        return cls(curve, group, x, y)

    @property
    def is_infinity(self) -> bool:
        return self.x is None

    def coordinates(self) -> tuple[int, ...]:
        """(x, y) or (x.c0, x.c1, y.c0, y.c1); zeros for infinity."""
        if self.x is None or self.y is None:
            return (0,) * (2 if self.group is Group.G1 else 4)
        if isinstance(self.x, tuple) and isinstance(self.y, tuple):
            return (*self.x, *self.y)
        assert isinstance(self.x, int) and isinstance(self.y, int)
        return (self.x, self.y)


@dataclass(frozen=True, eq=False)
class PointTable:
    """n affine points: `limbs` has shape (n, point_limbs), uint64, Montgomery form, x then y, c0 before c1.

    Infinity is all zero. Nothing is checked here.
    """

    curve: Curve
    group: Group
    limbs: Limbs

    def __len__(self) -> int:
        return len(self.limbs)

    def __repr__(self) -> str:
        return f"<PointTable {self.curve.name} {self.group.name} n={len(self)}>"

    @classmethod
    def from_points(cls, curve: Curve, group: Group, points: Iterable[Point]) -> PointTable:
        n = curve.fp_limbs
        radix = 1 << (64 * n)
        with span("points.encode"):
            flat = ints_to_limbs((c * radix % curve.q for p in points for c in p.coordinates()), n)
        return cls(curve, group, flat.reshape(-1, curve.point_limbs(group)))

    def point(self, i: int) -> Point:
        """Point `i` in Python integers."""
        curve, unit = self.curve, _unit(self.curve)
        c = [v * unit % curve.q for v in limbs_to_ints(self.limbs[i].reshape(-1, curve.fp_limbs))]
        if not any(c):
            return Point.infinity(curve, self.group)
        if self.group is Group.G1:
            return Point(curve, self.group, c[0], c[1])
        return Point(curve, self.group, (c[0], c[1]), (c[2], c[3]))

    def to_points(self) -> list[Point]:
        return [self.point(i) for i in range(len(self))]


@cache
def _unit(curve: Curve) -> int:
    """What takes a coordinate out of Montgomery form."""
    return pow(1 << (64 * curve.fp_limbs), -1, curve.q)
