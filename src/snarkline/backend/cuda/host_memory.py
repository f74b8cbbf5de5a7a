"""Host memory that the device reads by itself: page-locked, the fences of its readers, and copies through it."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.driver import Array, DriverFault, Event, Queue
from snarkline.errors import DeviceError, RegistrationError
from snarkline.memory import Arena, Lease

if TYPE_CHECKING:
    from snarkline.backend.cuda.gpu import Gpu

BUFFER_BYTES = 16 << 20
"""Of each of the two staging buffers."""
SMALL_BYTES, SMALL_SLICE = 8 << 20, 64 << 10
"""Less than this the driver copies as fast (on the machine of docs/gpu.md). Slices of tables are copied beside the work
of another thread, which the driver keeps from queueing kernels meanwhile."""
COPYING_THREADS, COPY_BYTES = 8, 1 << 20
"""At most so many threads fill a buffer, with at least so many bytes each."""
POLL_S = 50e-6


class CudaPinner:
    """A `memory.Pinner`: page-locks mappings for a GPU's context, which then copies from them by itself."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def pin(self, address: int, n_bytes: int) -> None:
        self._gpu.require_usable()
        previous = self._gpu.driver.use()
        try:
            self._gpu.driver.page_lock(address, n_bytes)
        finally:
            self._gpu.driver.leave(previous)

    def unpin(self, address: int) -> None:
        """Also for a device that has failed: where its context lives on, so do its registrations, and copies that
        nobody has waited for."""
        driver = self._gpu.driver
        previous = driver.use()
        try:
            if self._gpu.failure is not None:
                driver.synchronize()
            try:
                driver.page_unlock(address)
            except DriverFault:  # maybe that of earlier work, which any call may be told
                if driver.page_locked(address):
                    driver.page_unlock(address)
        finally:
            driver.leave(previous)

    def alive(self) -> bool:
        return self._gpu.driver.alive()


class CudaFence:
    """A `memory.Fence` behind all work that the queue holds now. Once the context is gone nobody reads: it is done."""

    def __init__(self, gpu: Gpu, queue: Queue = Queue.COMPUTE) -> None:
        self._gpu, self._event = gpu, gpu.record(queue)

    def done(self) -> bool:
        driver = self._gpu.driver
        if not driver.alive():
            return True
        try:
            previous = driver.use()  # a failure of another device, were it the thread's, would answer instead
            try:
                return driver.passed(self._event)
            finally:
                driver.leave(previous)
        except DriverFault:
            return True

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not self.done():
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        return True


class Staging:
    """Copies of large host arrays to the device, through two page-locked buffers: while the device reads one, the
    other is filled. Where the system refuses to lock pages the driver copies instead.

    For one thread at a time.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._arena = Arena(pinner=CudaPinner(gpu), idle_s=1e9)
        self._leases: list[Lease] = []
        self._events: list[Event | None] = [None, None]
        self._refused = False
        self._turn = 0
        self._filled = [0, 0]
        self._wiping: list[Future[None]] = []
        self._workers: ThreadPoolExecutor | None = None

    @property
    def arena(self) -> Arena:
        """For buffers that are page-locked: `lease(..., registered=True)`."""
        return self._arena

    def send(self, array: Array, host: npt.NDArray[Any], queue: Queue = Queue.COMPUTE) -> None:
        """Fill an array of the device; `host` may be changed on return, unless it is page-locked itself."""
        small = SMALL_SLICE if queue is Queue.COPY else SMALL_BYTES
        if host.nbytes < small or not self._open() or self._gpu.page_locked(host):
            self._gpu.send(array, host, queue)
            return
        while self._wiping:
            self._wiping.pop().result()
        source, target = host.reshape(-1).view(np.uint8), array.reshape(-1).view(np.uint8)
        for begin in range(0, len(source), BUFFER_BYTES):
            part = source[begin : begin + BUFFER_BYTES]
            event = self._events[self._turn]
            if event is not None:
                self._gpu.await_event(event)
            buffer = self._leases[self._turn].array[: len(part)]
            self._fill(buffer, part)
            self._gpu.send(target[begin : begin + len(part)], buffer, queue)
            self._events[self._turn] = self._gpu.record(queue)
            self._filled[self._turn] = max(self._filled[self._turn], len(part))
            self._turn ^= 1

    def wipe(self) -> None:
        """Zero what went through the buffers, in the background, once the device has read it."""
        for turn, lease in enumerate(self._leases):
            event, n_bytes = self._events[turn], self._filled[turn]
            if event is not None:
                self._gpu.await_event(event)
            if n_bytes and self._workers is not None:
                self._wiping.append(self._workers.submit(lease.array[:n_bytes].fill, 0))
            self._filled[turn] = 0

    def close(self) -> None:
        """Unlocks and gives back the buffers."""
        if self._gpu.failure is None:
            with suppress(DeviceError):
                self.wipe()
        if self._workers is not None:
            self._workers.shutdown()
            self._workers = None
        self._leases.clear()
        self._arena.close()

    def _open(self) -> bool:
        if not self._leases and not self._refused:
            try:
                self._leases = [
                    self._arena.lease(BUFFER_BYTES, np.uint8, secret=True, registered=True) for _ in range(2)
                ]
                self._workers = ThreadPoolExecutor(COPYING_THREADS, "snarkline-copy")
            except RegistrationError:
                self._refused = True
        return not self._refused

    def _fill(self, buffer: npt.NDArray[np.uint8], part: npt.NDArray[np.uint8]) -> None:
        """NumPy copies without the GIL, so that several threads share the work."""
        assert self._workers is not None
        step = max(COPY_BYTES, -(-len(part) // COPYING_THREADS))
        slices = [slice(begin, begin + step) for begin in range(0, len(part), step)]
        copies = [self._workers.submit(np.copyto, buffer[s], part[s]) for s in slices[1:]]
        np.copyto(buffer[slices[0]], part[slices[0]])
        for copy in copies:
            copy.result()
