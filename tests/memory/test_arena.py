"""Arrays of an arena: what they are, where they go, what the accounts say."""

from __future__ import annotations

import ctypes
import gc
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_helpers import MIB, minor_faults, resident_bytes, vm_flags

from snarkline.errors import BudgetError, InputError
from snarkline.memory import Arena, Pages, Release
from snarkline.memory import pages as pages_module
from snarkline.native import core


@pytest.mark.parametrize("policy", list(Release))
def test_every_policy_accounts_for_each_byte(policy: Release) -> None:
    with Arena(policy) as arena:
        a = arena.empty((4 * MIB, 2))
        a[:] = 7
        view = a[5:]
        del a
        assert arena.stats().lent_bytes == 64 * MIB, "a view keeps the buffer"
        assert int(view.sum()) == 7 * view.size
        del view
        assert arena.drain(10)
        stats = arena.stats()
        assert (stats.lent_bytes, stats.lent_blocks, stats.pending_bytes, stats.pending_blocks) == (0, 0, 0, 0)
        assert stats.pooled_bytes == (64 * MIB if policy is Release.RECYCLE else 0)
        assert stats.pooled_blocks == (policy is Release.RECYCLE or policy.empties_pages)
        assert stats.released_bytes == (0 if policy is Release.RECYCLE else 64 * MIB)
        assert stats.peak_bytes == 64 * MIB
    assert arena.drain(10)
    assert arena.stats().pooled_blocks == 0


@pytest.mark.parametrize("policy", list(Release))
def test_memory_really_goes(policy: Release) -> None:
    with Arena(policy, pages="4k") as arena:
        a = arena.empty(64 * MIB, np.uint8)
        a[:] = 1
        before = resident_bytes()
        del a
        assert arena.drain(10)
        kept = policy in (Release.RECYCLE, Release.MADVISE_FREE)
        gone = before - resident_bytes()
        assert gone < 16 * MIB if kept else gone > 48 * MIB


def test_policy_for_one_array(arena: Arena) -> None:
    a = arena.empty(MIB, release="sync")
    b = arena.empty(MIB)
    del a
    assert (arena.stats().released_bytes, arena.stats().pooled_blocks) == (8 * MIB, 0)
    del b
    assert (arena.stats().released_bytes, arena.stats().pooled_blocks) == (8 * MIB, 1)


