"""Calls of one gadget, one after the other, joined to runs of several instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from snarkline.circuit.wiring import Ints
from snarkline.r1cs.template import Template


@dataclass(frozen=True, eq=False)
class Instances:
    """A run before its wires have their final numbers: `first` is the first instance's first own wire.

    `joins` says whether it may become one run with others: values are given to runs of one instance only.
    """

    template: int
    count: int
    first: int
    base: Ints
    stride: Ints
    table: Ints | None
    path: str
    joins: bool

    def part(self, start: int, stop: int, n_aux: int) -> Instances:
        """Instances start to stop."""
        table = None if self.table is None else self.table[start:stop]
        base = self.base + start * self.stride if table is None else table[0]
        return replace(self, count=stop - start, first=self.first + start * n_aux, base=base, table=table)


def merged(runs: Sequence[Instances], templates: Sequence[Template]) -> Iterator[Instances]:
    """The runs, those of one instance joined where the same template follows and its ports move on by arithmetic."""
    at = 0
    while at < len(runs):
        run, length = runs[at], 1
        n_aux = templates[run.template].n_aux
        while at + length < len(runs) and _follows(run, runs[at + length], length, n_aux):
            following = runs[at + length]
            if length == 1:
                run = replace(run, stride=following.base - run.base)
            elif (run.base + length * run.stride != following.base).any():
                break
            length += 1
        yield replace(run, count=length) if length > 1 else runs[at]
        at += length


def _follows(run: Instances, other: Instances, length: int, n_aux: int) -> bool:
    """Whether the other is the next single instance of the same template, called from the same place."""
    alike = (run.template, run.path, 1, 1) == (other.template, other.path, run.count, other.count) and run.joins
    return alike and run.table is None and other.table is None and other.first == run.first + length * n_aux
