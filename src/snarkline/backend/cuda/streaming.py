"""Slices of host arrays on the device, the next of them copied while the present one is computed with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from snarkline.backend.cuda.driver import Array, Event, Queue
from snarkline.errors import BudgetError, DeviceError

if TYPE_CHECKING:
    from snarkline.backend.cuda.gpu import Gpu


def stream_slices(gpu: Gpu, hosts: Sequence[npt.NDArray[Any]], ranges: Sequence[slice]) -> Iterator[list[Array]]:
    """For each range, hosts[0][range], hosts[1][range], ... on the device; valid until the next is asked for.

    Two sets of buffers take turns. The work on a slice must be over when the next is asked for: its buffers are then
    written again.
    """
    longest = max(part.stop - part.start for part in ranges)
    buffers = [[gpu.empty((longest, *h.shape[1:]), h.dtype) for h in hosts] for _ in range(min(2, len(ranges)))]
    # Kernels that still read what the pool lent here before are waited for by the queue of copies.
    gpu.wait_for(Queue.COPY, gpu.record(Queue.COMPUTE))

    def copy(number: int) -> tuple[list[Array], Event]:
        part = ranges[number]
        slices = [buffer[: part.stop - part.start] for buffer in buffers[number % 2]]
        with gpu.current():
            for target, host in zip(slices, hosts, strict=True):
                gpu.staging.send(target, host[part], Queue.COPY)
            return slices, gpu.record(Queue.COPY)

    try:
        with ThreadPoolExecutor(1, "snarkline-upload") as uploader:
            coming: Future[tuple[list[Array], Event]] | None = uploader.submit(copy, 0)
            for number in range(len(ranges)):
                assert coming is not None
                slices, ready = coming.result()
                coming = uploader.submit(copy, number + 1) if number + 1 < len(ranges) else None
                gpu.wait_for(Queue.COMPUTE, ready)
                yield slices
    except BaseException:
        # Nobody waits any more for copies that are under way: kernels to which the pool lends the buffers do.
        with suppress(DeviceError, BudgetError), gpu.current():
            gpu.wait_for(Queue.COMPUTE, gpu.record(Queue.COPY))
        raise
    # The last copies have been waited for: the pool may lend the buffers to kernels again.
