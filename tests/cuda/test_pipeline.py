"""Sums that follow each other on the device: the order of what is queued, what memory and faults do to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from emulation import ILLEGAL_ADDRESS, OUT_OF_MEMORY, EmulatedDriver, Fault
from test_emulated import points_of, scalars_of

import snarkline.backend.cuda.pipeline
import snarkline.backend.cuda.readback
import snarkline.backend.cuda.sums
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.driver import Queue
from snarkline.backend.cuda.plan import MemoryPlan
from snarkline.curves.curve import BN254, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import BudgetError, DeviceError

Sum = tuple[list[PointTable], FrVector]


def make_sum(cpu: CpuBackend, kind: str, n: int, form: Form = Form.CANONICAL, n_tables: int = 1) -> Sum:
    tables = [points_of(cpu, BN254, Group.G1, n) for _ in range(n_tables)]
    return tables, FrVector.from_ints(BN254, scalars_of(kind, BN254, n), form)


def driver_of(backend: CudaBackend) -> EmulatedDriver:
    driver = backend._device.driver  # type: ignore[attr-defined]
    assert isinstance(driver, EmulatedDriver)
    return driver


def sums_of(backend: CudaBackend, work: list[Sum]) -> list[list[Point]]:
    """The last sum is ended first, as in a proof."""
    ends: list[Callable[[], list[Point]]] = [backend.begin_msm(tables, scalars) for tables, scalars in work]
    last = ends.pop()()
    return [*(end() for end in ends), last]


def expected(cpu: CpuBackend, work: list[Sum]) -> list[list[Point]]:
    return [cpu.msm(tables, scalars) for tables, scalars in work]


def test_the_sums_of_a_proof(emulated: CudaBackend, cpu: CpuBackend) -> None:
    work = [
        make_sum(cpu, "bits", 60, n_tables=3),
        make_sum(cpu, "edges", 90),
        make_sum(cpu, "random", 40, Form.MONTGOMERY),
        make_sum(cpu, "zero", 5, Form.MONTGOMERY),
        make_sum(cpu, "zero", 5),
    ]
    assert sums_of(emulated, work) == expected(cpu, work)
    calls = driver_of(emulated).calls
    steps = [call[1] for call in calls if call[0] == "launch" and call[1] in ("make_digits", "first_additions")]
    # Polynomials, of which nothing must be counted, are sorted first; that with most tables is added up first. The
    # second polynomial has no entries, the last sum no scalars but zeros.
    assert steps == ["make_digits"] * 4 + ["first_additions"] * 5
    ends = [call[2] for call in calls if call[0] == "launch" and call[1] == "finish_windows"]
    sides = [Queue.SIDE_1, Queue.SIDE_2, Queue.SIDE_3]
    assert ends == [*sides, sides[0], sides[0]], "sums end beside the next, tables beside each other"
    waits = [call[1:3] for call in calls if call[0] == "wait_for"]
    first, three = [(Queue.SIDE_1, Queue.COMPUTE)], [(side, Queue.COMPUTE) for side in sides]
    assert waits == [*three, *(w[::-1] for w in three), *first, first[0][::-1], *first, first[0][::-1]]
    assert "to_host" not in driver_of(emulated).names()


def test_where_there_is_little_memory_one_sum_waits_sorted(emulated: CudaBackend, cpu: CpuBackend) -> None:
    emulated._sums._pipeline._spare = lambda: False
    work = [make_sum(cpu, "bits", 8), make_sum(cpu, "random", 6), make_sum(cpu, "random", 5, Form.MONTGOMERY)]
    assert sums_of(emulated, work) == expected(cpu, work)
    calls = driver_of(emulated).calls
    steps = [call[1] for call in calls if call[0] == "launch" and call[1] in ("make_digits", "first_additions")]
    assert steps == ["make_digits", *["make_digits", "first_additions"] * 2, "first_additions"]


def test_ends_that_are_awaited_need_the_device_no_more(emulated: CudaBackend, cpu: CpuBackend) -> None:
    work = [make_sum(cpu, "bits", 30, n_tables=2), make_sum(cpu, "random", 20, Form.MONTGOMERY)]
    with emulated.session():
        ends = [emulated.begin_msm(*s) for s in work]
        emulated.await_msms()
    emulated._device.await_wiping()  # type: ignore[attr-defined]
    n_calls = len(driver_of(emulated).calls)
    assert [end() for end in ends] == expected(cpu, work)
    assert len(driver_of(emulated).calls) == n_calls


@pytest.mark.parametrize("after", [6, 20])
def test_where_memory_is_short_a_sum_is_halved(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.pipeline, "MIN_SLICE", 20)
    work = [make_sum(cpu, "bits", 50), make_sum(cpu, "random", 45, Form.MONTGOMERY)]
    # The pool asks once more when it has given its idle blocks back.
    driver_of(emulated).faults += [Fault("allocate", OUT_OF_MEMORY, after=after, times=2)]
    assert sums_of(emulated, work) == expected(cpu, work)
    assert driver_of(emulated).names().count("allocate") > after + 2
    assert driver_of(emulated).kernels().count("finish_windows") in (2, 3)


def test_where_not_even_the_smallest_piece_has_memory(emulated: CudaBackend, cpu: CpuBackend) -> None:
    work = [make_sum(cpu, "bits", 50), make_sum(cpu, "bits", 45)]
    driver_of(emulated).faults += [Fault("allocate", OUT_OF_MEMORY, after=6, times=4)]
    with pytest.raises(BudgetError), emulated.session():
        sums_of(emulated, work)
    with emulated.session():
        assert sums_of(emulated, work) == expected(cpu, work)


@pytest.mark.parametrize("call", ["to_host_later", "await_event", "wait_for", "passed"])
def test_a_device_that_fails(emulated: CudaBackend, cpu: CpuBackend, call: str) -> None:
    work = [make_sum(cpu, "bits", 10, n_tables=2 if call == "wait_for" else 1)]
    driver_of(emulated).faults += [Fault(call, ILLEGAL_ADDRESS)]
    with pytest.raises(DeviceError), emulated.session():
        sums_of(emulated, work)
    with pytest.raises(DeviceError, match="not used any more"):
        sums_of(emulated, work)


@pytest.mark.slow
def test_without_page_locked_memory(emulated: CudaBackend, cpu: CpuBackend) -> None:
    driver_of(emulated).faults += [Fault("page_lock", OUT_OF_MEMORY)]
    work = [make_sum(cpu, "bits", 30), make_sum(cpu, "random", 20, Form.MONTGOMERY)]
    assert sums_of(emulated, work) == expected(cpu, work)
    assert "to_host" in driver_of(emulated).names() and "to_host_later" not in driver_of(emulated).names()


def test_what_was_read_is_wiped(emulated: CudaBackend, cpu: CpuBackend) -> None:
    with emulated.session():
        emulated.msm(*make_sum(cpu, "bits", 10))
        inbox = emulated._device._inbox  # type: ignore[attr-defined]
        assert not inbox._leases[0].array.any() and len(inbox._slots) == snarkline.backend.cuda.readback.SLOTS
    emulated.close()
    assert driver_of(emulated).locked == {}


def test_without_room_a_sum_does_not_begin_beside_the_end_of_another(emulated: CudaBackend, cpu: CpuBackend) -> None:
    emulated._sums._pipeline._room = lambda n_bytes: False
    work = [make_sum(cpu, "bits", 20), make_sum(cpu, "random", 10, Form.MONTGOMERY)]
    assert sums_of(emulated, work) == expected(cpu, work)
    calls = driver_of(emulated).calls
    steps = [call[1] for call in calls if call[0] == "launch" and call[1] in ("finish_windows", "first_additions")]
    order = [i for i, call in enumerate(calls) if call[:3] == ("wait_for", Queue.COMPUTE, Queue.SIDE_1)]
    begins = [i for i, call in enumerate(calls) if call[:2] == ("launch", "first_additions")]
    assert steps == ["first_additions", "finish_windows"] * 2 and begins[0] < order[0] < begins[1] < order[1]


@pytest.mark.slow
def test_streamed_tables(emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.sums, "MIN_SLICE", 10)
    resident, streamed = make_sum(cpu, "random", 10, Form.MONTGOMERY), make_sum(cpu, "bits", 30)
    end = emulated.begin_msm(*resident)
    emulated._sums.plan = MemoryPlan(keep_tables=False, keep_matrices=True, slice_points=15, peak_bytes=1 << 30)
    assert emulated.msm(*streamed) == cpu.msm(*streamed)
    assert end() == cpu.msm(*resident)
    driver = driver_of(emulated)
    assert driver.kernels().count("make_digits") == 3
    assert [call[3] for call in driver.calls if call[0] == "to_device"].count(Queue.COPY) == 2
