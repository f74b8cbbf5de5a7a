"""Page-locked memory, fences, and the order of copies."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from emulation import ILLEGAL_ADDRESS, OUT_OF_MEMORY, EmulatedDevice, Fault

from snarkline.backend.cuda import CudaFence, CudaPinner
from snarkline.backend.cuda.driver import Queue
from snarkline.backend.cuda.host_memory import BUFFER_BYTES, SMALL_BYTES
from snarkline.backend.cuda.module import Module
from snarkline.errors import BudgetError, DeviceError, RegistrationError
from snarkline.memory import Arena

MIB = 1 << 20


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice()


def numbers(n_bytes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, n_bytes, np.uint8)


@pytest.mark.parametrize("n_bytes", [1, SMALL_BYTES - 1, SMALL_BYTES, BUFFER_BYTES + 1, 3 * BUFFER_BYTES - 3])
def test_uploads_arrive(device: EmulatedDevice, n_bytes: int) -> None:
    data = numbers(n_bytes)
    assert np.array_equal(device.download(device.upload(data)), data)
    strided = numbers(2 * n_bytes)[::2]
    assert np.array_equal(device.download(device.upload(strided)), strided)


def test_large_uploads_go_through_two_page_locked_buffers(device: EmulatedDevice) -> None:
    for _ in range(3):
        device.upload(numbers(5 * BUFFER_BYTES))
    assert device.driver.names().count("page_lock") == 2, "once for all uploads"
    recorded = [call[2] for call in device.driver.calls if call[0] == "record"]
    awaited = [call[1] for call in device.driver.calls if call[0] == "await_event"]
    # A buffer is filled again only after the copy before the last one: the copy that read it.
    assert awaited == recorded[:-2]
    device.staging.close()
    assert device.driver.locked == {} and device.driver.names().count("page_unlock") == 2


def test_page_locked_sources_are_read_in_place(device: EmulatedDevice) -> None:
    with Arena(pinner=CudaPinner(device)) as arena:
        lease = arena.lease(4 * MIB, np.uint8, registered=True)
        lease.array[:] = 3
        device.upload(lease.array)
        assert [call[1] for call in device.driver.calls if call[0] == "to_device"] and len(
            [call for call in device.driver.calls if call[0] == "to_device"]
        ) == 1
        del lease


def test_what_went_through_the_buffers_is_wiped(device: EmulatedDevice) -> None:
    with device.session():
        device.upload(numbers(3 * BUFFER_BYTES // 2))
        assert all(lease.array.any() for lease in device.staging._leases)
    device.await_wiping()
    while device.staging._wiping:
        device.staging._wiping.pop().result()
    assert not any(lease.array.any() for lease in device.staging._leases)


def test_a_refused_page_lock_is_lived_without(device: EmulatedDevice) -> None:
    device.driver.faults.append(Fault("page_lock", OUT_OF_MEMORY, times=100))
    data = numbers(3 * BUFFER_BYTES)
    assert np.array_equal(device.download(device.upload(data)), data)
    assert device.driver.names().count("page_lock") == 1, "asked once"
    with pytest.raises(RegistrationError), Arena(pinner=CudaPinner(device)) as arena:
        arena.lease(MIB, np.uint8, registered=True)


def test_slices_are_copied_one_ahead(device: EmulatedDevice) -> None:
    hosts = [numbers(60 * MIB, 1).reshape(-1, 32), numbers(30 * MIB, 2).reshape(-1, 16)]
    n = len(hosts[0])
    slices = [host[a : a + n // 5] for a in range(0, n, n // 5) for host in hosts]
    addresses = []
    for host, there in zip(slices, device.streamed(slices), strict=True):
        assert np.array_equal(device.download(there), host)
        addresses.append(there.ctypes.data)
    assert len(set(addresses)) == 2 and addresses[::2] == addresses[:1] * len(addresses[::2]), "two buffers take turns"
    copies = [call for call in device.driver.calls if call[0] == "to_device"]
    assert {call[3] for call in copies} == {Queue.COPY}
    waits = [call for call in device.driver.calls if call[0] == "wait_for"]
    there = [call for call in waits if call[1] is Queue.COPY]
    assert all(call[2] is Queue.COMPUTE for call in there), "buffers that kernels may still read are not written"
    back = [call for call in waits if call[1] is Queue.COMPUTE]
    assert len(there) == len(back) == len(slices) and all(call[2] is Queue.COPY for call in back)


def test_an_error_of_the_copying_thread_reaches_the_caller(device: EmulatedDevice) -> None:
    device.driver.faults.append(Fault("to_device", ILLEGAL_ADDRESS, after=2))
    with pytest.raises(DeviceError, match="700"):
        for _ in device.streamed([numbers(40 * MIB), numbers(40 * MIB)]):
            pass
    assert device.failure is not None


def test_a_fence_is_done_when_its_event_is_past(device: EmulatedDevice) -> None:
    device.driver.held = True
    fence = CudaFence(device)
    assert not fence.done() and not fence.wait(0.01)
    fence._event.held = False
    assert fence.done() and fence.wait(0)


@pytest.mark.parametrize("how", ["dead", "failed"])
def test_a_fence_whose_context_is_gone_is_done(device: EmulatedDevice, how: str) -> None:
    device.driver.held = True
    fence = CudaFence(device)
    if how == "dead":
        device.driver.dead = True
    else:
        device.driver.faults.append(Fault("passed", ILLEGAL_ADDRESS))
    assert fence.wait(1)


def test_nothing_is_released_while_the_device_reads_it(device: EmulatedDevice) -> None:
    with Arena(pinner=CudaPinner(device)) as arena:
        lease = arena.lease(4 * MIB, np.uint8, registered=True)
        device.driver.held = True
        fence = CudaFence(device)
        arena.keep_until(lease, fence)
        lease.release()
        del lease
        arena.trim()
        assert arena.stats().lent_blocks == 1 and len(device.driver.locked) == 1
        fence._event.held = False
        arena.trim()
        assert arena.stats().lent_blocks == 0 and device.driver.locked == {}


def test_page_locked_memory_of_a_destroyed_context_is_not_unlocked(device: EmulatedDevice) -> None:
    arena = Arena(pinner=CudaPinner(device))
    lease = arena.lease(MIB, np.uint8, registered=True)
    device.driver.dead = True
    arena.close()
    assert "page_unlock" not in device.driver.names()
    lease.array[:] = 1  # the memory is the caller's all the same


@pytest.mark.parametrize("times", [0, 1, 2, 9])
def test_pages_that_a_failed_device_may_know_stay_mapped(device: EmulatedDevice, times: int) -> None:
    """An error that ends a device need not end its context: other memory at the same address would be taken for the
    pages that are still locked there."""
    arena = Arena(pinner=CudaPinner(device))
    arena.lease(MIB, np.uint8, registered=True).release()
    (address,) = device.driver.locked
    device.failure = "a test"
    device.driver.faults.append(Fault("page_unlock", ILLEGAL_ADDRESS, times=times))
    arena.close()
    del arena
    gc.collect()
    assert list(device.driver.locked) == ([address] if times == 9 else [])
    assert is_mapped(address) is (times == 9)


def test_a_failed_device_unlocks_its_buffers_once_nothing_uses_them(device: EmulatedDevice) -> None:
    device.upload(numbers(2 * BUFFER_BYTES))
    device.driver.faults.append(Fault("launch", ILLEGAL_ADDRESS))
    with pytest.raises(DeviceError):
        device.launch(Module("vector", "bn254"), "add", 1, 256)
    device.close()
    assert device.driver.locked == {}
    names = device.driver.names()
    assert names.index("synchronize") < names.index("page_unlock")


def is_mapped(address: int) -> bool:
    ranges = (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
    return any(int(begin, 16) <= address < int(end, 16) for begin, end in ranges)


def test_a_failed_device_locks_no_pages(device: EmulatedDevice) -> None:
    device.failure = "a test"
    with pytest.raises(RegistrationError, match="a test"), Arena(pinner=CudaPinner(device)) as arena:
        arena.lease(MIB, np.uint8, registered=True)


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS])
@pytest.mark.parametrize("way", ["upload", "stream"])
def test_a_fault_at_any_call_of_a_large_copy(way: str, code: int) -> None:
    """What arrives is right, and what does not is one of two errors."""
    host = np.arange(BUFFER_BYTES // 8 + 5, dtype=np.uint64)

    def copied(device: EmulatedDevice) -> list[np.ndarray]:
        with device.session():
            if way == "upload":
                return [device.download(device.upload(host))]
            half = len(host) // 2
            return [device.download(there) for there in device.streamed([host[:half], host[half:]])]

    device = EmulatedDevice()
    copied(device)
    n_calls, errors = len(device.driver.calls), 0
    for after in range(n_calls):
        device = EmulatedDevice()
        device.driver.faults.append(Fault("*", code, after=after, sticky=code != OUT_OF_MEMORY))
        try:
            assert np.array_equal(np.concatenate(copied(device)), host)
        except (BudgetError, DeviceError):
            errors += 1
    assert errors > 5
