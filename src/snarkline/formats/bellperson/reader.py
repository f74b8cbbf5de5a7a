"""Arrays of points one after the other, as bellperson's files hold them: u32 big-endian counts, uncompressed points."""

from __future__ import annotations

import numpy as np

from snarkline.curves.curve import Group
from snarkline.curves.point import Point, PointTable
from snarkline.errors import FormatError
from snarkline.formats import _native
from snarkline.formats.bellperson.encoding import CURVE, decode_points, point_bytes
from snarkline.formats.binary import OpenFile
from snarkline.formats.points import check_point, check_points
from snarkline.trace import span

# The verifying key, but for its IC points: the single points that it starts with.
HEAD = (
    ("alpha_g1", Group.G1),
    ("beta_g1", Group.G1),
    ("beta_g2", Group.G2),
    ("gamma_g2", Group.G2),
    ("delta_g1", Group.G1),
    ("delta_g2", Group.G2),
)


class PointReader:
    """Reads a file front to back; running out of bytes is a FormatError that names the field."""

    def __init__(self, file: OpenFile) -> None:
        self.file, self.path, self.offset = file, file.path, 0

    def point(self, name: str, group: Group) -> Point:
        """One point, of order r and not infinity."""
        table = self._decode(name, group, 1)
        check_point(self.path, f"{name}, offset {self.offset - point_bytes(group)}", table)
        return table.point(0)

    def table(self, name: str, group: Group, *, subgroup: bool) -> PointTable:
        """An array with its count: points on the curve, with `subgroup` of order r."""
        start, count = self.offset, self._count(name)
        with span(f"decode {name}", items=count, bytes=count * point_bytes(group)):
            table = self._decode(name, group, count)
        with span(f"check {name}", items=count):
            check_points(self.path, f"{name} at offset {start + 4}", table, subgroup=subgroup)
        return table

    def skip(self, name: str, group: Group) -> int:
        """The count of an array, whose points are passed over."""
        count = self._count(name)
        self._pass(f"{name}: {count} points", count * point_bytes(group))
        return count

    def skip_point(self, name: str, group: Group) -> bytes:
        """The encoding of one point, which is not looked at."""
        return self._bytes(f"{name}: 1 points", point_bytes(group))

    def end(self) -> None:
        """Raises unless everything was read, of a file that stayed as it was."""
        left = self.file.size - self.offset
        if left:
            raise FormatError(self.path, f"offset {self.offset}", "the end of the file", f"{left} more bytes")
        self.file.require_steady()

    def _count(self, name: str) -> int:
        return int.from_bytes(self._bytes(f"{name}: count", 4), "big")

    def _decode(self, name: str, group: Group, count: int) -> PointTable:
        offset = self._pass(f"{name}: {count} points", count * point_bytes(group))
        out = _native.arena().empty((count, CURVE.point_limbs(group)), np.uint64)
        return decode_points(self.file, offset, group, out)

    def _bytes(self, field: str, n: int) -> bytes:
        return self.file.read(self._pass(field, n), np.empty(n, np.uint8)).tobytes()

    def _pass(self, field: str, n: int) -> int:
        """The offset of a field of `n` bytes, which is passed."""
        offset, left = self.offset, self.file.size - self.offset
        if n > left:
            raise FormatError(self.path, f"offset {offset}: {field}", f"{n} bytes", f"{left} bytes left")
        self.offset += n
        return offset
