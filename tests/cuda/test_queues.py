"""No memory is lent again while another queue may still use it (emulation/queues.py), whatever the device's order."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import OUT_OF_MEMORY, Fault
from emulation.queues import OrderedDevice
from test_pipeline import expected, make_sum, sums_of

import snarkline.backend.cuda.backend
import snarkline.backend.cuda.pipeline
import snarkline.backend.cuda.pool
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.driver import Queue
from snarkline.backend.cuda.plan import MemoryPlan
from snarkline.curves.vector import Form


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> OrderedDevice:
    """Small requests get blocks of one size: whatever is given back is lent again soon."""
    monkeypatch.setattr(snarkline.backend.cuda.pool, "FINE", 1 << 20)
    return OrderedDevice()


@pytest.mark.parametrize("after", [None, pytest.param(12, marks=pytest.mark.slow)])
def test_sums(device: OrderedDevice, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, after: int | None) -> None:
    """With the memory short at some place, and without."""
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    monkeypatch.setattr(snarkline.backend.cuda.pipeline, "MIN_SLICE", 4)
    backend = CudaBackend(device, cpu)
    work = [
        make_sum(cpu, "bits", 9, n_tables=2),
        make_sum(cpu, "random", 6),
        make_sum(cpu, "random", 5, Form.MONTGOMERY),
    ]
    if after is not None:
        device.driver.faults += [Fault("allocate", OUT_OF_MEMORY, after=after, times=2)]
    with backend.session():
        assert sums_of(backend, work) == expected(cpu, work)
    device.await_wiping()
    assert device.driver.races == [] and device.driver.lent > 20


def test_streamed_sums(device: OrderedDevice, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    backend = CudaBackend(device, cpu)
    backend.plan = MemoryPlan(False, False, 2, 1 << 30, side_by_side=False, sums_at_once=1)
    work = [make_sum(cpu, "bits", 6)]
    with backend.session():
        assert sums_of(backend, work) == expected(cpu, work)
    device.await_wiping()
    copies = [call for call in device.driver.calls if call[0] == "to_device" and call[3] is Queue.COPY]
    assert len(copies) == 3 and device.driver.races == [] and device.driver.lent > 20


def test_copies_of_slices_that_nobody_asks_for(device: OrderedDevice) -> None:
    host = np.arange(400, dtype=np.uint64)
    with pytest.raises(ZeroDivisionError), device.session():
        for _ in device.streamed([host[:200], host[200:]]):
            raise ZeroDivisionError
    with device.session():
        for _ in range(4):
            device.zeros(200, "u8")
    device.await_wiping()
    assert device.driver.races == [] and device.driver.lent


def test_a_work_beside_that_fails(device: OrderedDevice) -> None:
    def work() -> None:
        device.zeros(8, "u8")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError), device.session():
            device.beside([work, lambda: 1 // 0])
    device.zeros(8, "u8")
    device.await_wiping()
    assert device.driver.races == []


def test_races_are_told(device: OrderedDevice) -> None:
    device.zeros(8, "u8")
    device._queue = Queue.SIDE_1
    device.zeros(8, "u8")
    assert device.driver.races == ["zero in side 1: compute may still use a block"]
