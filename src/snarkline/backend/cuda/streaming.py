"""Host arrays on the device, one after the other, the next of them copied while the present one is computed with."""

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


def stream_arrays(gpu: Gpu, hosts: Sequence[npt.NDArray[Any]]) -> Iterator[Array]:
    """Each of them on the device; valid for work that is queued before the next is asked for.

    Two buffers take turns. One is written again when the device has done that work, which the host does not wait for.
    """
    largest = max(host.nbytes for host in hosts)
    buffers = [gpu.empty(largest, "u1") for _ in hosts[:2]]

    def copy(number: int, after: Event) -> tuple[Array, Event]:
        host = hosts[number]
        target = buffers[number % 2][: host.nbytes].view(host.dtype).reshape(host.shape)
        with gpu.current():
            gpu.wait_for(Queue.COPY, after)
            gpu.staging.send(target, host, Queue.COPY)
            return target, gpu.record(Queue.COPY)

    try:
        with ThreadPoolExecutor(1, "snarkline-upload") as uploader:
            # Kernels that still read what the pool lent here before are waited for by the queue of copies.
            coming: Future[tuple[Array, Event]] | None = uploader.submit(copy, 0, gpu.record(Queue.COMPUTE))
            for number in range(len(hosts)):
                assert coming is not None
                array, ready = coming.result()
                behind = gpu.record(Queue.COMPUTE)
                coming = uploader.submit(copy, number + 1, behind) if number + 1 < len(hosts) else None
                gpu.wait_for(Queue.COMPUTE, ready)
                yield array
    except BaseException:
        # Nobody waits any more for copies that are under way: kernels to which the pool lends the buffers do.
        with suppress(DeviceError, BudgetError), gpu.current():
            gpu.wait_for(Queue.COMPUTE, gpu.record(Queue.COPY))
        raise
    # The last copies have been waited for: the pool may lend the buffers to kernels again.
