"""The face of the compiled core."""

import functools
import os

from . import _core as core

__all__ = ["core", "usable_threads"]


@functools.cache
def usable_threads() -> int:
    """The processors that this process may use: how many threads a kernel takes unless it is told otherwise."""
    return len(os.sched_getaffinity(0))
