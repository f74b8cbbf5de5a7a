"""Values taken apart into slots, and put together again.

A *slot* is one integer for one wire, bit or constant, so that what a gadget takes and returns is a list of integers and
a *shape* that says how to rebuild it. A bit's slot is its literal. A number's slot is 2 * column if it is one wire, and
-1 - c if it is the constant c. Shapes are nested tuples: they are hashable, and go into the keys of templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.circuit.recorder import ONE, Recorder
from snarkline.circuit.values import Bit, Bits, Num, Wired
from snarkline.circuit.words import UInt8, UInt32, UInt64, Word

Slot = int
Shape = tuple[Any, ...]

WORDS: dict[str, type[Word]] = {word.__name__: word for word in (UInt8, UInt32, UInt64)}
STATIC = (int, str, bytes, type(None))
"""What else a gadget may take: parameters that its template is specialised on."""


class Slots:
    """The slots of some values."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []

    def take_apart(self, cs: Recorder, value: Any) -> Shape:
        """Appends a value's slots; its shape. A number that is not one wire or a constant is allocated.

        Raises CircuitError for wires of another system and for what is no value of a circuit.
        """
        if isinstance(value, Wired) and value.cs is not cs:
            raise cs.error("a wire of another constraint system, or of another gadget, is used here")
        if isinstance(value, Bits):
            self.slots.extend(value.literals)
            return (type(value).__name__, len(value))
        if isinstance(value, Bit):
            self.slots.append(value.literal)
            return ("Bit",)
        if isinstance(value, Num):
            constant = value.constant
            self.slots.append(2 * _column(value.allocated()) if constant is None else -1 - constant)
            return ("Num",)
        if isinstance(value, Iterable) and isinstance(value, Wired):
            value = list(value)  # a batch
        if isinstance(value, list | tuple):
            return (type(value).__name__, *(self.take_apart(cs, item) for item in value))
        if isinstance(value, STATIC):
            return ("static", type(value).__name__, value)
        raise cs.error(f"a gadget does not take or return values of type {type(value).__name__}")


def put_together(cs: Recorder, shape: Shape, slots: Iterator[Slot]) -> Any:
    """The value of a shape from its slots."""
    name = shape[0]
    if name == "Num":
        slot = next(slots)
        return Num(cs, {ONE: -1 - slot} if slot < 0 else {slot >> 1: 1})
    if name == "Bit":
        return Bit(cs, next(slots))
    if name == "Bits" or name in WORDS:
        literals = [next(slots) for _ in range(shape[1])]
        return WORDS[name](cs, literals) if name in WORDS else Bits(cs, literals)
    if name == "static":
        return shape[2]
    items = [put_together(cs, item, slots) for item in shape[1:]]
    return items if name == "list" else tuple(items)


def n_slots(shape: Shape) -> int:
    """How many slots a shape takes."""
    if shape[0] in ("Num", "Bit"):
        return 1
    if shape[0] == "static":
        return 0
    if shape[0] == "Bits" or shape[0] in WORDS:
        return int(shape[1])
    return sum(n_slots(item) for item in shape[1:])


@cache
def bit_slots(shape: Shape) -> npt.NDArray[np.bool_]:
    """Which slots of a shape are bits."""
    if shape[0] in ("list", "tuple"):
        return np.concatenate([np.empty(0, np.bool_), *(bit_slots(item) for item in shape[1:])])
    return np.full(n_slots(shape), shape[0] != "Num")


def _column(number: Num) -> int:
    column = number.column
    assert column is not None
    return column
