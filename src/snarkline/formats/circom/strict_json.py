"""JSON as the doors for proofs and verifying keys read it: exact shapes, decimal strings, bounded sizes.

snarkjs takes hexadecimal, negative and oversized numbers, and reduces them; here every one is a FormatError, which
names the place as a path ($.pi_a[0]). Sizes are bounded before anything is parsed or converted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.errors import FormatError
from snarkline.formats.binary import read_at_most
from snarkline.formats.points import check_point, point_from_coordinates
from snarkline.text import json_fault, parse_json, shorten

CURVE_NAMES = {"BN128": BN254, "BN254": BN254, "ALTBN128": BN254, "BLS12381": BLS12_381}
WRITTEN_NAMES = {"bn254": "bn128", "bls12_381": "bls12381"}
MAX_DIGITS = 120  # the largest coordinate, of 381 bits, has 115
MAX_DEPTH = 64  # a verifying key nests four deep; circom's input arrays as deep as their signals have dimensions


@dataclass(frozen=True)
class Limit:
    """How large a document may be: its bytes, and its commas and opening brackets, which bound the values in it."""

    n_bytes: int
    n_values: int


PROOF = Limit(64 << 10, 1 << 10)  # one has 1 KiB
PUBLIC = Limit(16 << 20, 1 << 20)  # 200 000 of the largest public inputs
KEY = Limit(64 << 20, 1 << 21)  # 500 000 points
INPUTS = Limit(256 << 20, 1 << 24)

Source = str | bytes | os.PathLike[str]


@dataclass(frozen=True)
class Node:
    """A value in a JSON document and the way to it."""

    path: str | None
    where: str
    value: Any

    def fail(self, expected: object, found: object = None) -> NoReturn:
        raise FormatError(self.path, self.where, expected, _describe(self.value) if found is None else found)

    def get(self, key: str) -> Node:
        """The member `key` of an object."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        if key not in self.value:
            self.fail(f"a member '{key}'", f"members {shorten(', '.join(self.value))}" if self.value else "none")
        return Node(self.path, f"{self.where}.{key}", self.value[key])

    def items(self, n: int | None = None) -> list[Node]:
        """The items of an array, which has `n` of them if that is given."""
        if not isinstance(self.value, list):
            self.fail("an array" if n is None else f"an array of {n}")
        if n is not None and len(self.value) != n:
            self.fail(f"an array of {n}", f"one of {len(self.value)}")
        return [Node(self.path, f"{self.where}[{i}]", v) for i, v in enumerate(self.value)]

    def decimal(self, below: int, name: str) -> int:
        """A string of decimal digits without sign, spaces or leading zeros, whose value is below `below`."""
        text = self.value
        if not isinstance(text, str):
            self.fail("a string of decimal digits")
        if not 0 < len(text) <= MAX_DIGITS or not text.isascii() or not text.isdigit():
            self.fail("a string of decimal digits")
        if text[0] == "0" and text != "0":
            self.fail("a number without leading zeros")
        value = int(text)
        if value >= below:
            self.fail(f"a number below {name}")
        return value

    def count(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            self.fail("a count")
        return self.value

    def text(self, expected: str) -> None:
        if self.value != expected:
            self.fail(f"'{expected}'")

    def curve(self) -> Curve:
        name = self.value if isinstance(self.value, str) else ""
        found = CURVE_NAMES.get("".join(c for c in name.upper() if c.isalnum()))
        if found is None:
            self.fail(" or ".join(f"'{name}'" for name in WRITTEN_NAMES.values()))
        return found

    def point(self, curve: Curve, group: Group, *, infinity: bool = False) -> Point:
        """A point of order r as [x, y, "1"], coordinates of G2 in pairs. Infinity, where allowed, has z = 0, y = 1."""
        rows = self.items(3)
        if group is Group.G1:
            values = [row.decimal(curve.q, "q") for row in rows]
            at_infinity, affine = values == [0, 1, 0], values[2] == 1
            values = values[:2]
        else:
            pairs = [[v.decimal(curve.q, "q") for v in row.items(2)] for row in rows]
            at_infinity, affine = pairs == [[0, 0], [1, 0], [0, 0]], pairs[2] == [1, 0]
            values = pairs[0] + pairs[1]
        if at_infinity:
            return Point.infinity(curve, group) if infinity else self.fail("a point other than infinity", "infinity")
        if not affine:
            rows[2].fail("1 (an affine point)" if group is Group.G1 else "[1, 0] (an affine point)")
        if not any(values):
            self.fail(f"a point of {curve.name}'s {group.name}", "a point off the curve")
        point = point_from_coordinates(curve, group, values)
        check_point(self.path, self.where, PointTable.from_points(curve, group, [point]))
        return point


def parse(
    source: Source,
    limit: Limit,
    *,
    integer: Callable[[str], Any] | None = None,
    fraction: Callable[[str], Any] | None = None,
) -> Node:
    """A document from its text, or from a file if `source` is a path object. Raises OSError and FormatError.

    Numbers are of at most ten digits and whole, unless `integer` and `fraction` take their text; a ValueError of
    theirs refuses the document.
    """
    path = None
    if isinstance(source, os.PathLike):
        path = os.fspath(source)
        source = read_at_most(path, limit.n_bytes)
    if len(source) > limit.n_bytes:
        raise FormatError(path, "size", f"at most {limit.n_bytes} bytes", len(source))
    try:
        text = source if isinstance(source, str) else source.decode()
        n_values = sum(text.count(mark) for mark in ",[{")
        if n_values > limit.n_values:
            raise ValueError(f"{n_values} commas and opening brackets, more than {limit.n_values}")
        value = parse_json(text, MAX_DEPTH, integer=integer or _integer, fraction=fraction)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "document", "JSON", json_fault(error)) from None
    return Node(path, "$", value)


def _integer(digits: str) -> int:
    if len(digits) > 10:
        raise ValueError("a number of more than ten digits that is not a string")
    return int(digits)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return shorten(json.dumps(value))


def dump(value: object) -> str:
    """The text that snarkjs writes for a value: one space of indentation, no newline at the end."""
    return json.dumps(value, indent=1)


def point_to_json(point: Point) -> list[Any]:
    """[x, y, "1"], coordinates of G2 in pairs."""
    c = [str(v) for v in point.coordinates()]
    if point.group is Group.G1:
        return ["0", "1", "0"] if point.is_infinity else [c[0], c[1], "1"]
    if point.is_infinity:
        return [["0", "0"], ["1", "0"], ["0", "0"]]
    return [c[:2], c[2:], ["1", "0"]]
