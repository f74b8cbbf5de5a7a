"""How the inputs of many instances follow from one another: by arithmetic, or from a table.

Slots are those of `slots.py`. Wires are moved along an arithmetic progression by adding the stride to the wire, so that
negation and kind of a slot are the same in all instances; constants have stride 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from snarkline.circuit.slots import Slot

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Wiring:
    """The slots of `count` instances, `len(base)` for each.

    Slot j of instance i is base[j] with i * stride[j] added to its wire, or table[i, j] where there is a table.
    Constants of numbers, which may be larger than an element of an array, are in `constants` by slot; they are the same
    in every instance.
    """

    count: int
    base: Ints
    stride: Ints
    table: Ints | None
    constants: dict[int, Slot]

    def __post_init__(self) -> None:
        assert self.base.shape == self.stride.shape

    @property
    def width(self) -> int:
        return len(self.base)

    @classmethod
    def same(cls, count: int, slots: list[Slot]) -> Wiring:
        """The same slots in every instance."""
        constants = {j: slot for j, slot in enumerate(slots) if slot < 0} if slots and min(slots) < 0 else {}
        base = np.array([max(slot, -1) for slot in slots] if constants else slots, dtype=np.int64)
        return cls(count, base, np.zeros_like(base), None, constants)

    @classmethod
    def of_rows(cls, rows: Ints, constants: dict[int, Slot]) -> Wiring:
        """One row of slots for each instance; arithmetic if the rows are."""
        steps = np.diff(rows, axis=0)
        arithmetic = len(rows) == 1 or (bool((steps == steps[0]).all()) and not (steps[0] & 1).any())
        if len(rows) == 1:
            return cls(1, rows[0], np.zeros_like(rows[0]), None, constants)
        if arithmetic and ((rows[0] > 1) | (steps[0] == 0)).all():
            return cls(len(rows), rows[0], steps[0] >> 1, None, constants)
        return cls(len(rows), rows[0], np.zeros_like(rows[0]), rows, constants)

    def rows(self, start: int = 0, stop: int | None = None) -> Ints:
        """The slots of instances start to stop, one row each."""
        stop = self.count if stop is None else stop
        if self.table is not None:
            return self.table[start:stop]
        return self.base + 2 * np.arange(start, stop, dtype=np.int64)[:, None] * self.stride

    def row(self, i: int) -> list[Slot]:
        """The slots of instance i."""
        slots: list[Slot] = self.rows(i, i + 1)[0].tolist()
        for j, constant in self.constants.items():
            slots[j] = constant
        return slots

    def part(self, start: int, stop: int) -> Wiring:
        """Instances start to stop."""
        if self.table is not None:
            return Wiring.of_rows(self.table[start:stop], self.constants)
        return Wiring(stop - start, self.base + 2 * start * self.stride, self.stride, None, self.constants)

    def columns(self, start: int, stop: int) -> Wiring:
        """Slots start to stop of every instance."""
        constants = {j - start: slot for j, slot in self.constants.items() if start <= j < stop}
        table = None if self.table is None else self.table[:, start:stop]
        return Wiring(self.count, self.base[start:stop], self.stride[start:stop], table, constants)

    def grouped(self, size: int) -> Wiring:
        """`size` instances one after the other as one."""
        count, offsets = self.count // size, range(size)
        constants = {i * self.width + j: slot for i in offsets for j, slot in self.constants.items()}
        if self.table is not None:
            return Wiring.of_rows(self.table[: count * size].reshape(count, -1), constants)
        base = np.concatenate([self.base + 2 * i * self.stride for i in offsets])
        return Wiring(count, base, np.tile(size * self.stride, size), None, constants)


def beside(parts: list[Wiring]) -> Wiring:
    """The slots of several wirings of the same count, one after the other in each instance."""
    if len(parts) == 1:
        return parts[0]
    constants: dict[int, Slot] = {}
    at = 0
    for part in parts:
        constants.update({at + j: slot for j, slot in part.constants.items()})
        at += part.width
    base, stride = (np.concatenate([getattr(part, name) for part in parts]) for name in ("base", "stride"))
    tables = any(part.table is not None for part in parts)
    table = np.concatenate([part.rows() for part in parts], axis=1) if tables else None
    return Wiring(parts[0].count, base, stride, table, constants)


def after(parts: list[Wiring]) -> Wiring:
    """The instances of several wirings, one after the other. Their constants are the same."""
    parts = [part for part in parts if part.count]
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows() for part in parts])
    return Wiring.of_rows(rows, parts[0].constants)


def segments(wiring: Wiring) -> list[tuple[int, int]]:
    """The instances in maximal stretches whose inputs have one pattern: the same constants, negations and aliases."""
    if wiring.count == 1:
        return [(0, 1)]
    if wiring.table is None:
        if not _wires_may_meet(wiring):
            return [(0, wiring.count)]
        rows = wiring.rows()
    else:
        rows = wiring.table
    patterns = _patterns(rows)
    starts = [0, *(np.flatnonzero((patterns[1:] != patterns[:-1]).any(axis=1)) + 1).tolist(), wiring.count]
    return list(pairwise(starts))


def _wires_may_meet(wiring: Wiring) -> bool:
    """Whether two slots with different strides are one wire in some instance."""
    variable = wiring.base > 1
    wires, strides = wiring.base[variable] >> 1, wiring.stride[variable]
    groups = [(int(stride), wires[strides == stride]) for stride in np.unique(strides)]
    for k, (stride, bases) in enumerate(groups):
        for other_stride, others in groups[:k]:
            gap, step = np.subtract.outer(others, bases), stride - other_stride
            meeting = (gap % step == 0) & (gap // step >= 0) & (gap // step < wiring.count)
            if meeting.any():
                return True
    return False


def _patterns(rows: Ints) -> Ints:
    """For every slot the place of the first slot of its wire in the row, with its negation; constants as they are."""
    wires = rows >> 1
    order = np.argsort(wires, axis=1, kind="stable")
    ordered = np.take_along_axis(wires, order, axis=1)
    begins = np.ones(rows.shape, dtype=np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    begin = np.maximum.accumulate(np.where(begins, np.arange(rows.shape[1]), 0), axis=1)
    first = np.empty_like(order)
    np.put_along_axis(first, order, np.take_along_axis(order, begin, axis=1), axis=1)
    return np.where(rows > 1, 2 * first | rows & 1, -1 - rows)
