"""The types of a circuit's inputs, as its signature writes them.

    Public[Num]    Private[Bits[512]]    Private[Array[UInt8, 64]]    Private[Num, Size("depth")]

A size is a number or the name of a parameter of the circuit, which has an argument of that name. The second argument of
Public and Private makes a batch of that many values, over which `map` and `scan` go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snarkline.circuit.slots import WORDS, Shape
from snarkline.circuit.values import Bit, Bits, Num, Sized
from snarkline.circuit.words import Word
from snarkline.errors import CircuitError

MAX_SIZE = 1 << 32


class Size(str):
    """The name of a parameter of a circuit, as a size. (Type checkers take other strings in annotations for types.)"""

    __slots__ = ()


class Array:
    """`Array[item, size]`: that many values of one type, which the circuit sees as a list."""

    def __class_getitem__(cls, arguments: Any) -> Sized:
        if not isinstance(arguments, tuple) or len(arguments) != 2:
            raise CircuitError("", "an array is written Array[type, size]")
        return Sized(*arguments)


@dataclass(frozen=True)
class Input:
    """The type of an input. `size` is that of a batch, or None for a single value."""

    public: bool
    item: Any
    size: int | str | None


class Public:
    """`Public[type]`, `Public[type, size]`: an input that the verifier knows."""

    def __class_getitem__(cls, arguments: Any) -> Input:
        return _input(True, arguments)


class Private:
    """`Private[type]`, `Private[type, size]`: an input that only the prover knows."""

    def __class_getitem__(cls, arguments: Any) -> Input:
        return _input(False, arguments)


def _input(public: bool, arguments: Any) -> Input:
    item, size = arguments if isinstance(arguments, tuple) else (arguments, None)
    return Input(public, item, size)


def resolve_size(name: str, size: int | str, sizes: dict[str, int]) -> int:
    """A size as a number. Raises CircuitError for a name that is no parameter, and for no positive number."""
    value = sizes.get(size) if isinstance(size, str) else size
    if value is None:
        raise CircuitError("", f"input {name}: its size {size!r} is no parameter of the circuit")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < MAX_SIZE:
        raise CircuitError("", f"input {name}: a size from 1 on is needed; found {value!r}")
    return value


def resolve(name: str, item: Any, sizes: dict[str, int]) -> tuple[Shape, tuple[int, ...]]:
    """The shape of a type, and the sizes of its arrays from the outside in; bits of `Bits` are the innermost."""
    if isinstance(item, Sized):
        size = resolve_size(name, item.size, sizes)
        if item.item is Bits:
            return ("Bits", size), (size,)
        shape, inner = resolve(name, item.item, sizes)
        return ("list", *[shape] * size), (size, *inner)
    if item is Num or item is Bit:
        return (item.__name__,), ()
    if isinstance(item, type) and issubclass(item, Word) and item.__name__ in WORDS:
        return (item.__name__, item.WIDTH), ()
    raise CircuitError("", f"input {name}: Num, Bit, Bits[n], a word or an array of these is needed; found {item!r}")


def element(item: Any) -> type:
    """What arrays of a type are made of in the end: Num, Bit or a word."""
    while isinstance(item, Sized):
        item = Bit if item.item is Bits else item.item
    assert isinstance(item, type)
    return item
