"""The arena as its users see it."""

from __future__ import annotations

import numpy as np
import pytest

from snarkline.errors import BudgetError
from snarkline.memory import Arena, Release

MIB = 1 << 20


@pytest.mark.parametrize("policy", list(Release))
def test_every_policy_accounts_for_each_byte(policy: Release) -> None:
    arena = Arena(policy)
    a = arena.empty((4 * MIB, 2))
    a[:] = 7
    view = a[5:]
    assert arena.stats().lent_bytes == 64 * MIB
    del a
    assert arena.stats().lent_bytes == 64 * MIB
    assert int(view.sum()) == 7 * view.size
    del view
    assert arena.drain(10)
    stats = arena.stats()
    assert (stats.lent_bytes, stats.lent_blocks, stats.pending_bytes) == (0, 0, 0)
    assert stats.pooled_bytes == (64 * MIB if policy is Release.RECYCLE else 0)
    assert stats.released_bytes == (0 if policy is Release.RECYCLE else 64 * MIB)
    arena.close()
    assert arena.drain(10)
    assert arena.stats().pooled_blocks == 0


def test_recycling_makes_no_second_mapping() -> None:
    arena = Arena()
    for _ in range(5):
        a, b = arena.empty(MIB), arena.empty((MIB, 4))
        a[:], b[:] = 1, 2
        del a, b
    assert arena.stats().fresh_blocks == 2
    assert arena.stats().recycled_blocks == 8


def test_a_budget_too_small_for_one_buffer_names_both_figures() -> None:
    arena = Arena(budget_bytes=10 * MIB)
    with pytest.raises(BudgetError, match=rf"{16 * MIB} bytes .* {10 * MIB} bytes"):
        arena.empty(2 * MIB)


def test_a_secret_is_zero_before_reuse() -> None:
    arena = Arena()
    a = arena.empty(MIB, np.uint8, secret=True)
    a[:] = 0xAA
    del a
    assert arena.drain(10)
    b = arena.empty(MIB, np.uint8)
    assert arena.stats().recycled_blocks == 1
    assert not b.any()
