"""Leases: explicit ends, live views, memory that other processes see."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest
from memory_helpers import MIB

from snarkline.memory import Arena, Release


def test_release_with_live_views_names_their_number(arena: Arena) -> None:
    lease = arena.lease(MIB)
    lease.array[:] = 1
    a = lease.array
    with pytest.raises(BufferError, match=r"1 live view$"):
        lease.release()
    b, c = a[5:], memoryview(lease.array)
    with pytest.raises(BufferError, match=r"3 live views$"):
        lease.release()
    del a, c
    with pytest.raises(BufferError, match=r"1 live view$"):
        lease.release()
    assert int(b[0]) == 1
    del b
    lease.release()
    assert arena.stats().lent_blocks == 0


def test_a_released_array_raises(arena: Arena) -> None:
    lease = arena.lease(MIB)
    assert lease.array.shape == (MIB,)
    lease.release()
    lease.release()
    with pytest.raises(ValueError, match="released"):
        _ = lease.array
    assert arena.stats().pooled_blocks == 1


@pytest.mark.parametrize("policy", list(Release))
def test_release_goes_the_way_of_the_policy(policy: Release) -> None:
    with Arena(policy) as arena:
        lease = arena.lease(MIB)
        lease.release()
        assert arena.drain(10)
        # CLEAR is what clear() of a vector does: the capacity stays until the vector is destroyed.
        assert arena.stats().lent_blocks == (policy is Release.CLEAR)
        del lease
        assert arena.drain(10)
        stats = arena.stats()
        assert stats.lent_blocks == 0
        assert stats.released_bytes == (0 if policy is Release.RECYCLE else 8 * MIB)


def test_a_lease_that_is_dropped_keeps_its_views(arena: Arena) -> None:
    lease = arena.lease(MIB)
    a = lease.array
    a[:] = 4
    del lease
    assert int(a[-1]) == 4
    del a
    assert arena.stats().pooled_blocks == 1


def test_with_block_releases(arena: Arena) -> None:
    with arena.lease(MIB) as lease:
        lease.array[:] = 1
    with pytest.raises(ValueError, match="released"):
        _ = lease.array


def test_with_block_does_not_hide_an_exception(arena: Arena) -> None:
    with pytest.raises(KeyError), arena.lease(MIB) as lease:
        a = lease.array
        raise KeyError(int(a.size))
    lease.array[:] = 1
    del a
    lease.release()


def test_shared_memory_is_seen_through_its_descriptor(arena: Arena) -> None:
    lease = arena.lease(MIB, np.uint8, shared=True)
    lease.array[:] = 7
    assert lease.fd is not None
    copy = os.dup(lease.fd)
    with mmap.mmap(copy, MIB) as other:
        assert other[:4] == b"\x07" * 4
        other[0] = 9
        assert lease.array[0] == 9
        lease.release()
        assert lease.fd is None
        assert arena.drain(10)
        assert other[:2] == b"\x09\x07", "others keep what they have"
    os.close(copy)
    assert arena.stats().pooled_blocks == 0, "nobody knows who else writes to it"


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_process_writes_into_shared_memory(arena: Arena) -> None:
    lease = arena.lease(MIB, np.uint8, shared=True)
    pid = os.fork()
    if pid == 0:
        lease.array[:] = 5
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert (lease.array == 5).all()


def test_private_memory_has_no_descriptor(arena: Arena) -> None:
    assert arena.lease(MIB).fd is None


def test_shared_sync_and_secret() -> None:
    with Arena(Release.SYNC) as arena:
        lease = arena.lease(MIB, np.uint8, shared=True, secret=True)
        lease.array[:] = 3
        assert lease.fd is not None
        copy = os.dup(lease.fd)
        del lease
        with mmap.mmap(copy, MIB) as other:
            assert other[:] == bytes(MIB)
        os.close(copy)
        assert arena.stats().released_bytes == MIB
