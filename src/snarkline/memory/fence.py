"""Buffers that a device still reads are kept until it is done."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Protocol

import numpy.typing as npt

_POLL_S = 0.001


class Fence(Protocol):
    """A point in a device's work. A fence whose context is gone is done: nobody reads any more."""

    def done(self) -> bool:
        """Whether the device has passed the point; does not block."""

    def wait(self, timeout: float) -> bool:
        """Blocks until the device has passed the point, at most `timeout` seconds; whether it has."""


class HeldBuffers:
    """Arrays with the fences that they are held for.

    Fences belong to Python, so no native thread looks at them: the arena polls whenever it is called.
    """

    def __init__(self) -> None:
        self._entries: deque[tuple[Fence, npt.NDArray[Any]]] = deque()
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, array: npt.NDArray[Any], fence: Fence) -> None:
        self._entries.append((fence, array))

    def count(self, array: npt.NDArray[Any]) -> int:
        """References that are held here to this very object."""
        return sum(held is array for _, held in list(self._entries))

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for _, array in list(self._entries))

    def settle(self) -> bool:
        """Lets go of every buffer whose fence is done; whether there was one. An error of a fence keeps its buffer."""
        if os.getpid() != self._process:  # a forked child's copies are read by no device
            self._entries.clear()
            return True
        let_go = False
        for _ in range(len(self._entries)):
            try:
                entry = self._entries.popleft()
            except IndexError:  # another thread was quicker
                break
            done = False
            try:
                done = entry[0].done()
            finally:
                if not done:
                    self._entries.append(entry)
            let_go |= done
            del entry
        return let_go

    def wait(self, timeout: float) -> bool:
        """True when no buffer is held any more within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        self.settle()
        while self._entries:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if not self._entries[0][0].wait(left) or not self.settle():
                time.sleep(min(left, _POLL_S))
        return True
