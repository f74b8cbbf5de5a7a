"""Taking memory within a budget: who waits, for what, how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from snarkline.errors import BudgetError
from snarkline.memory.stats import ArenaStats
from snarkline.native import core
from snarkline.trace import span

UNLIMITED = 2**63 - 1

# Wake-ups are lost between a refusal and the wait for its end; this is what they cost.
_POLL_S = 0.01


@dataclass(frozen=True)
class Budget:
    """`n_bytes` caps what is lent, pooled and pending together. While more than `backlog_bytes` are pending nothing
    fresh is mapped: the taker waits for the release thread, never the one who drops. A taker waits `deadline_s`."""

    n_bytes: int = UNLIMITED
    backlog_bytes: int = UNLIMITED
    deadline_s: float = 30.0


@dataclass(frozen=True)
class Request:
    """What is taken: see `csrc/host/arena.h`."""

    n_bytes: int
    way: str
    secret: bool = False
    shared: bool = False
    registered: bool = False
    threads: int = 1


def take(
    arena: core.Arena,
    request: Request,
    budget: Budget,
    make_room: Callable[[float], bool],
    stats: Callable[[], ArenaStats],
) -> core.Lease:
    """Takes memory, or waits for it.

    `make_room(timeout)` lets go of what waits for Python (fences, registrations) and says whether it did.
    Raises BudgetError at once when the request can never fit and after the deadline else, MemoryError when the kernel
    refuses.
    """
    if request.n_bytes > budget.n_bytes:
        raise BudgetError(request.n_bytes, budget.n_bytes, "it can never fit")
    taken = _try(arena, request)
    if isinstance(taken, core.Lease):
        return taken
    with span("memory.wait", bytes=request.n_bytes) as waiting:
        begun = time.monotonic()
        while not isinstance(taken, core.Lease):
            waited = time.monotonic() - begun
            waiting.attributes["cause"] = cause = _cause(stats(), taken)
            if waited >= budget.deadline_s:
                raise BudgetError(request.n_bytes, budget.n_bytes, f"after {waited:.1f} s {cause}")
            if not make_room(_POLL_S):
                arena.wait(_POLL_S)
            taken = _try(arena, request)
    return taken


def _try(arena: core.Arena, request: Request) -> core.Lease | str:
    for last in (False, True):
        taken = arena.take(
            request.n_bytes, request.way, request.secret, request.shared, request.registered, request.threads
        )
        if isinstance(taken, core.Lease) or taken in ("budget", "backlog"):
            return taken
        if not last:  # what is pooled and pending may be what the kernel lacks
            arena.trim(0)
            arena.drain(1.0)
    raise MemoryError(f"the kernel refuses a mapping of {request.n_bytes} bytes: {taken}")


def _cause(stats: ArenaStats, refusal: str) -> str:
    """Who holds the memory that the taker waits for."""
    if refusal == "backlog":
        return f"the release thread has {stats.pending_bytes} bytes before it"
    held = f", {stats.held_bytes} of them until device work is over" if stats.held_bytes else ""
    return (
        f"{stats.lent_blocks} buffers with {stats.lent_bytes} bytes are in use{held}; {stats.pending_bytes} bytes wait "
        f"for the release thread and {stats.pooled_bytes} are pooled"
    )
