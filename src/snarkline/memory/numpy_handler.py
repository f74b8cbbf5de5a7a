"""NumPy's own arrays on an arena (NEP 49), so that any program gives memory back off its critical path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from snarkline.memory.arena import Arena
from snarkline.memory.policy import Release
from snarkline.native import core
from snarkline.threads import usable_threads

# The handlers of this context's blocks, each with what was in force before it. NumPy keeps its own likewise.
_open_blocks: ContextVar[tuple[tuple[object, object], ...]] = ContextVar("numpy_arrays", default=())


@contextlib.contextmanager
def numpy_arrays(
    release: Release | str = Release.RECYCLE, *, arena: Arena | None = None, threshold_bytes: int = 1 << 20
) -> Iterator[Arena]:
    """Arrays of `threshold_bytes` or more that NumPy makes inside the block live on `arena`, by default on one of
    their own, and take their way when they are dropped, also after the block.

    Holds for the current context: a thread that is started inside has to enter a block of its own. Where the budget has
    no room, NumPy raises its MemoryError. Blocks may be left in any order.
    """
    policy = Release.of(release)
    arena = arena or Arena(policy)
    threads = usable_threads()
    handler = core.numpy_handler(arena.native, policy.way, max(threshold_bytes, 1), threads)
    _open_blocks.set((*_open_blocks.get(), (handler, core.set_numpy_handler(_api(), handler))))
    try:
        yield arena
    finally:
        _leave(handler)


def _leave(handler: object) -> None:
    """Puts back what was in force before the block, or leaves that to the block that was entered next."""
    blocks = _open_blocks.get()
    for i, (ours, before) in enumerate(blocks):
        if ours is not handler:
            continue
        later = blocks[i + 1 :]
        if later:
            later = ((later[0][0], before), *later[1:])
        else:
            core.set_numpy_handler(_api(), before)
        _open_blocks.set((*blocks[:i], *later))


def _api() -> object:
    module = cast(Any, np)._core if hasattr(np, "_core") else cast(Any, np).core
    return module._multiarray_umath._ARRAY_API
