"""Points in the encoding of ZCash (the BLS12-381 section of its protocol specification, "Encodings of points").

Coordinates are big-endian, the second coefficient of Fp2 first. The three highest bits of an encoding are flags:
compressed, infinity, and (compressed) that y is the larger of the two roots.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from snarkline.curves.curve import BLS12_381, Group
from snarkline.curves.point import Coordinate, Point, PointTable
from snarkline.curves.vector import Limbs
from snarkline.errors import FormatError
from snarkline.formats import _native
from snarkline.formats.binary import Bytes, OpenFile
from snarkline.formats.points import check_point

CURVE = BLS12_381
COORDINATE_BYTES = 48
COMPRESSED, INFINITY, LARGER = 0x80, 0x40, 0x20
FLAGS = COMPRESSED | INFINITY | LARGER
PIECE_POINTS = 1 << 15  # converted together: 3 to 6 MiB, which stay near the second-level cache


def point_bytes(group: Group) -> int:
    """Bytes of an uncompressed point."""
    return COORDINATE_BYTES * (2 if group is Group.G1 else 4)


def decode_points(file: OpenFile, offset: int, group: Group, out: Limbs) -> PointTable:
    """The uncompressed points at an offset of a file, to Montgomery form in `out`, shape (n, point_limbs).

    Raises FormatError for a compressed point, for infinity, which has no place in a key, and for a coordinate that is
    not below q. Whether points are on the curve is not looked at.
    """
    path, size = file.path, point_bytes(group)
    buffer = np.empty(min(len(out), PIECE_POINTS) * size, np.uint8)
    for first in range(0, len(out), PIECE_POINTS):
        piece_bytes = buffer[: min(PIECE_POINTS, len(out) - first) * size]
        rows = file.read(offset + first * size, piece_bytes).reshape(-1, size)
        flagged = np.flatnonzero((rows[:, 0] & FLAGS != 0) | ~rows.any(axis=1))
        if len(flagged):
            bad = int(flagged[0])
            flags = int(rows[bad, 0]) & FLAGS
            raise _error(path, offset, size, first + bad, f"an uncompressed point of {group.name}", _what(flags))
        canonical = _reverse(rows, group).view("<u8").reshape(-1, CURVE.fp_limbs)
        executor = _native.executor()
        above = executor.first_not_below_modulus(CURVE.name, "fp", canonical)
        if above >= 0:
            per_point = size // COORDINATE_BYTES
            raise _error(
                path, offset, size, first + above // per_point, "coordinates below the modulus q", "a larger one"
            )
        piece = out[first : first + len(rows)].reshape(-1, CURVE.fp_limbs)
        executor.from_canonical(CURVE.name, "fp", piece, canonical)
    return PointTable(CURVE, group, out)


def encode_points(table: PointTable) -> Iterator[Bytes]:
    """The uncompressed encodings, in pieces. Raises FormatError for infinity, which a key does not hold."""
    size = point_bytes(table.group)
    for first in range(0, len(table), PIECE_POINTS):
        limbs = np.ascontiguousarray(table.limbs[first : first + PIECE_POINTS])
        missing = np.flatnonzero(~limbs.any(axis=1))
        if len(missing):
            raise FormatError(None, f"point {first + int(missing[0])}", "a point of the group", "infinity")
        canonical = np.empty_like(limbs).reshape(-1, CURVE.fp_limbs)
        _native.executor().to_canonical(CURVE.name, "fp", canonical, limbs.reshape(-1, CURVE.fp_limbs))
        yield _reverse(canonical.view(np.uint8).reshape(-1, size), table.group).reshape(-1)


def compress(point: Point) -> bytes:
    """x, with the flags. 48 bytes for G1, 96 for G2."""
    size = point_bytes(point.group) // 2
    if point.x is None or point.y is None:
        return bytes([COMPRESSED | INFINITY]) + bytes(size - 1)
    encoded = bytearray(b"".join(c.to_bytes(COORDINATE_BYTES, "big") for c in _high_first(point.x)))
    encoded[0] |= COMPRESSED | (LARGER if _is_larger(point.y) else 0)
    return bytes(encoded)


def decompress(path: str | None, where: str, data: bytes, group: Group) -> Point:
    """The point, which must be in the group of order r and not infinity. Raises FormatError."""
    flags = data[0] & FLAGS
    if not flags & COMPRESSED or flags & INFINITY:
        found = "infinity" if flags & INFINITY else "an uncompressed one"
        raise FormatError(path, where, f"a compressed point of {group.name}, not infinity", found)
    raw = bytes([data[0] & ~FLAGS & 0xFF]) + data[1:]
    high_first = [int.from_bytes(raw[i : i + COORDINATE_BYTES], "big") for i in range(0, len(raw), COORDINATE_BYTES)]
    if any(c >= CURVE.q for c in high_first):
        raise FormatError(path, where, "a coordinate below the modulus q", "a larger one")
    x: Coordinate = high_first[0] if group is Group.G1 else (high_first[1], high_first[0])
    y = _root_of_curve(x)
    if y is None:
        raise FormatError(path, where, f"the x of a point of {group.name}", "one that no point has")
    if _is_larger(y) != bool(flags & LARGER):
        y = -y % CURVE.q if isinstance(y, int) else (-y[0] % CURVE.q, -y[1] % CURVE.q)
    point = Point(CURVE, group, x, y)
    check_point(path, where, PointTable.from_points(CURVE, group, [point]))
    return point


def _reverse(rows: Bytes, group: Group) -> Bytes:
    """Every element of the base field or of Fp2 with its bytes reversed: the two encodings, one from the other."""
    element = COORDINATE_BYTES * (1 if group is Group.G1 else 2)
    return np.ascontiguousarray(rows.reshape(len(rows), -1, element)[:, :, ::-1])


def _error(path: str | None, offset: int, size: int, index: int, expected: str, found: str) -> FormatError:
    return FormatError(path, f"offset {offset + index * size}: point {index}", expected, found)


def _what(flags: int) -> str:
    """What an encoding with these flags is, where a point is expected."""
    if flags == 0:
        return "(0, 0), which is no point"
    return "infinity" if flags & INFINITY else "a compressed point" if flags & COMPRESSED else "an unknown flag"


def _high_first(value: Coordinate) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else (value[1], value[0])


def _is_larger(y: Coordinate) -> bool:
    """Whether y is larger than -y, as integers, the second coefficient counting first."""
    negated = tuple(-c % CURVE.q for c in _high_first(y))
    return _high_first(y) > negated


def _root_of_curve(x: Coordinate) -> Coordinate | None:
    """A y with y^2 = x^3 + b (in Fp2: + b2), or None."""
    q = CURVE.q
    if isinstance(x, int):
        return _sqrt((pow(x, 3, q) + CURVE.b) % q)
    x0, x1 = x
    square = ((x0 * x0 - x1 * x1) % q, 2 * x0 * x1 % q)
    cube = (square[0] * x0 - square[1] * x1, square[0] * x1 + square[1] * x0)
    return _sqrt2((cube[0] + CURVE.b2[0]) % q, (cube[1] + CURVE.b2[1]) % q)


def _sqrt(a: int) -> int | None:
    """A square root modulo q = 3 mod 4."""
    root = pow(a, (CURVE.q + 1) // 4, CURVE.q)
    return root if root * root % CURVE.q == a else None


def _sqrt2(a0: int, a1: int) -> tuple[int, int] | None:
    """A square root of a0 + a1 u in Fp2, u^2 = -1, by the norm (Adj, Rodriguez-Henriquez, eprint 2012/685, alg. 8)."""
    q = CURVE.q
    if a1 == 0:
        root = _sqrt(a0)
        if root is not None:
            return root, 0
        root = _sqrt(-a0 % q)
        return None if root is None else (0, root)
    norm = _sqrt((a0 * a0 + a1 * a1) % q)
    if norm is None:
        return None
    half = (q + 1) // 2
    for sign in (norm, -norm):
        x0 = _sqrt((a0 + sign) * half % q)
        if x0:
            return x0, a1 * pow(2 * x0, -1, q) % q
    return None
