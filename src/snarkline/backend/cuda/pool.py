"""Device memory that is reused: blocks that are taken, given back when their last array is dropped, wiped, lent again.

Blocks are never split, so what a repeated proof takes it finds again. All work is queued in order on one queue, so a
block may be lent again while a kernel that was queued before still reads it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from snarkline.backend.cuda.driver import Driver, DriverFault
from snarkline.errors import BudgetError

FINE, COARSE = 512, 2 << 20
"""Blocks are multiples of 512 bytes, from 2 MiB on of 2 MiB, in which the driver gives memory anyway."""
SPARE = 4
"""A block serves requests down to 1 - 1/4 of its size: the sizes of the sums of a proof differ by less."""


class Block(NamedTuple):
    """Memory of the driver. Ordered by size."""

    n_bytes: int
    address: int


class Lent:
    """Owner of a block's arrays. Its end hands the block back, on whatever thread; that calls nothing of CUDA."""

    __slots__ = ("_block", "_returned")

    def __init__(self, block: Block, returned: deque[Block]) -> None:
        self._block, self._returned = block, returned

    def __del__(self) -> None:
        self._returned.append(self._block)


class Pool:
    """The memory of one device. Threads may share it; arrays may be dropped by any thread, which takes no lock.

    `limit` caps lent and idle bytes together, None is no cap. `total_bytes`, `used_bytes` and `peak_bytes` count whole
    blocks; the peak is of those lent.
    """

    def __init__(self, driver: Driver, limit: int | None = None) -> None:
        self._driver, self._limit = driver, limit
        self._returned: deque[Block] = deque()
        self._lock = threading.RLock()
        self._held = False
        self._clean: list[Block] = []
        self._dirty: list[Block] = []
        self._used = self._idle = 0
        self.peak_bytes = 0

    @property
    def limit(self) -> int | None:
        return self._limit

    def take(self, n_bytes: int) -> tuple[int, Lent]:
        """The address of at least `n_bytes`, and what owns them. Raises BudgetError, and DriverFault."""
        unit = FINE if n_bytes < COARSE else COARSE
        size = -(-n_bytes // unit) * unit or unit
        with self._lock:
            if self._returned and not self._held:
                self._settle()
            block = self._find(self._dirty, size) or self._find(self._clean, size)
            if block is None:
                block = self._fresh(size)
            else:
                self._idle -= block.n_bytes
            self._used += block.n_bytes
            if self._used > self.peak_bytes:
                self.peak_bytes = self._used
        return block.address, Lent(block, self._returned)

    @contextmanager
    def apart(self) -> Iterator[list[Block]]:
        """What is given back in the block is not lent again, nor counted as idle, before `give_back`."""
        self._settle()
        blocks: list[Block] = []
        self._held = True
        try:
            yield blocks
        finally:
            blocks.extend(self._returned)
            self._returned.clear()
            self._held = False

    def give_back(self, blocks: Sequence[Block]) -> None:
        """What `apart` kept."""
        self._returned.extend(blocks)

    def wipe(self, until: Callable[[], bool] = lambda: False) -> int:
        """Queue the zeroing of all idle blocks that were lent since they were zeroed, or `until` then; how many bytes
        that is."""
        n_bytes = 0
        with self._lock:
            self._settle()
            while self._dirty and not until():
                block = self._dirty[-1]
                self._driver.zero(block.address, block.n_bytes)
                self._dirty.pop()
                insort(self._clean, block)
                n_bytes += block.n_bytes
        return n_bytes

    def trim(self, keep_bytes: int = 0) -> None:
        """Give idle blocks back to the driver, wiped, the largest first, until at most `keep_bytes` are idle."""
        with self._lock:
            self._settle()
            while self._idle > keep_bytes:
                from_dirty = bool(self._dirty) and (not self._clean or self._dirty[-1] > self._clean[-1])
                idle = self._dirty if from_dirty else self._clean
                block = idle[-1]
                if from_dirty:
                    self._driver.zero(block.address, block.n_bytes)
                self._driver.free(block.address)
                idle.pop()
                self._idle -= block.n_bytes

    def free_all_blocks(self) -> None:
        self.trim()

    def forget(self) -> None:
        """The context is gone, and all its memory with it."""
        self._clean, self._dirty, self._idle = [], [], 0

    def used_bytes(self) -> int:
        self._settle()
        return self._used

    def total_bytes(self) -> int:
        return self._used + self._idle

    def available(self) -> int:
        """What can still be taken: within the limit, idle or free on the device."""
        self._settle()
        free = self._driver.memory()[0] + self._idle
        return free if self._limit is None else max(0, min(free, self._limit - self._used))

    def _settle(self) -> None:
        with self._lock:
            while self._returned and not self._held:
                block = self._returned.popleft()
                self._used -= block.n_bytes
                self._idle += block.n_bytes
                insort(self._dirty, block)

    def _find(self, blocks: list[Block], size: int) -> Block | None:
        index = bisect_left(blocks, (size, 0))
        if index < len(blocks) and blocks[index].n_bytes * (SPARE - 1) <= size * SPARE:
            return blocks.pop(index)
        return None

    def _fresh(self, size: int) -> Block:
        if self._limit is not None:
            if self._used + size > self._limit:
                raise self._refused(size)
            self.trim(self._limit - self._used - size)
        try:
            return Block(size, self._driver.allocate(size))
        except DriverFault as fault:
            if not fault.out_of_memory:
                raise
        self.trim()  # the idle blocks may be what is missing; the device's memory is one piece again
        try:
            return Block(size, self._driver.allocate(size))
        except DriverFault as fault:
            if not fault.out_of_memory:
                raise
        raise self._refused(size)

    def free_on_device(self) -> tuple[int, int]:
        """Free and all bytes of the device; zeros where it does not even say that."""
        try:
            return self._driver.memory()
        except DriverFault:
            return 0, 0

    def _refused(self, size: int) -> BudgetError:
        free, total = self.free_on_device()
        held = f"{self._used} bytes are in use here, {free} of {total} are free on {self._driver.name}"
        if self._limit is not None and self._used + size > self._limit:
            return BudgetError(size, self._limit, held)
        return BudgetError(size, self._used + free, held)
