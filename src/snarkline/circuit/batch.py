"""Arrays over instances: what `map` and `scan` take and return.

A batch of 100,000 values is two rows of integers, or a table of them; no Python object stands for one of its values
until it is taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from snarkline.circuit.recorder import Recorder
from snarkline.circuit.slots import Shape, Slots, n_slots, put_together
from snarkline.circuit.values import Wired
from snarkline.circuit.wiring import Wiring


class Batch(Wired):
    """`len(batch)` values of one shape. Indexing gives a value, slicing a batch."""

    __slots__ = ("shape", "wiring")

    def __init__(self, cs: Recorder, shape: Shape, wiring: Wiring) -> None:
        super().__init__(cs)
        self.shape = shape
        self.wiring = wiring

    @classmethod
    def of(cls, cs: Recorder, values: Sequence[Any]) -> Batch:
        """Values of one shape as a batch. Raises CircuitError where their shapes or their constants differ."""
        if not values:
            raise cs.error("a batch has at least one value")
        taken = [Slots() for _ in values]
        shapes = [slots.take_apart(cs, value) for slots, value in zip(taken, values, strict=True)]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is not None:
            raise cs.error(f"value {other} of a batch has another shape than value 0")
        constants = {j: slot for j, slot in enumerate(taken[0].slots) if slot < 0}
        for i, slots in enumerate(taken):
            if {j: slot for j, slot in enumerate(slots.slots) if slot < 0} != constants:
                raise cs.error(f"constant numbers of value {i} of a batch are not those of value 0: allocate them")
        rows = np.array([[max(slot, -1) for slot in slots.slots] for slots in taken], dtype=np.int64)
        return cls(cs, shapes[0], Wiring.of_rows(rows, constants))

    def __len__(self) -> int:
        return self.wiring.count

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Batch: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                rows = self.wiring.rows()[index]
                return Batch(self.cs, self.shape, Wiring.of_rows(rows, self.wiring.constants))
            return Batch(self.cs, self.shape, self.wiring.part(start, max(start, stop)))
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(f"value {index} of a batch of {len(self)}")
        return put_together(self.cs, self.shape, iter(self.wiring.row(i)))

    def groups(self, size: int) -> Batch:
        """Tuples of `size` values that follow one another: with 2, the pairs of a level of a tree."""
        if size < 1 or len(self) % size:
            raise self.cs.error(f"{len(self)} values do not go into groups of {size}")
        return Batch(self.cs, ("tuple", *[self.shape] * size), self.wiring.grouped(size))

    def part(self, index: int) -> Batch:
        """Item `index` of every value, for a batch of lists or tuples."""
        if self.shape[0] not in ("list", "tuple") or not 0 <= index < len(self.shape) - 1:
            raise self.cs.error(f"the values of this batch have no item {index}")
        start = sum(n_slots(shape) for shape in self.shape[1 : 1 + index])
        item: Shape = self.shape[1 + index]
        return Batch(self.cs, item, self.wiring.columns(start, start + n_slots(item)))