@pytest.mark.parametrize("shape", [65536, (65536,), (1, 65536), (3, 5, 7001), (2**18, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, "f8"])
def test_arrays_are_as_numpy_makes_them(arena: Arena, shape: int | tuple[int, ...], dtype: str) -> None:
    a, expected = arena.empty(shape, dtype), np.empty(shape, dtype)
    assert (a.shape, a.dtype, a.strides) == (expected.shape, expected.dtype, expected.strides)
    assert a.flags.c_contiguous and a.flags.writeable and a.flags.aligned
    a[...] = 5
    assert (a == 5).all()


def test_default_items_are_limbs(arena: Arena) -> None:
    assert arena.empty((MIB, 4)).dtype == np.uint64


@pytest.mark.parametrize("shape", [0, (0, 4), (4, 0), 1, (10, 4)])
def test_small_arrays_are_numpys_own(arena: Arena, shape: int | tuple[int, ...]) -> None:
    a = arena.empty(shape)
    assert a.shape == np.empty(shape).shape
    assert arena.stats().lent_blocks == 0


def test_the_base_is_native_and_aligned(arena: Arena) -> None:
    big, small = arena.empty(3 * MIB, np.uint8), arena.empty(100_000, np.uint8)
    assert isinstance(big.base, core.Lease)
    assert big.base.n_bytes == 3 * MIB
    assert big.ctypes.data % (2 * MIB) == 0
    assert small.ctypes.data % 4096 == 0


def test_recycling_makes_no_second_mapping(arena: Arena) -> None:
    for round in range(5):
        a, b = arena.empty(MIB), arena.empty((MIB, 4))
        a[:], b[:] = round, round + 1
        assert (a == round).all() and (b == round + 1).all()
        del a, b
    assert arena.stats().fresh_blocks == 2
    assert arena.stats().recycled_blocks == 8


@pytest.mark.parametrize("extra", [1, 4096, MIB, 2 * MIB - 1])
def test_near_equal_sizes_share_a_mapping(arena: Arena, extra: int) -> None:
    del [arena.empty(64 * MIB + extra, np.uint8)][:]
    del [arena.empty(64 * MIB + 1, np.uint8)][:]
    assert arena.stats().fresh_blocks == 1


def test_a_much_larger_buffer_is_not_handed_out(arena: Arena) -> None:
    a = arena.empty(64 * MIB, np.uint8)
    del a
    b = arena.empty(MIB, np.uint8)
    assert arena.stats().fresh_blocks == 2
    del b


def test_rounding_wastes_at_most_an_eighth(arena: Arena) -> None:
    for n_bytes in [65537, 100_000, 2 * MIB + 1, 3 * MIB - 1, 17 * MIB + 5, 33 * MIB]:
        lent = arena.stats().lent_bytes
        a = arena.empty(n_bytes, np.uint8)
        mapped = arena.stats().lent_bytes - lent
        slack = 2 * MIB if n_bytes >= 2 * MIB else 4096
        assert n_bytes <= mapped <= max(n_bytes * 9 // 8, n_bytes + slack)
        del a


def test_idle_buffers_go_back() -> None:
    with Arena(idle_s=0.05) as arena:
        a, b = arena.empty(MIB), arena.empty(2 * MIB)
        del a, b
        deadline = time.monotonic() + 10
        while arena.stats().pooled_blocks or arena.stats().pending_blocks:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert arena.stats().released_bytes == 24 * MIB


def test_idle_buffers_go_back_while_another_arena_keeps_its_own() -> None:
    """The release thread sleeps until the other arena's buffer is due, and must wake for the one that is due before."""
    with Arena(idle_s=60) as patient:
        kept = patient.empty(MIB)
        del kept
        time.sleep(0.05)  # the thread goes to sleep
        test_idle_buffers_go_back()
        assert patient.stats().pooled_blocks == 1


def test_trim_keeps_what_it_is_told(arena: Arena) -> None:
    first, second, third = (arena.empty(MIB) for _ in range(3))
    address = third.ctypes.data
    del first
    time.sleep(0.001)
    del second
    time.sleep(0.001)
    del third
    arena.trim(keep_bytes=8 * MIB)
    assert arena.stats().pooled_bytes == 8 * MIB
    assert arena.empty(MIB).ctypes.data == address, "the longest idle go first"
    arena.trim()
    assert arena.stats().pooled_blocks == 0


def test_arrays_outlive_their_arena() -> None:
    arena = Arena()
    native = arena.native
    a = arena.empty(MIB)
    a[:] = 3
    del arena
    gc.collect()
    assert int(a.sum()) == 3 * MIB
    del a
    assert native.drain(10)
    assert native.stats()["released_bytes"] == 8 * MIB, "nothing is pooled for an arena that is gone"


@pytest.mark.parametrize("policy", [Release.SYNC, Release.MADVISE, Release.DETACHED, Release.RECYCLE])
def test_a_secret_is_zero_before_reuse(policy: Release) -> None:
    with Arena(policy) as arena:
        a = arena.empty(MIB, np.uint8, secret=True)
        a[:] = 0xAA
        del a
        assert arena.drain(10)
        assert arena.stats().wiped_bytes == MIB
        assert not arena.empty(MIB, np.uint8).any()


def test_small_secrets_are_wiped_too(arena: Arena) -> None:
    a = arena.empty(4, secret=True)
    a[:] = 0xAA
    del a
    assert arena.drain(10)
    assert arena.stats().wiped_bytes == 4096
    assert not arena.lease(4).array.any()


def test_a_taker_wipes_what_the_release_thread_has_not_come_to(arena: Arena) -> None:
    sizes = (64 * MIB, 16 * MIB, 4 * MIB)
    for _ in range(20):
        secrets = [arena.empty(size, np.uint8, secret=True) for size in sizes]
        for secret in secrets:
            assert not secret.any()
            secret[:] = 0xAA
        del secret
        secrets.clear()
    assert arena.stats().fresh_blocks == 3
    assert arena.drain(10)
    assert arena.stats().wiped_bytes == 20 * sum(sizes)
    assert arena.stats().pooled_bytes == sum(sizes)


def test_two_takers_do_not_share_a_secret_that_waits(arena: Arena) -> None:
    a = arena.empty(16 * MIB, np.uint8, secret=True)
    a[:] = 0xAA
    del a
    first, second = (arena.empty(16 * MIB, np.uint8) for _ in range(2))
    assert not np.shares_memory(first, second)
    assert not first.any() and not second.any()
    assert arena.stats().fresh_blocks == 2


def test_a_secret_overtakes_the_backlog() -> None:
    with Arena(Release.DETACHED, pages="4k") as arena:
        others = [arena.empty(64 * MIB, np.uint8) for _ in range(4)]
        secret = arena.empty(64 * MIB, np.uint8, secret=True)
        others.clear()
        del secret
        wiped_first = None
        while arena.stats().pending_blocks:
            stats = arena.stats()
            if wiped_first is None and stats.wiped_bytes == 64 * MIB:
                wiped_first = stats.released_bytes
        assert wiped_first is not None
        assert wiped_first < 3 * 64 * MIB


def test_the_release_thread_needs_no_gil() -> None:
    sleep_with_gil = ctypes.PyDLL(None).usleep
    with Arena(Release.DETACHED) as arena:
        a = arena.empty(64 * MIB, np.uint8)
        a[:] = 1
        native = arena.native
        del a
        for _ in range(20):
            sleep_with_gil(100_000)
            if native.stats()["pending_blocks"] == 0:
                break
        assert native.stats()["pending_blocks"] == 0


@pytest.mark.parametrize("policy", [Release.RECYCLE, Release.DETACHED])
def test_the_dropping_thread_pays_almost_nothing(policy: Release) -> None:
    def cost(release: Release) -> float:
        a = arena.empty(256 * MIB, np.uint8, release=release)
        a[::4096] = 1
        begun = time.thread_time()
        del a
        spent = time.thread_time() - begun
        assert arena.drain(10)
        return spent

    with Arena(policy, pages="4k") as arena:
        assert min(cost(policy) for _ in range(3)) < 0.001
        assert min(cost(Release.SYNC) for _ in range(3)) > 0.003


@pytest.mark.parametrize(("pages", "flag"), [("auto", "hg"), ("4k", "nh")])
def test_page_size_is_asked_for(pages: str, flag: str) -> None:
    if not pages_module.huge_pages_granted():
        pytest.skip("transparent huge pages are off")
    with Arena(pages=pages) as arena:
        a = arena.empty(16 * MIB, np.uint8)
        assert flag in vm_flags(a.ctypes.data)


def test_one_warning_when_huge_pages_are_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    switch = tmp_path / "enabled"
    switch.write_text("always madvise [never]\n")
    monkeypatch.setattr(pages_module, "_SWITCH", switch)
    pages_module.huge_pages_granted.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="2 MiB pages are off"):
            Arena(pages=Pages.AUTO).close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            arena = Arena(pages=Pages.AUTO)
            a = arena.empty(16 * MIB, np.uint8)
            assert "nh" in vm_flags(a.ctypes.data)
    finally:
        pages_module.huge_pages_granted.cache_clear()


def test_first_touch_leaves_no_fault_to_the_taker(arena: Arena) -> None:
    a = arena.empty(32 * MIB, np.uint8)
    before = minor_faults()
    a[::4096] = 1
    assert minor_faults() - before < 50


def test_lazy_first_touch() -> None:
    with Arena(threads=0, pages="4k") as arena:
        a = arena.empty(32 * MIB, np.uint8)
        before = minor_faults()
        a[::4096] = 1
        assert minor_faults() - before > 1000


def test_bad_arguments_are_named(arena: Arena) -> None:
    with pytest.raises(ValueError, match="'later'"):
        Arena("later")
    with pytest.raises(ValueError, match="'1g'"):
        Arena(pages="1g")
    with pytest.raises(ValueError, match="negative"):
        arena.empty((-1, MIB))


@pytest.mark.parametrize("dtype", [object, [("n", np.uint64), ("name", object)]])
@pytest.mark.parametrize("size", [1, MIB])
def test_python_objects_are_refused(arena: Arena, dtype: Any, size: int) -> None:
    for lend in (arena.empty, arena.lease):
        with pytest.raises(InputError, match=r"dtype .*(object|'O').* holds Python objects"):
            lend(size, dtype)


@pytest.mark.parametrize("shape", [-1, (-4, MIB), (-MIB, -MIB)])
def test_negative_sizes_are_refused(arena: Arena, shape: Any) -> None:
    for lend in (arena.empty, arena.lease):
        with pytest.raises(InputError, match="negative sizes"):
            lend(shape)


@pytest.mark.parametrize("shape", [3.5, "x", [MIB], (MIB, None)])
def test_shapes_of_another_type_are_refused(arena: Arena, shape: Any) -> None:
    for lend in (arena.empty, arena.lease):
        with pytest.raises(InputError, match="whole number or a tuple"):
            lend(shape)


def test_sizes_of_numpy_do_not_wrap_around(arena: Arena) -> None:
    """2^33 * 2^31 is 0 in 64 bits."""
    with pytest.raises(BudgetError, match=str(1 << 67)):
        arena.empty((np.int64(1 << 33), np.int64(1 << 31)))


def test_unknown_pages_are_named_with_the_choices() -> None:
    with pytest.raises(InputError, match="auto, 4k, found 'foo'"):
        Arena(pages="foo")


def test_an_unknown_policy_is_named_with_the_choices(arena: Arena) -> None:
    for attempt in (lambda: Arena("foo"), lambda: arena.empty(1 << 20, release="foo")):
        with pytest.raises(InputError, match=r"sync, clear, .* recycle, found 'foo'"):
            attempt()
