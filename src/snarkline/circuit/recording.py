"""Gadgets: functions that record constraints, and the templates that they leave behind.

A template depends on which of a gadget's inputs are constants, negated, or the same wire: constants fold, and a
coefficient can cancel where two inputs are one wire. So inputs become a *pattern*, and there is a template for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snarkline.circuit.builder import Builder, Gadget, Returned
from snarkline.circuit.slots import Shape, Slot, Slots, bit_slots, put_together
from snarkline.circuit.where import located
from snarkline.circuit.wiring import Ints
from snarkline.curves.curve import Curve
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


@dataclass(frozen=True, eq=False)
class Match:
    """Inputs as a pattern, the wires of its ports, and the slot in which each port appears first."""

    pattern: Pattern
    ports: Ints
    places: Ints


def match(shape: Shape, slots: Ints, constants: dict[int, Slot], is_bit: Callable[[int], bool]) -> Match:
    """The pattern of the inputs of an instance, as `Wiring` has them; `is_bit` says which wires of numbers are bits."""
    variable = np.flatnonzero(slots > 1)
    wires, first, which = np.unique(slots[variable] >> 1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    column = np.empty_like(order)
    column[order] = 1 + np.arange(len(order))
    local = slots.copy()
    local[variable] = 2 * column[which] | slots[variable] & 1
    ports = wires[order]
    bits = np.zeros(len(ports), dtype=np.bool_)
    bits[column[which[bit_slots(shape)[variable]]] - 1] = True
    bits[[i for i in np.flatnonzero(~bits).tolist() if is_bit(int(ports[i]))]] = True
    numbers: list[Slot] = local.tolist()
    for place, constant in constants.items():
        numbers[place] = constant
    pattern = Pattern(shape, tuple(numbers), tuple((1 + np.flatnonzero(bits)).tolist()))
    return Match(pattern, ports, variable[first[order]])


@dataclass(frozen=True, eq=False)
class Recording:
    """A gadget recorded for a pattern. `outputs` are slots of the template's columns, `given` the offsets of those of
    its own wires whose values come with the inputs."""

    template: Template
    shape: Shape
    outputs: tuple[Slot, ...]
    given: Ints

    @cached_property
    def constants(self) -> dict[int, Slot]:
        """The outputs that are constant numbers."""
        return {place: slot for place, slot in enumerate(self.outputs) if slot < 0}

    @cached_property
    def slots(self) -> Ints:
        """The outputs with -1 for constant numbers."""
        return np.array([max(slot, -1) for slot in self.outputs], dtype=np.int64)

    def wired(self, ports: Ints, first: int) -> Ints:
        """The slots that an instance returns, whose own wires begin at `first`."""
        columns, n_ports = self.slots >> 1, self.template.n_ports
        wires = first - 1 - n_ports + columns
        handed_on = np.flatnonzero((columns > 0) & (columns <= n_ports))
        wires[handed_on] = ports[columns[handed_on] - 1]
        return np.where(self.slots > 1, 2 * wires | self.slots & 1, self.slots)

    def steps(self, ports: Ints) -> Ints:
        """By how much the wires of the outputs move on from one instance to the next, from those of the ports."""
        columns, n_ports = self.slots >> 1, self.template.n_ports
        steps = np.full(len(columns), self.template.n_aux, dtype=np.int64)
        handed_on = np.flatnonzero((columns > 0) & (columns <= n_ports))
        steps[handed_on] = ports[columns[handed_on] - 1]
        steps[self.slots <= 1] = 0
        return steps


def record(curve: Curve, gadget: Gadget[Any], pattern: Pattern) -> Recording:
    """Runs the gadget for a pattern. Raises CircuitError for what cannot be recorded."""
    cs = Builder(curve, gadget.name, pattern.n_ports, frozenset(pattern.bit_ports))
    inputs = put_together(cs, pattern.shape, iter(pattern.slots))
    with located(lambda: cs.path):
        value = gadget(cs, *inputs)
        outputs = Slots()
        shape = outputs.take_apart(cs, value)
    return Recording(cs.template(), shape, tuple(outputs.slots), cs.given_offsets())
