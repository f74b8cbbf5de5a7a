"""Device memory: reuse, wiping, limits, and what happens when the driver has none left."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from emulation import CURRENT, ILLEGAL_ADDRESS, OUT_OF_MEMORY, POISON, EmulatedDevice, Fault

from snarkline.backend.cuda.driver import Queue
from snarkline.errors import BudgetError, DeviceError

MIB = 1 << 20


def drop_on_another_thread(box: list[object]) -> None:
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()


def test_a_dropped_block_serves_the_next_request() -> None:
    device = EmulatedDevice()
    first = device.empty(4 * MIB, "u1")
    address = first.ctypes.data
    view = first[5:].reshape(-1)
    del first
    other = device.empty(4 * MIB, "u1")
    assert other.ctypes.data != address, "a view keeps the block"
    del view
    assert device.empty(4 * MIB, "u1").ctypes.data == address
    assert device.driver.names().count("allocate") == 2


def test_what_runs_beside_keeps_its_memory() -> None:
    device = EmulatedDevice()
    kept = device.empty(4 * MIB, "u1")
    addresses = [kept.ctypes.data]

    def work() -> None:
        addresses.append(device.empty(4 * MIB, "u1").ctypes.data)

    device.beside([lambda kept=kept: work(), work])
    del kept
    assert len(set(addresses)) == 3, "two works share nothing"
    other = device.empty(4 * MIB, "u1")
    assert other.ctypes.data not in addresses
    device.join()
    assert [call[1:3] for call in device.driver.calls if call[0] == "wait_for"][-2:] == [
        (Queue.COMPUTE, Queue.SIDE_1), (Queue.COMPUTE, Queue.SIDE_2),
    ]  # fmt: skip
    assert device.empty(4 * MIB, "u1").ctypes.data in addresses


def test_want_of_memory_waits_for_what_runs_beside() -> None:
    device = EmulatedDevice(capacity=10 * MIB)
    device.beside([lambda: device.empty(8 * MIB, "u1").fill(0)])
    assert device.used_bytes() == 8 * MIB
    device.empty(8 * MIB, "u1")
    assert device.driver.names().count("allocate") == 3, "refused twice, then served from what was beside"


def test_what_failed_beside_is_waited_for() -> None:
    device = EmulatedDevice()
    with pytest.raises(ZeroDivisionError), device.session():
        device.beside([lambda: device.empty(MIB, "u1").fill(1), lambda: 1 // 0])
    device.await_wiping()
    waits = [call[1:3] for call in device.driver.calls if call[0] == "wait_for"]
    assert waits[-2:] == [(Queue.COMPUTE, Queue.SIDE_1), (Queue.COMPUTE, Queue.SIDE_2)]
    assert device.used_bytes() == 0


def test_a_wait_that_fails_for_want_of_memory_is_made_again() -> None:
    device = EmulatedDevice()
    device.beside([lambda: device.empty(MIB, "u1").fill(1)])
    device.driver.faults.append(Fault("wait_for", OUT_OF_MEMORY))
    with pytest.raises(BudgetError):
        device.join()
    assert device.used_bytes() == MIB
    device.join()
    assert device.used_bytes() == 0


@pytest.mark.parametrize(
    ("asked", "reused"), [(8 * MIB, True), (7 * MIB, True), (6 * MIB, True), (4 * MIB, False), (9 * MIB, False)]
)
def test_a_block_serves_requests_of_nearly_its_size(asked: int, reused: bool) -> None:
    device = EmulatedDevice()
    device.empty(8 * MIB, "u1")
    device.empty(asked, "u1")
    assert device.driver.names().count("allocate") == (1 if reused else 2)


def test_arrays_that_other_threads_drop_come_back_without_a_call() -> None:
    device = EmulatedDevice()
    boxes = [[device.empty(3 * MIB, "u1")] for _ in range(20)]
    calls = len(device.driver.calls)
    for box in boxes:
        drop_on_another_thread(box)
    assert len(device.driver.calls) == calls, "a destructor must not call CUDA"
    assert device.used_bytes() == 0 and device.pool.total_bytes() == 20 * 4 * MIB


def test_memory_is_wiped_at_the_end_of_a_session() -> None:
    device = EmulatedDevice()
    kept = device.upload(np.arange(1000, dtype=np.uint64))
    with device.session():
        a = device.upload(np.full(3 * MIB, 7, np.uint8))
        allocation = device.driver.allocations[a.ctypes.data].data
        del a
        assert allocation.any()
    device.await_wiping()
    assert not allocation.any(), "what was given back is zeroed"
    assert kept[999] == 999, "what is in use is not"


def test_memory_is_wiped_before_the_driver_gets_it() -> None:
    device = EmulatedDevice()
    for size in (100, 3 * MIB, 5 * MIB):
        device.upload(np.full(size, 9, np.uint8))
    device.trim()
    assert device.driver.unwiped == 0 and device.driver.allocated() == 0


def test_memory_is_wiped_when_a_session_fails() -> None:
    device = EmulatedDevice()
    with pytest.raises(BudgetError) as caught, device.session():
        secret = device.upload(np.full(3 * MIB, 7, np.uint8))
        allocation = device.driver.allocations[secret.ctypes.data].data
        raise BudgetError(1, 0, "a test")
    del secret
    device.await_wiping()
    device.pool.wipe()
    assert not allocation.any() and caught.value.asked_bytes == 1


@pytest.mark.parametrize("call", ["zero", "use"])
def test_a_wiping_that_fails_for_want_of_memory_is_made_again(call: str) -> None:
    device = EmulatedDevice()
    with device.session():
        secret = device.upload(np.full(3 * MIB, 7, np.uint8))
        allocation = device.driver.allocations[secret.ctypes.data].data
        device.driver.faults.append(Fault(call, OUT_OF_MEMORY))
        del secret
    with pytest.raises(BudgetError):
        device.await_wiping()
    device.await_wiping()
    assert not allocation.any()


def test_an_error_that_somebody_keeps_holds_no_memory() -> None:
    device = EmulatedDevice()

    def work() -> None:
        held = device.empty(64 * MIB, "u1")
        device.driver.taken = device.driver.capacity
        device.empty(held.nbytes * 1000, "u1")

    with pytest.raises(BudgetError) as caught, device.session():
        work()
    gc.collect()
    assert device.used_bytes() == 0, caught.value


def test_idle_memory_is_trimmed_and_the_request_repeated_once() -> None:
    device = EmulatedDevice(capacity=16 * MIB)
    device.empty(8 * MIB, "u1")
    device.empty(12 * MIB, "u1")  # does not fit beside the idle 8 MiB, which are of no use for it
    assert device.driver.names().count("allocate") == 3 and device.pool.total_bytes() == 12 * MIB
    with pytest.raises(BudgetError) as caught:
        device.empty(20 * MIB, "u1")
    assert device.driver.names().count("allocate") == 5
    assert caught.value.asked_bytes == 20 * MIB and "16777216 of 16777216 are free" in caught.value.cause


def test_keys_of_different_sizes_take_turns() -> None:
    device = EmulatedDevice(capacity=30 * MIB)
    for _ in range(10):
        for size in (20, 12, 26):
            device.empty(size * MIB, "u1")
    assert device.driver.allocated() <= 30 * MIB


def test_a_limit_counts_what_is_idle() -> None:
    device = EmulatedDevice(memory_limit=32 * MIB)
    device.empty(20 * MIB, "u1")
    second = device.empty(28 * MIB, "u1")
    assert device.driver.allocated() == 28 * MIB
    assert device.free_bytes() == 4 * MIB
    with pytest.raises(BudgetError) as caught:
        device.empty(8 * MIB, "u1")
    assert (caught.value.asked_bytes, caught.value.budget_bytes) == (8 * MIB, 32 * MIB)
    del second
    assert device.free_bytes() == 32 * MIB and device.pool.peak_bytes == 28 * MIB


def test_lent_memory_is_poisoned_and_zeros_are_zero() -> None:
    device = EmulatedDevice()
    assert (np.asarray(device.empty(100, "u1")) == POISON).all()
    assert not np.asarray(device.zeros(100, "u1")).any()
    assert device.zeros(0, "u4").nbytes == 0


def test_want_of_memory_at_a_launch_leaves_the_device_usable() -> None:
    device = EmulatedDevice()
    device.driver.faults.append(Fault("record", OUT_OF_MEMORY))
    with pytest.raises(BudgetError):
        device.record()
    assert device.failure is None
    device.record()


def test_any_other_error_ends_the_device() -> None:
    device = EmulatedDevice()
    a = device.upload(np.arange(10))
    device.driver.faults.append(Fault("to_host", ILLEGAL_ADDRESS))
    with pytest.raises(DeviceError, match="700"):
        device.download(a)
    calls = len(device.driver.calls)
    for use in (
        lambda: device.download(a),
        lambda: device.empty(1, "u1"),
        lambda: device.record(),
        lambda: device.session().__enter__(),
        lambda: device.synchronize(),
    ):
        with pytest.raises(DeviceError, match="not used any more: to_host"):
            use()
    device.close()
    assert len(device.driver.calls) == calls, "no call reaches a context that is undefined"


def test_a_context_that_others_destroyed() -> None:
    device = EmulatedDevice()
    device.driver.dead = True
    with pytest.raises(DeviceError, match="was destroyed from outside"), device.session():
        pass
    device.close()


def test_a_session_restores_the_threads_device() -> None:
    device = EmulatedDevice(ordinal=1)
    CURRENT.device = 3
    with pytest.raises(ZeroDivisionError), device.session():
        assert CURRENT.device == 1
        raise ZeroDivisionError
    assert CURRENT.device == 3
    CURRENT.device = 0
