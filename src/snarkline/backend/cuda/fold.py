"""The end of a multi-scalar multiplication on the host: window sums of the device to one affine point."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.backend.cuda.device import Array
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Coordinate, Point
from snarkline.curves.vector import limbs_to_ints

Element = tuple[int, int]
"""c0 + c1 u in Fp2; in G1 c1 is 0."""
Jacobian = tuple[Element, Element, Element]


class _Field:
    """Fp2 = Fp[u]/(u^2 + 1) in Python integers, or Fp as its part without u."""

    def __init__(self, q: int, extension: bool) -> None:
        self.q, self.extension = q, extension

    def mul(self, a: Element, b: Element) -> Element:
        if not self.extension:
            return a[0] * b[0] % self.q, 0
        t0, t1 = a[0] * b[0], a[1] * b[1]
        return (t0 - t1) % self.q, ((a[0] + a[1]) * (b[0] + b[1]) - t0 - t1) % self.q

    def sub(self, a: Element, b: Element) -> Element:
        return a[0] - b[0], a[1] - b[1]

    def scale(self, a: Element, k: int) -> Element:
        return a[0] * k, a[1] * k

    def is_zero(self, a: Element) -> bool:
        return a[0] % self.q == 0 and a[1] % self.q == 0

    def inverse(self, a: Element) -> Element:
        unit = pow(a[0] * a[0] + a[1] * a[1], -1, self.q)
        return a[0] * unit % self.q, -a[1] * unit % self.q


def fold_windows(curve: Curve, group: Group, sums: Array, starts: Sequence[int]) -> Point:
    """sum of 2^starts[i] * sums[i]: `sums` on the host, XYZZ coordinates in Montgomery form, starts ascending."""
    field = _Field(curve.q, group is Group.G2)
    points = [_jacobian(field, curve, group, row) for row in sums]
    total: Jacobian = ((1, 0), (1, 0), (0, 0))
    at = starts[-1]
    for point, start in zip(reversed(points), reversed(starts), strict=True):
        for _ in range(at - start):
            total = _double(field, total)
        total, at = _add(field, total, point), start
    for _ in range(at):
        total = _double(field, total)
    return _affine(field, curve, group, total)


def _jacobian(field: _Field, curve: Curve, group: Group, row: Array) -> Jacobian:
    """(X, Y, ZZ, ZZZ) is the Jacobian (X ZZ^2, Y ZZZ^2, ZZZ), since ZZ^3 = ZZZ^2."""
    unit = pow(1 << (64 * curve.fp_limbs), -1, curve.q)
    flat = [v * unit % curve.q for v in limbs_to_ints(row.reshape(-1, curve.fp_limbs))]
    c = [(v, 0) for v in flat] if group is Group.G1 else list(zip(flat[::2], flat[1::2], strict=True))
    x, y, zz, zzz = c
    return field.mul(x, field.mul(zz, zz)), field.mul(y, field.mul(zzz, zzz)), zzz


def _double(f: _Field, p: Jacobian) -> Jacobian:
    """dbl-2009-l of the Explicit-Formulas Database."""
    x, y, z = p
    if f.is_zero(z):
        return p
    a, b = f.mul(x, x), f.mul(y, y)
    c, e = f.mul(b, b), f.scale(a, 3)
    d = f.scale(f.mul(x, b), 4)
    x3 = f.sub(f.mul(e, e), f.scale(d, 2))
    return x3, f.sub(f.mul(e, f.sub(d, x3)), f.scale(c, 8)), f.scale(f.mul(y, z), 2)


def _add(f: _Field, p: Jacobian, q: Jacobian) -> Jacobian:
    """add-2007-bl, without its last economy."""
    if f.is_zero(p[2]):
        return q
    if f.is_zero(q[2]):
        return p
    z1z1, z2z2 = f.mul(p[2], p[2]), f.mul(q[2], q[2])
    u1, u2 = f.mul(p[0], z2z2), f.mul(q[0], z1z1)
    s1, s2 = f.mul(f.mul(p[1], q[2]), z2z2), f.mul(f.mul(q[1], p[2]), z1z1)
    h, r = f.sub(u2, u1), f.sub(s2, s1)
    if f.is_zero(h):
        return _double(f, p) if f.is_zero(r) else ((1, 0), (1, 0), (0, 0))
    hh = f.mul(h, h)
    hhh, v = f.mul(h, hh), f.mul(u1, hh)
    x3 = f.sub(f.sub(f.mul(r, r), hhh), f.scale(v, 2))
    return x3, f.sub(f.mul(r, f.sub(v, x3)), f.mul(s1, hhh)), f.mul(f.mul(p[2], q[2]), h)


def _affine(f: _Field, curve: Curve, group: Group, p: Jacobian) -> Point:
    if f.is_zero(p[2]):
        return Point.infinity(curve, group)
    z = f.inverse((p[2][0] % f.q, p[2][1] % f.q))
    zz = f.mul(z, z)
    x, y = f.mul(p[0], zz), f.mul(p[1], f.mul(z, zz))
    coordinates: tuple[Coordinate, Coordinate] = (x[0], y[0]) if group is Group.G1 else (x, y)
    return Point(curve, group, *coordinates)
