"""Budgets: refusal, waiting, deadlines and their causes."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest
from memory_helpers import MIB

from snarkline.errors import BudgetError
from snarkline.memory import Arena, Release
from snarkline.memory.budget import UNLIMITED


def test_a_budget_too_small_for_one_buffer_names_both_figures() -> None:
    with Arena(budget_bytes=10 * MIB) as arena:
        begun = time.monotonic()
        with pytest.raises(BudgetError, match=rf"{16 * MIB} bytes .* {10 * MIB} bytes") as caught:
            arena.empty(2 * MIB)
        assert time.monotonic() - begun < 1, "it can never fit: nobody waits"
    assert (caught.value.asked_bytes, caught.value.budget_bytes) == (16 * MIB, 10 * MIB)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


def test_a_buffer_of_exactly_the_budget_fits() -> None:
    with Arena(budget_bytes=33 * MIB) as arena:
        assert arena.empty(33 * MIB, np.uint8).size == 33 * MIB


def test_the_deadline_and_who_holds_the_memory() -> None:
    with Arena(budget_bytes=16 * MIB, deadline_s=0.2) as arena:
        a = arena.empty(12 * MIB, np.uint8)
        begun = time.monotonic()
        with pytest.raises(BudgetError, match=rf"after 0\.2 s 1 buffers with {12 * MIB} bytes are in use"):
            arena.empty(8 * MIB, np.uint8)
        assert 0.2 <= time.monotonic() - begun < 5
        del a
        arena.empty(8 * MIB, np.uint8)


def test_a_taker_waits_for_another_thread() -> None:
    with Arena(budget_bytes=16 * MIB) as arena:
        box = [arena.empty(12 * MIB, np.uint8)]
        timer = threading.Timer(0.2, box.clear)
        timer.start()
        begun = time.monotonic()
        arena.empty(16 * MIB, np.uint8)
        assert time.monotonic() - begun >= 0.15
        timer.join()


def test_idle_buffers_make_room() -> None:
    with Arena(budget_bytes=64 * MIB) as arena:
        for n in (8, 16, 24, 40, 64, 8):
            a = arena.empty(n * MIB, np.uint8)
            a[:] = 1
            del a
            assert arena.stats().peak_bytes <= 64 * MIB
        assert arena.stats().fresh_blocks >= 4


def test_the_cap_holds_among_threads() -> None:
    with Arena(Release.DETACHED, budget_bytes=32 * MIB) as arena:
        failures: list[BaseException] = []

        def work(seed: int) -> None:
            rng = np.random.default_rng(seed)
            try:
                for _ in range(20):
                    a = arena.empty(int(rng.integers(1, 12)) * MIB, np.uint8)
                    a[:] = seed
                    assert (a == seed).all()
                    del a
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert arena.stats().peak_bytes <= 32 * MIB


def test_back_pressure_falls_on_the_taker() -> None:
    with Arena(Release.DETACHED, backlog_bytes=32 * MIB, pages="4k") as arena:
        arrays = [arena.empty(16 * MIB, np.uint8) for _ in range(16)]
        begun = time.thread_time()
        arrays.clear()
        assert time.thread_time() - begun < 0.01
        for _ in range(4):
            a = arena.empty(16 * MIB, np.uint8)
            assert arena.stats().pending_bytes <= 32 * MIB
            del a


def test_a_kernel_that_refuses_is_quoted() -> None:
    with (
        Arena(budget_bytes=UNLIMITED, threads=0) as arena,
        pytest.raises(MemoryError, match=f"{1 << 50} bytes: Cannot"),
    ):
        arena.empty(1 << 50, np.uint8)
    assert arena.stats().lent_bytes == 0


def test_what_is_pooled_goes_before_the_kernel_refuses(arena: Arena) -> None:
    del [arena.empty(MIB)][:]
    with pytest.raises(MemoryError):
        arena.empty(1 << 50, np.uint8)
    assert arena.stats().pooled_blocks == 0
