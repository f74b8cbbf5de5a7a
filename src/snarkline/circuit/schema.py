"""The inputs of a compiled circuit: their names, sizes and ranges, and how values become those of wires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs, ints_to_limbs
from snarkline.errors import FormatError, printable
from snarkline.trace import span

NUMBER = re.compile(r"[0-9]+|0x[0-9a-fA-F]+", re.ASCII)
HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
MAX_CHARACTERS = 1000


@dataclass(frozen=True)
class Field:
    """An input: an array of `sizes` (of no size: a single value) of values below 2^bits, or below r where `bits` is 0.

    A value has `wires` wires: one, or one for each bit. `bytes_are` says what a string of bytes stands for in place of
    the innermost array: "bits", most significant first, "bytes", or "" for nothing.
    """

    name: str
    public: bool
    sizes: tuple[int, ...]
    bits: int
    wires: int
    bytes_are: str

    @property
    def n_values(self) -> int:
        return prod(self.sizes)

    @property
    def n_wires(self) -> int:
        return self.n_values * self.wires

    def element_names(self) -> Iterator[str]:
        """The names of its values: x, or x[0][0], x[0][1] and so on."""
        for index in np.ndindex(*self.sizes):
            yield self.name + "".join(f"[{i}]" for i in index)

    def wire_names(self) -> Iterator[str]:
        """The names of its wires; bits of a value are called x.0, x.1 and so on."""
        for name in self.element_names():
            yield from [name] if self.wires == 1 else (f"{name}.{i}" for i in range(self.wires))

    def encode(self, curve: Curve, value: Any, source: str | None) -> Limbs:
        """The values of its wires, canonical. Raises FormatError, which shows no value: inputs may be secret."""
        numbers: Sequence[int] | np.ndarray[Any, Any]
        if isinstance(value, np.ndarray):
            numbers = self._array(value, source)
        else:
            numbers = list(self._flat(curve, value, self.sizes, self.name, source))
        if self.wires > 1 or self.bits == 1:
            words = np.asarray(numbers, dtype=np.uint64)
            out = np.zeros((self.n_wires, curve.fr_limbs), dtype=np.uint64)
            shifts = np.arange(self.wires, dtype=np.uint64)
            out[:, 0] = (words[:, None] >> shifts & np.uint64(1)).reshape(-1)
            return out
        if isinstance(numbers, np.ndarray):
            out = np.zeros((self.n_wires, curve.fr_limbs), dtype=np.uint64)
            out[:, 0] = numbers
            return out
        return ints_to_limbs(numbers, curve.fr_limbs)

    def _array(self, array: np.ndarray[Any, Any], source: str | None) -> np.ndarray[Any, Any]:
        if array.shape != self.sizes or array.dtype.kind not in "uib":
            _fail(source, self.name, f"an array of integers of shape {self.sizes}", f"{array.dtype} {array.shape}")
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            _fail(source, self.name, self._range(), "a negative number")
        unsigned = array.astype(np.uint64).reshape(-1)
        if 0 < self.bits < 64 and (unsigned >> np.uint64(self.bits)).any():
            index = int((unsigned >> np.uint64(self.bits)).argmax())
            name = self.name + "".join(f"[{i}]" for i in np.unravel_index(index, self.sizes))
            _fail(source, name, self._range(), "one out of range")
        return unsigned

    def _flat(self, curve: Curve, value: Any, sizes: tuple[int, ...], name: str, source: str | None) -> Iterator[int]:
        if not sizes:
            yield self._number(curve, value, name, source)
            return
        if len(sizes) == 1 and self.bytes_are and isinstance(value, str | bytes):
            value = self._from_bytes(value, name, source)
        if not isinstance(value, list | tuple):
            _fail(source, name, f"an array of {sizes[0]}", _kind(value))
        if len(value) != sizes[0]:
            _fail(source, name, f"an array of {sizes[0]}", f"one of {len(value)}")
        for i, item in enumerate(value):
            yield from self._flat(curve, item, sizes[1:], f"{name}[{i}]", source)

    def _from_bytes(self, value: str | bytes, name: str, source: str | None) -> list[int]:
        if isinstance(value, str):
            if not HEX.fullmatch(value):
                _fail(source, name, f"an array of {self.sizes[-1]}, or 0x and pairs of hexadecimal digits", "a string")
            value = bytes.fromhex(value[2:])
        return [byte >> i & 1 for byte in value for i in range(7, -1, -1)] if self.bytes_are == "bits" else list(value)

    def _number(self, curve: Curve, value: Any, name: str, source: str | None) -> int:
        if isinstance(value, str) and len(value) <= MAX_CHARACTERS and NUMBER.fullmatch(value):
            value = int(value, 16 if value.startswith("0x") else 10)
        if not isinstance(value, int | np.integer):
            _fail(source, name, self._range(), _kind(value))
        number = int(value)
        if not 0 <= number < (1 << self.bits if self.bits else curve.r):
            _fail(source, name, self._range(), "one out of range")
        return number

    def _range(self) -> str:
        if self.bits == 1:
            return "a bit, 0 or 1"
        return f"a whole number below 2^{self.bits}" if self.bits else "a whole number below the scalar field's modulus"


@dataclass(frozen=True)
class Schema:
    """The inputs of a circuit, in the order in which their wires were allocated."""

    curve: Curve
    fields: tuple[Field, ...]

    @span("encode inputs")
    def encode(self, values: Mapping[str, Any], source: str | None = None) -> FrVector:
        """The values of all given wires, canonical, from the values of inputs by their names.

        A value is an int, a string of decimal digits or of 0x and hexadecimal digits, or an array: nested lists, a
        numpy array of integers, and for bits and bytes a bytes object or 0x and hexadecimal digits. Raises FormatError,
        naming `source` and the input.
        """
        names = {field.name for field in self.fields}
        for name in values:
            if name not in names:
                _fail(
                    source, printable(f"input {name}"), f"one of {', '.join(sorted(names)) or 'none'}", "another name"
                )
        missing = [field.name for field in self.fields if field.name not in values]
        if missing:
            several = len(missing) > 1
            where = f"input{'s' * several} {', '.join(missing)}"
            _fail(source, where, "a value for each" if several else "a value", "none")
        parts = [field.encode(self.curve, values[field.name], source) for field in self.fields]
        limbs = np.concatenate([np.zeros((0, self.curve.fr_limbs), dtype=np.uint64), *parts])
        return FrVector(self.curve, limbs, Form.CANONICAL)

    def wire_names(self) -> Iterator[str]:
        """The names of the given wires in order."""
        for field in self.fields:
            yield from field.wire_names()


def _fail(source: str | None, where: str, expected: object, found: object) -> NoReturn:
    raise FormatError(source, where, expected, found)


def _kind(value: object) -> str:
    """What kind of thing a value is, without showing it."""
    kinds: dict[type, str] = {list: "an array", dict: "an object", str: "a string that is none", float: "a fraction"}
    return kinds.get(type(value), f"a value of type {type(value).__name__}")
