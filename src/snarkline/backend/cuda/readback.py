"""What the host reads while the device goes on: copies into page-locked memory, and the event behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.driver import Array, Event
from snarkline.errors import RegistrationError
from snarkline.memory import Arena, Lease

if TYPE_CHECKING:
    from snarkline.backend.cuda.gpu import Gpu

SLOT_BYTES, SLOTS, MAX_LEASES = 64 << 10, 16, 8
"""The sums of all windows of three tables are 40 KB at most; a proof has a few readings under way, or a few for each
piece of its sums."""


class Inbox:
    """Page-locked slots for readings. Where there is none to be had the driver copies when the reading is awaited.

    For one thread at a time.
    """

    def __init__(self, gpu: Gpu, arena: Arena) -> None:
        self._gpu, self._arena = gpu, arena
        self._leases: list[Lease] = []
        self._slots: list[npt.NDArray[np.uint8]] = []
        self._refused = False

    def read(self, arrays: Sequence[Array]) -> SlotReading | PlainReading:
        """The arrays as they are behind all work that is queued now."""
        slot = self._slot(sum(array.nbytes for array in arrays))
        if slot is None:
            return PlainReading(self._gpu, arrays)
        return SlotReading(self._gpu, self._slots, slot, arrays)

    def close(self) -> None:
        self._slots.clear()
        self._leases.clear()

    def _slot(self, n_bytes: int) -> npt.NDArray[np.uint8] | None:
        if not self._slots and len(self._leases) < MAX_LEASES and not self._refused:
            try:
                lease = self._arena.lease(SLOTS * SLOT_BYTES, np.uint8, secret=True, registered=True)
                self._leases.append(lease)
                self._slots.extend(lease.array.reshape(SLOTS, SLOT_BYTES))
            except RegistrationError:
                self._refused = True
        return self._slots.pop() if self._slots and n_bytes <= SLOT_BYTES else None


class SlotReading:
    """A `Reading` in a slot, which is lent again when this object goes: by then it has been awaited, or its queue has
    been waited for by later ones."""

    def __init__(
        self, gpu: Gpu, slots: list[npt.NDArray[np.uint8]], slot: npt.NDArray[np.uint8], arrays: Sequence[Array]
    ) -> None:
        self._gpu, self._slots, self._slot = gpu, slots, slot
        self._parts: list[npt.NDArray[Any]] = []
        at = 0
        for array in arrays:
            part = slot[at : at + array.nbytes]
            gpu.read_into(part, array)
            self._parts.append(part.view(array.dtype).reshape(array.shape))
            at += array.nbytes
        self._event: Event = gpu.record_here()

    def ready(self) -> bool:
        return self._gpu.passed(self._event)

    def wait(self) -> list[npt.NDArray[Any]]:
        self._gpu.await_event(self._event)
        arrays = [part.copy() for part in self._parts]
        for part in self._parts:
            part.fill(0)
        return arrays

    def __del__(self) -> None:
        self._slots.append(self._slot)


class PlainReading:
    """A `Reading` that copies when it is awaited. Nothing may be written to the arrays before."""

    def __init__(self, gpu: Gpu, arrays: Sequence[Array]) -> None:
        self._gpu, self._arrays = gpu, arrays
        self._event: Event = gpu.record_here()

    def ready(self) -> bool:
        return self._gpu.passed(self._event)

    def wait(self) -> list[npt.NDArray[Any]]:
        self._gpu.await_event(self._event)
        return [self._gpu.download(array) for array in self._arrays]
