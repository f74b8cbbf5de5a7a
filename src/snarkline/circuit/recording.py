"""Gadgets: functions that record constraints, and the templates that they leave behind.

A template depends on which of a gadget's inputs are constants, negated, or the same wire: constants fold, and a
coefficient can cancel where two inputs are one wire. So inputs become a *pattern*, and there is a template for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.circuit.builder import Builder, Gadget, Returned
from snarkline.circuit.slots import Shape, Slot, Slots, put_together
from snarkline.curves.curve import Curve
from snarkline.errors import CircuitError
from snarkline.r1cs.template import Template


def gadget(function: Callable[..., Returned]) -> Gadget[Returned]:
    """Decorator: makes a gadget of a function `f(cs, *inputs)`.

    It takes and returns bits, numbers, words, arrays of bits, and lists and tuples of these; ints, strings and bytes
    among the inputs are parameters. What it records may depend on nothing but the kinds of its inputs and on the
    parameters.
    """
    return Gadget(function)


@dataclass(frozen=True)
class Pattern:
    """Inputs up to the choice of wires: `shape` is that of the tuple of inputs; `slots` are theirs with port columns in
    place of wires, numbered from 1 in order of first appearance; `bit_ports` are the ports that are bits."""

    shape: Shape
    slots: tuple[Slot, ...]
    bit_ports: tuple[int, ...]

    @property
    def n_ports(self) -> int:
        return max((slot >> 1 for slot in self.slots if slot > 1), default=0)


def match(shape: Shape, slots: Sequence[Slot], is_bit: Callable[[int], bool]) -> tuple[Pattern, list[int]]:
    """The pattern of inputs, and the wires of its ports; `is_bit` says which wires are bits."""
    columns: dict[int, int] = {}
    local: list[Slot] = []
    for slot in slots:
        wire = slot >> 1
        local.append(slot if wire <= 0 else 2 * columns.setdefault(wire, len(columns) + 1) | slot & 1)
    bits = tuple(column for wire, column in columns.items() if is_bit(wire))
    return Pattern(shape, tuple(local), bits), list(columns)


@dataclass(frozen=True, eq=False)
class Recording:
    """A gadget recorded for a pattern. `outputs` are slots of the template's columns, `given` the offsets of those of
    its own wires whose values come with the inputs."""

    template: Template
    shape: Shape
    outputs: tuple[Slot, ...]
    kinds: str
    given: npt.NDArray[np.int64]


def record(curve: Curve, gadget: Gadget[Any], pattern: Pattern) -> Recording:
    """Runs the gadget for a pattern. Raises CircuitError for what cannot be recorded."""
    cs = Builder(curve, gadget.name, pattern.n_ports, frozenset(pattern.bit_ports))
    inputs = put_together(cs, pattern.shape, iter(pattern.slots))
    try:
        value = gadget(cs, *inputs)
    except RecursionError:
        raise CircuitError(gadget.name, "it calls itself without end") from None
    outputs = Slots([], [])
    shape = outputs.take_apart(cs, value)
    return Recording(cs.template(), shape, tuple(outputs.slots), "".join(outputs.kinds), cs.given_offsets())
