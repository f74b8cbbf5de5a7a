"""An arena's accounts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArenaStats:
    """Where an arena's memory is and what it has done so far. Bytes count whole mappings.

    `lent` is in use, `pooled` waits for the next taker, `pending` for the release thread; `peak_bytes` is the highest
    sum of the three. `fresh` was mapped, `recycled` was lent again. `held_bytes` (part of `lent_bytes`) waits for
    device work. `release_s` and `wipe_s` are the release thread's time.
    """

    lent_bytes: int
    lent_blocks: int
    pooled_bytes: int
    pooled_blocks: int
    pending_bytes: int
    pending_blocks: int
    peak_bytes: int
    fresh_blocks: int
    fresh_bytes: int
    recycled_blocks: int
    recycled_bytes: int
    released_bytes: int
    wiped_bytes: int
    release_s: float
    wipe_s: float
    held_bytes: int
