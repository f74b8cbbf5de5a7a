"""How many threads a process may use."""

from __future__ import annotations

import functools
import os


@functools.cache
def usable_threads() -> int:
    """The processors that this process may run on: what a kernel takes unless it is told otherwise."""
    return len(os.sched_getaffinity(0))
