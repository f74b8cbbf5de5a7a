"""An arena: NumPy arrays over mappings that are given back off the critical path."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.errors import BudgetError
from snarkline.memory.policy import Release
from snarkline.native import core

_UNLIMITED = 2**63 - 1


@dataclass(frozen=True)
class ArenaStats:
    """Where an arena's memory is, and what it did so far. Bytes count whole mappings.

    `lent` is in use, `pooled` waits for the next taker, `pending` for the release thread; `peak_bytes` is the highest
    sum of the three. `fresh_mappings` counts what was asked of the kernel, `recycled_blocks` what was not.
    """

    lent_bytes: int
    lent_blocks: int
    pooled_bytes: int
    pooled_blocks: int
    pending_bytes: int
    pending_blocks: int
    peak_bytes: int
    fresh_mappings: int
    fresh_bytes: int
    recycled_blocks: int
    recycled_bytes: int
    released_bytes: int
    wiped_bytes: int
    release_s: float
    wipe_s: float


class Arena:
    """Lends arrays. `budget_bytes` caps lent, pooled and pending memory together; a taker waits up to `deadline_s`.

    `pages` is "auto" (2 MiB where the system allows) or "4k". Safe to use from several threads.
    """

    def __init__(
        self,
        release: Release | str = Release.RECYCLE,
        budget_bytes: int | None = None,
        pages: str = "auto",
        *,
        deadline_s: float = 60.0,
        idle_s: float = 30.0,
        threads: int | None = None,
    ) -> None:
        self.release = Release(release)
        self.budget_bytes = budget_bytes
        self.deadline_s = deadline_s
        self._threads = threads or len(os.sched_getaffinity(0))
        limit = _UNLIMITED if budget_bytes is None else budget_bytes
        self._core = core.Arena.create(limit, _UNLIMITED, idle_s, pages != "4k")

    def empty(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.uint64, *, secret: bool = False
    ) -> npt.NDArray[Any]:
        """An uninitialised C-ordered array. When its last view is dropped the buffer goes the policy's way.

        Secret buffers are zeroed before they are reused or returned.
        """
        kind = np.dtype(dtype)
        n_bytes = math.prod(shape if isinstance(shape, tuple) else (shape,)) * kind.itemsize
        if n_bytes == 0:
            return np.empty(shape, kind)
        return np.ndarray(shape, kind, self._take(n_bytes, secret))

    def _take(self, n_bytes: int, secret: bool) -> core.Lease:
        if self.budget_bytes is not None and n_bytes > self.budget_bytes:
            raise BudgetError(f"{n_bytes} bytes were asked for and the arena's budget is {self.budget_bytes} bytes")
        deadline = time.monotonic() + self.deadline_s
        while True:
            taken = self._core.take(n_bytes, self.release.way, secret, False, self._threads)
            if not isinstance(taken, str):
                return taken
            if time.monotonic() > deadline:
                raise BudgetError(f"{n_bytes} bytes could not be had within {self.deadline_s} s: {self.stats()}")
            self._core.wait(0.05)

    def stats(self) -> ArenaStats:
        """A snapshot of the arena's accounts."""
        return ArenaStats(**self._core.stats())

    def drain(self, timeout: float) -> bool:
        """True when no release is pending within `timeout` seconds."""
        return self._core.drain(timeout)

    def close(self) -> None:
        """Gives the pool back. Arrays that are still in use stay valid, and follow when they are dropped."""
        self._core.close()
