"""What happens to a buffer when its last reference is dropped."""

from __future__ import annotations

from enum import Enum


class Release(Enum):
    """The ways back, from the plainest to the one that costs the dropping thread least.

    SYNC: unmapped by the dropping thread, the GIL released: the baseline.
    CLEAR: `Lease.clear()` before return, as it is usually written: the lease counts as empty and keeps its capacity,
        which is unmapped by the dropping thread all the same.
    CLEAR_CAPACITY: `Lease.clear()` gives the capacity back as well: the caller waits, only earlier.
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

    @property
    def way(self) -> str:
        """The native core's name of what happens at the drop."""
        return _WAYS[self]


_WAYS = {
    Release.SYNC: "here",
    Release.CLEAR: "here",
    Release.CLEAR_CAPACITY: "here",
    Release.MADVISE: "empty",
    Release.MADVISE_FREE: "empty_lazily",
    Release.DETACHED: "detached",
    Release.RECYCLE: "pool",
}
