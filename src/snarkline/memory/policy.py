"""What happens to a buffer when its last reference is dropped."""

from __future__ import annotations

from enum import Enum

from snarkline.memory.choice import chosen


class Release(Enum):
    """The ways back. What each becomes where the system lacks a call, and for special buffers: docs/memory.md.

    SYNC: unmapped by the dropping thread: the baseline.
    CLEAR: `Lease.release()` before return as it is usually written: the buffer counts as empty and keeps its capacity,
        which the dropping thread unmaps all the same.
    CLEAR_CAPACITY: `Lease.release()` gives the capacity back: the caller waits, only earlier.
    MADVISE: the dropping thread gives the pages back (MADV_DONTNEED) and keeps the mapping for the next taker.
    MADVISE_FREE: the same with MADV_FREE: the kernel takes the pages when it needs them.
    DETACHED: the native release thread unmaps in pieces.
    RECYCLE: pooled with its pages for the next taker; goes the way of DETACHED when idle or over budget.
    """

    SYNC = "sync"
    CLEAR = "clear"
    CLEAR_CAPACITY = "clear-capacity"
    MADVISE = "madvise"
    MADVISE_FREE = "madvise-free"
    DETACHED = "detached"
    RECYCLE = "recycle"

    @classmethod
    def of(cls, value: Release | str) -> Release:
        """The policy, or the one of that value. Raises InputError."""
        return chosen(cls, value, "release policy")

    @property
    def way(self) -> str:
        """The native core's name of what happens at the drop."""
        return _WAYS[self]

    @property
    def empties_pages(self) -> bool:
        """Gives pages back under a mapping that stays: never for a mapping that a device knows."""
        return self in (Release.MADVISE, Release.MADVISE_FREE)


_WAYS = {
    Release.SYNC: "here",
    Release.CLEAR: "here",
    Release.CLEAR_CAPACITY: "here",
    Release.MADVISE: "empty",
    Release.MADVISE_FREE: "empty_lazily",
    Release.DETACHED: "detached",
    Release.RECYCLE: "pool",
}
