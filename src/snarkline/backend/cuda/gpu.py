"""A GPU with its pool, its kernels, and the rule about errors: `Device` over `Driver`.

An error other than want of memory leaves a CUDA context undefined: results that come after it may be wrong without
another error. So the first one ends the device for this process, and no array is read from it any more.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import Argument, Reading
from snarkline.backend.cuda.driver import UNASKED_SHARED, Array, Driver, DriverFault, Event, Queue
from snarkline.backend.cuda.host_memory import Staging
from snarkline.backend.cuda.module import KernelCache, KernelError, Module, Progress, modules_of
from snarkline.backend.cuda.pool import Block, Lent, Pool
from snarkline.backend.cuda.readback import Inbox
from snarkline.backend.cuda.streaming import stream_arrays
from snarkline.curves.curve import CURVES
from snarkline.errors import BudgetError, DeviceError, SnarklineError
from snarkline.threads import usable_threads
from snarkline.trace import DeviceClock

R = TypeVar("R")

SIDES = (Queue.SIDE_1, Queue.SIDE_2, Queue.SIDE_3)
NOT_LOADED: tuple[Any, int] = (None, 0)


@dataclass(frozen=True)
class _Beside:
    """Work that runs beside the queue of kernels: the memory that it has given back, and what it reads."""

    blocks: list[Block]
    works: Sequence[Callable[[], object]]


class Gpu:
    """A `Device`. `memory_limit` caps what it takes, in bytes. Kernels that `cache_folder` lacks are compiled by
    `workers` threads."""

    def __init__(
        self,
        driver: Driver,
        cache_folder: Path,
        *,
        memory_limit: int | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.driver, self.name, self.architecture = driver, driver.name, driver.architecture
        self.multiprocessors = driver.multiprocessors
        self.clock: DeviceClock = EventClock(self, f"gpu{driver.ordinal}")
        self.failure: str | None = None
        self.staging = Staging(self)
        self._inbox = Inbox(self, self.staging.arena)
        self._queue = Queue.COMPUTE
        self._beside: list[_Beside] = []
        self._pool = Pool(driver, memory_limit)
        self._cache = KernelCache(cache_folder)
        self._workers = workers if workers is not None else usable_threads()
        self._progress = progress
        self._modules: dict[Module, Any] = {}
        self._functions: dict[tuple[str, str], tuple[Any, int]] = {}
        self._sweeper = ThreadPoolExecutor(1, "snarkline-wipe")
        self._sweep: Future[None] | None = None
        self._asked: tuple[int | tuple[int, ...], npt.DTypeLike] | None = None
        self._prepared: Array | None = None

    # ---- use ----

    def session(self) -> AbstractContextManager[None]:
        """Work of one thread. At its end the thread's device is restored, and all memory that was given back is wiped
        in the background: before the next session, and before `close` returns.

        Raises DeviceError for a device that has failed, or whose context others destroyed.
        """
        return _Session(self)

    def current(self) -> AbstractContextManager[None]:
        """The device as the calling thread's, for the block."""
        return _Current(self)

    def await_wiping(self) -> None:
        """Waits until the zeroing of what the last session left is queued. Raises its DeviceError, or its BudgetError:
        then it is begun again."""
        sweep, self._sweep = self._sweep, None
        if sweep is not None:
            try:
                sweep.result()
            except BudgetError:
                self.wipe_in_background()
                raise

    def wipe_in_background(self) -> None:
        """What was given back so far; see `await_wiping`."""
        self._sweep = self._sweeper.submit(self._wipe)

    def _wipe(self) -> None:
        with self.current():
            self.join()
            self.staging.wipe()
            self._guarded(self._pool.wipe)
            if self._asked is not None:
                asked, self._asked = self._asked, None
                with suppress(BudgetError):
                    self._prepared = self.empty(*asked)

    def require_usable(self) -> None:
        """Raises DeviceError once the device has failed."""
        if self.failure is not None:
            raise DeviceError(f"{self.name} (GPU {self.driver.ordinal}) is not used any more: {self.failure}")

    def fail(self, reason: str) -> NoReturn:
        """Ends the use of this device."""
        if self.failure is None:
            self.failure = reason
            self._prepared = None
            self._pool.forget()
            self._beside.clear()
            self._modules.clear()
            self._functions.clear()
        raise DeviceError(f"{self.name} (GPU {self.driver.ordinal}) failed: {reason}")

    # ---- memory ----

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return self._take(shape, dtype)[0]

    def empty_again(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        array, self._prepared = self._prepared, None
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self.empty(shape, dtype)
        self._asked = (shape, dtype)
        return array

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        array, address = self._take(shape, dtype)
        if array.nbytes:
            self._guarded(self.driver.zero, address, array.nbytes, self._queue)
        return array

    def _take(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> tuple[Array, int]:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        n_bytes = math.prod(sizes) * np.dtype(dtype).itemsize
        if self.failure is not None:
            self.require_usable()
        try:
            address, owner = self._take_joining(n_bytes)
        except DriverFault as fault:
            self._failed(fault)
        return self.driver.array(address, n_bytes, sizes, dtype, owner), address

    def _take_joining(self, n_bytes: int) -> tuple[int, Lent]:
        if self._beside and self._queue is Queue.COMPUTE:
            with suppress(BudgetError):
                return self._pool.take(n_bytes)
            self.join()
        return self._pool.take(n_bytes)

    def upload(self, host: npt.NDArray[Any]) -> Array:
        array = self.empty(host.shape, host.dtype)
        self.fill(array, host)
        return array

    def fill(self, array: Array, host: npt.NDArray[Any]) -> None:
        self.await_wiping()  # of the staging buffers
        self.staging.send(array, np.ascontiguousarray(host))

    def streamed(self, hosts: Sequence[npt.NDArray[Any]]) -> Iterator[Array]:
        return stream_arrays(self, hosts)

    def send(self, array: Array, host: npt.NDArray[Any], queue: Queue) -> None:
        """Fill an array from contiguous host memory; see `Driver.to_device`."""
        if host.size:
            self._guarded(self.driver.to_device, array, host, queue)

    def page_locked(self, host: npt.NDArray[Any]) -> bool:
        """Whether the device can read this memory by itself."""
        return bool(self._guarded(self.driver.page_locked, host.ctypes.data))

    def download(self, array: Array) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = self._guarded(self.driver.to_host, array)
        return host

    def download_later(self, arrays: Sequence[Array]) -> Reading:
        return self._inbox.read(arrays)

    def read_into(self, host: npt.NDArray[Any], array: Array) -> None:
        """Queue the copy of an array to page-locked host memory."""
        self._guarded(self.driver.to_host_later, host, array, self._queue)

    def copy(self, target: Array, source: Array) -> None:
        self._guarded(self.driver.copy, target, source)

    def owns(self, array: object) -> bool:
        return self.driver.owns(array)

    def free_bytes(self) -> int:
        return int(self._guarded(self._pool.available))

    def used_bytes(self) -> int:
        return self._pool.used_bytes()

    def wipe(self, until: Callable[[], bool]) -> None:
        self._guarded(self._pool.wipe, until)

    def trim(self) -> None:
        """Idle memory back to the driver."""
        self._prepared = None
        self.join()
        self._guarded(self._pool.trim)

    @property
    def pool(self) -> Pool:
        return self._pool

    # ---- kernels ----

    def prepare(self, modules: Sequence[Module]) -> None:
        missing = [module for module in modules if module not in self._modules]
        built = self._cache.build(missing, self.architecture, workers=self._workers, progress=self._progress)
        for module in missing:
            try:
                self._modules[module] = self.driver.load(built.paths[module].read_bytes())
            except DriverFault as fault:
                raise KernelError(f"kernel module {built.paths[module]} cannot be loaded: {fault}") from None

    def launch(
        self,
        module: Module,
        kernel: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        function, most = self._functions.get((module.name, kernel), NOT_LOADED)
        if function is None or shared > most:
            function = self._function(module, kernel, shared)
        if self.failure is not None:
            self.require_usable()
        shape = grid if isinstance(grid, tuple) else (grid, 1)
        try:
            self.driver.launch(function, shape, block, arguments, shared, self._queue)
        except DriverFault as fault:
            self._failed(fault)

    def beside(self, works: Sequence[Callable[[], R]]) -> list[R]:
        begin, results = self.record(), []
        with self._pool.apart() as blocks:
            try:
                for number, work in enumerate(works):
                    self._queue = SIDES[number % len(SIDES)]
                    self.wait_for(self._queue, begin)
                    results.append(work())
            finally:
                self._queue = Queue.COMPUTE
                self._beside.append(_Beside(blocks, works))
        return results

    def join(self) -> None:
        while self._beside:
            work = self._beside[-1]
            for _, queue in zip(work.works, SIDES, strict=False):
                self.wait_for(Queue.COMPUTE, self.record(queue))
            self._beside.pop()
            self._pool.give_back(work.blocks)

    def _function(self, module: Module, kernel: str, shared: int) -> Any:
        self.require_usable()
        if module not in self._modules:
            self.prepare(modules_of(CURVES[module.curve]))  # all side by side, where they must be compiled
        function = self._guarded(self.driver.function, self._modules[module], kernel, shared)
        self._functions[module.name, kernel] = function, max(shared, UNASKED_SHARED)
        return function

    # ---- order and end ----

    def record(self, queue: Queue = Queue.COMPUTE) -> Event:
        return self._guarded(self.driver.record, queue)

    def record_here(self) -> Event:
        """An event in the queue that is worked for at the moment."""
        return self.record(self._queue)

    def wait_for(self, queue: Queue, event: Event) -> None:
        self._guarded(self.driver.wait_for, queue, event)

    def passed(self, event: Event) -> bool:
        return bool(self._guarded(self.driver.passed, event))

    def await_event(self, event: Event) -> None:
        self._guarded(self.driver.await_event, event)

    def synchronize(self) -> None:
        self._guarded(self.driver.synchronize)

    def close(self) -> None:
        """Memory and kernels back to the driver. A device that has failed keeps them: its context is undefined."""
        self._functions.clear()
        self._modules.clear()
        with suppress(DeviceError, BudgetError):
            self.await_wiping()
        self._sweeper.shutdown()
        self._prepared = None
        self._inbox.close()
        self.staging.close()
        if self.failure is None and self.driver.alive():
            # What is left to the driver its process's end gives back.
            with suppress(DriverFault, DeviceError, BudgetError), self.current():
                self.join()
                self._pool.trim()
                self.driver.close()
        self._pool.forget()

    def _guarded(self, call: Any, *arguments: Any) -> Any:
        if self.failure is not None:
            self.require_usable()
        try:
            return call(*arguments)
        except DriverFault as fault:
            self._failed(fault)

    def _failed(self, fault: DriverFault) -> NoReturn:
        if fault.out_of_memory:
            free, total = self._pool.free_on_device()
            cause = f"{fault.call} on {self.name}, where {free} of {total} are free: {fault.text}"
            raise BudgetError(0, self._pool.used_bytes() + free, cause) from None
        self.fail(str(fault))


# These two are classes, not generators: a proof waits for the device while the host goes through them.


class _Current:
    """See `Gpu.current`."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def __enter__(self) -> None:
        self._previous: int = self._gpu._guarded(self._gpu.driver.use)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._gpu.driver.leave(self._previous)


class _Session(_Current):
    """See `Gpu.session`."""

    def __enter__(self) -> None:
        gpu = self._gpu
        gpu.require_usable()
        gpu.await_wiping()
        super().__enter__()
        if not gpu.driver.alive():
            gpu.driver.leave(self._previous)
            gpu.fail("its context has failed, or was destroyed from outside")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SnarklineError):
            _let_go(error)
        if self._gpu.failure is None:
            self._gpu.wipe_in_background()
        super().__exit__(kind, error, trace)


class EventClock:
    """Time on the device, from its events (trace.DeviceClock)."""

    def __init__(self, gpu: Gpu, name: str) -> None:
        self._gpu, self.name = gpu, name

    def record(self) -> Any:
        with self._gpu.current():  # a timeline ends outside sessions
            return self._gpu.record_here()

    def elapsed(self, begin: Any, end: Any) -> float:
        self._gpu.await_event(begin)
        self._gpu.await_event(end)
        return float(self._gpu._guarded(self._gpu.driver.elapsed, begin, end))


def _let_go(error: BaseException | None) -> None:
    """Empty the frames that an error went through: they hold arrays, for as long as anybody keeps the error."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
