"""Order: a buffer stays until the device is done, a registration goes before its context."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from memory_helpers import MIB, RecordingFence, RecordingPinner, vm_flags

from snarkline.errors import BudgetError, InputError, RegistrationError
from snarkline.memory import Arena, PageLocker, Release


def test_a_fence_keeps_the_buffer(arena: Arena) -> None:
    fence = RecordingFence()
    a = arena.empty(MIB)
    arena.keep_until(a, fence)
    address = a.ctypes.data
    del a
    assert (arena.stats().lent_blocks, arena.stats().held_bytes) == (1, 8 * MIB)
    b = arena.empty(MIB)
    assert b.ctypes.data != address
    fence.open = True
    c = arena.empty(MIB)
    assert c.ctypes.data == address
    assert arena.stats().held_bytes == 0


def test_a_buffer_waits_for_all_its_fences(arena: Arena) -> None:
    first, second = RecordingFence(), RecordingFence()
    a = arena.empty(MIB)
    arena.keep_until(a, first)
    arena.keep_until(a, second)
    del a
    second.open = True
    assert arena.stats().lent_blocks == 1
    first.open = True
    assert arena.stats().lent_blocks == 0


def test_release_does_not_wait_for_the_fence(arena: Arena) -> None:
    fence = RecordingFence()
    lease = arena.lease(MIB)
    arena.keep_until(lease, fence)
    view = lease.array[1:]
    with pytest.raises(BufferError, match=r"1 live view$"):
        lease.release()
    del view
    lease.release()
    assert fence.waited == 0
    assert arena.stats().lent_blocks == 1
    fence.open = True
    assert arena.stats().pooled_blocks == 1


def test_a_taker_waits_for_the_fence() -> None:
    with Arena(budget_bytes=8 * MIB) as arena:
        fence = RecordingFence()
        arena.keep_until(arena.empty(MIB), fence)
        timer = threading.Timer(0.1, setattr, (fence, "open", True))
        timer.start()
        arena.empty(MIB)
        assert fence.waited > 0
        timer.join()


def test_the_deadline_names_device_work() -> None:
    with Arena(budget_bytes=8 * MIB, deadline_s=0.1) as arena:
        fence = RecordingFence()
        arena.keep_until(arena.empty(MIB), fence)
        with pytest.raises(BudgetError, match=f"{8 * MIB} of them until device work is over"):
            arena.empty(MIB)
        fence.open = True


def test_an_error_of_a_fence_is_seen_and_keeps_the_buffer(arena: Arena) -> None:
    class Broken(RecordingFence):
        def done(self) -> bool:
            if not self.open:
                raise RuntimeError("illegal address")
            return True

    fence = Broken()
    arena.keep_until(arena.empty(MIB), fence)
    with pytest.raises(RuntimeError, match="illegal address"):
        arena.stats()
    fence.open = True
    assert arena.stats().held_bytes == 0


def test_close_waits_for_fences_before_it_unpins() -> None:
    pinner = RecordingPinner()
    arena = Arena(pinner=pinner)
    lease = arena.lease(MIB, registered=True)

    class Opens(RecordingFence):
        def wait(self, timeout: float) -> bool:
            assert pinner.pinned, "unpinned while the device reads"
            self.open = True
            return True

    fence = Opens()
    arena.keep_until(lease, fence)
    lease.release()
    arena.close()
    assert fence.open and not pinner.pinned


def test_a_mapping_is_registered_once(arena: Arena) -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner) as arena:
        for _ in range(4):
            with arena.lease(MIB, registered=True) as lease:
                assert lease.registered
                assert lease.address in pinner.pinned
        assert [what for what, _ in pinner.log] == ["pin"]
        a = arena.empty(MIB)
        assert a.ctypes.data not in pinner.pinned, "registered buffers are for those who ask"
        del a
    assert [what for what, _ in pinner.log] == ["pin", "unpin"]
    assert arena.drain(10)
    assert arena.stats().pooled_blocks == 0


def test_a_pooled_buffer_is_registered_in_place() -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner) as arena:
        del [arena.empty(MIB)][:]
        lease = arena.lease(MIB, registered=True)
        assert arena.stats().fresh_blocks == 1
        assert pinner.pinned == {lease.address: 8 * MIB}


def test_registered_memory_is_not_inherited() -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner) as arena:
        lease = arena.lease(MIB, registered=True)
        address = lease.address
        assert "dc" in vm_flags(address)
        lease.release()
        keep = arena.empty(2 * MIB)
        arena.trim()
        assert pinner.pinned == {}
        del keep


@pytest.mark.parametrize("policy", [Release.SYNC, Release.DETACHED, Release.RECYCLE])
def test_registered_memory_stays_mapped(policy: Release) -> None:
    pinner = RecordingPinner()
    with Arena(policy, pinner=pinner) as arena:
        lease = arena.lease(MIB, registered=True)
        address = lease.address
        lease.release()
        assert arena.drain(10)
        assert pinner.pinned == {address: 8 * MIB}
        assert (arena.stats().released_bytes, arena.stats().pooled_blocks) == (0, 1)
        arena.trim(keep_bytes=1)
        assert pinner.pinned, "only a full trim unregisters"
        arena.trim()
        assert arena.drain(10)
        assert not pinner.pinned
        assert arena.stats().released_bytes == 8 * MIB


@pytest.mark.parametrize("policy", [Release.MADVISE, Release.MADVISE_FREE])
def test_no_madvise_on_registered_memory(policy: Release) -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner) as arena:
        with pytest.raises(InputError, match=f"{policy.value} .* old pages"):
            arena.lease(MIB, registered=True, release=policy)
        assert pinner.log == []


def test_a_registered_secret_is_wiped_and_stays_registered() -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner) as arena:
        lease = arena.lease(MIB, registered=True, secret=True)
        lease.array[:] = 3
        address = lease.address
        lease.release()
        assert arena.drain(10)
        again = arena.lease(MIB, registered=True)
        assert again.address == address
        assert not again.array.any()


def test_idle_registrations_make_room_in_the_budget() -> None:
    pinner = RecordingPinner()
    with Arena(pinner=pinner, budget_bytes=8 * MIB) as arena:
        arena.lease(MIB, registered=True).release()
        assert arena.empty(5 * MIB, np.uint8).size == 5 * MIB
        assert pinner.pinned == {}


def test_a_refused_registration_is_named_and_leaks_nothing() -> None:
    with Arena(pinner=RecordingPinner(room=MIB)) as arena:
        with pytest.raises(RegistrationError, match=rf"{8 * MIB} bytes .*out of page-locked memory") as caught:
            arena.lease(MIB, registered=True)
        assert caught.value.n_bytes == 8 * MIB
        del caught
        assert (arena.stats().lent_blocks, arena.stats().pooled_blocks) == (0, 1)
        lease = arena.lease(MIB)
        assert not lease.registered
        lease.release()
        assert arena.lease(64 << 10, np.uint8, registered=True).registered


def test_a_context_destroyed_by_others_is_survived() -> None:
    pinner = RecordingPinner()
    arena = Arena(pinner=pinner)
    lease = arena.lease(MIB, registered=True)
    arena.lease(2 * MIB, registered=True).release()
    pinner.is_alive = False
    arena.close()
    assert [what for what, _ in pinner.log] == ["pin", "pin"]
    lease.array[:] = 1
    lease.release()
    assert arena.drain(10)
    assert arena.stats().released_bytes == 24 * MIB


def test_memory_that_may_still_be_registered_is_kept() -> None:
    class Refusing(RecordingPinner):
        def unpin(self, address: int) -> None:
            if address in refused:
                raise OSError("still in use by the device")
            super().unpin(address)

    pinner = Refusing()
    arena = Arena(pinner=pinner)
    leases = [arena.lease(n * MIB, registered=True) for n in (1, 1, 2)]
    refused = {leases[0].address, leases[2].address}
    for lease in leases[:2]:
        lease.release()
    del lease
    arena.trim()
    assert set(pinner.pinned) == refused and arena.stats().pooled_blocks == 1
    arena.close()
    assert leases[2].registered and set(pinner.pinned) == refused
    refused.clear()
    arena.trim()
    assert len(pinner.pinned) == 1, "asked again"


def test_close_unregisters_what_is_in_use() -> None:
    pinner = RecordingPinner()
    arena = Arena(pinner=pinner)
    lease = arena.lease(MIB, registered=True)
    arena.close()
    assert pinner.pinned == {}
    assert not lease.registered
    lease.array[:] = 1


def test_registration_needs_a_pinner_and_private_memory(arena: Arena) -> None:
    with pytest.raises(InputError, match="pinner"):
        arena.lease(MIB, registered=True)
    with Arena(pinner=RecordingPinner()) as pinning, pytest.raises(InputError, match="shared"):
        pinning.lease(MIB, registered=True, shared=True)


def test_locked_pages() -> None:
    with Arena(pinner=PageLocker()) as arena:
        lease = arena.lease(64 << 10, np.uint8, registered=True, secret=True)
        assert "lo" in vm_flags(lease.address)
        lease.release()
        arena.trim()
        assert arena.drain(10)


def test_a_refused_lock_names_the_limit() -> None:
    with pytest.raises(OSError, match="RLIMIT_MEMLOCK"):
        PageLocker().pin(1 << 46, 4096)


def test_fences_pinners_and_buffers_are_checked_when_given(arena: Arena) -> None:
    array = arena.empty(MIB)
    with pytest.raises(InputError, match=r"fence .*done, wait; int lacks done"):
        arena.keep_until(array, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Lease or an array, found bytes"):
        arena.keep_until(b"", RecordingFence())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"pinner .*pin, unpin, alive; object lacks pin"):
        Arena(pinner=object())  # type: ignore[arg-type]
