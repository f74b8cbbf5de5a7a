"""NumPy's own arrays on an arena."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest
from memory_helpers import MIB

from snarkline.memory import Arena, Release, numpy_arrays


def test_large_arrays_live_on_the_arena_and_small_ones_do_not() -> None:
    with numpy_arrays() as arena:
        small, large = np.empty(1000), np.empty(MIB)
        assert arena.stats().lent_blocks == 1
        large[:] = small.size
        assert large.sum() == 1000 * MIB
        del large
        assert arena.stats().pooled_blocks == 1
        again = np.empty(MIB)
        assert arena.stats().recycled_blocks == 1
    outside = np.empty(MIB)
    assert arena.stats().lent_blocks == 1
    del again, outside
    assert arena.stats().lent_blocks == 0, "arrays take their way after the block, too"


@pytest.mark.parametrize("policy", list(Release))
def test_every_policy(policy: Release) -> None:
    with numpy_arrays(policy) as arena:
        a = np.ones(MIB)
        b = a * 2
        assert b.sum() == 2 * MIB
        del a, b
        assert arena.drain(10)
        assert arena.stats().lent_bytes == 0
        assert arena.stats().released_bytes == (0 if policy is Release.RECYCLE else 16 * MIB)


@pytest.mark.parametrize("policy", [Release.RECYCLE, Release.MADVISE, Release.MADVISE_FREE])
def test_zeros_are_zero_in_recycled_memory(policy: Release) -> None:
    with numpy_arrays(policy) as arena:
        a = np.full(MIB, 7.0)
        del a
        assert not np.zeros(MIB).any()
        assert arena.stats().recycled_blocks == 1


def test_results_are_numpys_for_all_kinds_of_work() -> None:
    def work() -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        a = rng.integers(0, 1 << 30, size=300_000)
        grown = np.array([], dtype=np.int64)
        for part in np.array_split(a, 7):
            grown = np.append(grown, part)
        resized = a.copy()
        resized.resize(500_000, refcheck=False)
        shrunk = a.copy()
        shrunk.resize(10, refcheck=False)
        small_to_large = np.arange(10)
        small_to_large.resize(400_000, refcheck=False)
        from_iterator = np.fromiter((i * i for i in range(200_000)), dtype=np.int64)
        return [np.sort(a), grown, resized, shrunk, small_to_large, from_iterator, np.outer(a[:600], a[:600])]

    expected = work()
    with numpy_arrays(threshold_bytes=64 << 10) as arena:
        found = work()
    for e, f in zip(expected, found, strict=True):
        assert np.array_equal(e, f)
    assert arena.stats().fresh_blocks > 3
    del f
    found.clear()
    assert arena.stats().lent_blocks == 0


def test_a_budget_that_is_full_is_numpys_memory_error() -> None:
    with Arena(budget_bytes=16 * MIB) as arena, numpy_arrays(arena=arena):
        a = np.empty(12 * MIB, np.uint8)
        with pytest.raises(MemoryError):
            np.empty(12 * MIB, np.uint8)
        del a
        assert np.empty(12 * MIB, np.uint8).size == 12 * MIB


def test_a_pending_release_is_waited_for() -> None:
    with Arena(budget_bytes=256 * MIB, pages="4k") as arena, numpy_arrays("detached", arena=arena):
        for _ in range(4):
            a = np.ones(200 * MIB, np.uint8)
            del a


def test_blocks_nest() -> None:
    with numpy_arrays() as outer:
        with numpy_arrays("sync") as inner:
            a = np.empty(MIB)
            assert (outer.stats().lent_blocks, inner.stats().lent_blocks) == (0, 1)
        b = np.empty(MIB)
        assert (outer.stats().lent_blocks, inner.stats().lent_blocks) == (1, 1)
        del a, b


def test_other_contexts_are_left_alone() -> None:
    with numpy_arrays() as arena:
        sizes: list[int] = []
        thread = threading.Thread(target=lambda: sizes.append(np.empty(MIB).size))
        thread.start()
        thread.join()
        assert sizes == [MIB]
        assert arena.stats().fresh_blocks in (0, 1)


def test_the_handler_is_named() -> None:
    get_handler_name = np._core.multiarray.get_handler_name
    with numpy_arrays():
        assert get_handler_name(np.empty(MIB)) == "snarkline"
    assert get_handler_name(np.empty(MIB)) == "default_allocator"


def test_dropping_a_numpy_array_costs_next_to_nothing() -> None:
    def cost() -> float:
        a = np.empty(128 * MIB, np.uint8)
        a[::4096] = 1
        begun = time.thread_time()
        del a
        return time.thread_time() - begun

    with Arena(pages="4k") as arena, numpy_arrays("detached", arena=arena):
        assert min(cost() for _ in range(3)) < 0.001


def test_blocks_may_be_left_in_any_order() -> None:
    def lives_on(arena: Arena) -> bool:
        before = arena.stats().lent_blocks
        a = np.empty(MIB)
        return arena.stats().lent_blocks == before + len(a) // MIB

    for order in itertools.permutations(range(3)):
        blocks = [numpy_arrays() for _ in range(3)]
        arenas = [block.__enter__() for block in blocks]
        inside = set(range(3))
        for leaving in order:
            assert lives_on(arenas[max(inside)])
            blocks[leaving].__exit__(None, None, None)
            inside.remove(leaving)
        assert not any(lives_on(arena) for arena in arenas)
        assert np._core.multiarray.get_handler_name() == "default_allocator"
