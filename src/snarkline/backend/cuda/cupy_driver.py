"""The seam around CUDA, through CuPy."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import numpy.typing as npt

from snarkline.backend.cuda.driver import OUT_OF_MEMORY, UNASKED_SHARED, Array, DriverFault, Event, Queue
from snarkline.errors import MissingLibraryError, NoDeviceError, NoDriverError

P = ParamSpec("P")
R = TypeVar("R")

MIN_CAPABILITY = 75
"""Turing: the oldest that the NVRTC of CUDA 13 compiles for."""
INSTALL = "pip install 'snarkline[cuda13]', or [cuda12] for drivers before 580"


def fault_at(call: Callable[P, R]) -> Callable[P, R]:
    """What CuPy raises, as DriverFault."""

    @functools.wraps(call)
    def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except (RuntimeError, MemoryError) as error:  # CUDARuntimeError, CUDADriverError, OutOfMemoryError
            raise _fault(call.__name__, error) from None

    return translated


def _fault(call: str, error: RuntimeError | MemoryError) -> DriverFault:
    code = OUT_OF_MEMORY if isinstance(error, MemoryError) else int(getattr(error, "status", -1))
    return DriverFault(call, code, str(error))


MAX_PARAMETERS = 32
WORDS = [struct.Struct(f"={n}q") for n in range(MAX_PARAMETERS + 1)]
"""So many words of 64 bits, of which a kernel's parameter of 32 bits is the lower half."""


class CupyDriver:
    """A `Driver`. Kernels go to the default stream, so that they are in order with others' work on it.

    Raises MissingLibraryError without CuPy, and NoDeviceError where there is no driver, no such GPU, or either is too
    old.
    """

    def __init__(self, ordinal: int = 0) -> None:
        cupy = _import_cupy()
        self._cupy, self._runtime, self.ordinal = cupy, cupy.cuda.runtime, ordinal
        try:
            self._require(ordinal)
            properties = self._runtime.getDeviceProperties(ordinal)
            with cupy.cuda.Device(ordinal):
                self._runtime.free(0)  # makes the context
                beside = [cupy.cuda.Stream(non_blocking=True) for _ in list(Queue)[1:]]
                self._sentinel = self._runtime.malloc(256)
        except (RuntimeError, MemoryError) as error:
            raise NoDeviceError(f"GPU {ordinal} cannot be used: {error}") from None
        self._ndarray, self._pointer = cupy.ndarray, cupy.cuda.MemoryPointer
        self._unowned = cupy.cuda.UnownedMemory
        self.name = properties["name"].decode()
        self.architecture = f"{properties['major']}{properties['minor']}"
        self.multiprocessors = int(properties["multiProcessorCount"])
        self._compute = cupy.cuda.Stream.null
        self._streams = dict(zip(Queue, (self._compute, *beside), strict=True))
        self._addresses = {queue: int(stream.ptr) for queue, stream in self._streams.items()}
        # Kernels launch with the words that the pointers in `_parameters` are to; the driver has read them on return.
        self._launch_kernel = cupy.cuda.driver.launchKernel
        self._words = ctypes.create_string_buffer(8 * MAX_PARAMETERS)
        first = ctypes.addressof(self._words)
        self._parameters = (ctypes.c_void_p * MAX_PARAMETERS)(*range(first, first + 8 * MAX_PARAMETERS, 8))
        self._parameters_at = ctypes.addressof(self._parameters)
        if int(self.architecture) < MIN_CAPABILITY:
            raise NoDeviceError(
                f"{self.name} has compute capability {int(self.architecture) / 10}; "
                f"{MIN_CAPABILITY / 10} or later is needed"
            )

    def _require(self, ordinal: int) -> None:
        has, needs = self._runtime.driverGetVersion(), self._runtime.runtimeGetVersion()
        if has == 0:
            raise NoDriverError("no NVIDIA driver is installed")
        if has // 1000 < needs // 1000:
            raise NoDeviceError(
                f"the NVIDIA driver is for CUDA {_version(has)}, the installed CuPy needs {needs // 1000}: {INSTALL}"
            )
        try:
            count = self._runtime.getDeviceCount()
        except RuntimeError:  # cudaErrorNoDevice
            count = 0
        if count == 0:
            raise NoDeviceError("the NVIDIA driver shows no GPU (see CUDA_VISIBLE_DEVICES)")
        if not 0 <= ordinal < count:
            raise NoDeviceError(f"GPU {ordinal}: the NVIDIA driver shows {count}, numbered from 0")

    # ---- the device ----

    @fault_at
    def use(self) -> int:
        try:
            previous = int(self._runtime.getDevice())
        except RuntimeError:  # the thread's device has failed
            previous = -1
        if previous != self.ordinal:
            self._runtime.setDevice(self.ordinal)
        return previous

    def leave(self, previous: int) -> None:
        if previous not in (self.ordinal, -1):
            with suppress(RuntimeError):
                self._runtime.setDevice(previous)

    def alive(self) -> bool:
        # Asks about an address, not about a handle, which a context that is gone would leave dangling. The thread's
        # device may be another one, whose failure would answer.
        try:
            previous = self.use()
            try:
                attributes = self._runtime.pointerGetAttributes(self._sentinel)
                return bool(attributes.type == self._runtime.memoryTypeDevice)
            finally:
                self.leave(previous)
        except (RuntimeError, DriverFault):
            return False

    @fault_at
    def synchronize(self) -> None:
        self._runtime.deviceSynchronize()

    @fault_at
    def close(self) -> None:
        if self.alive():
            self._runtime.free(self._sentinel)
        self._sentinel = 0

    # ---- memory ----

    @fault_at
    def memory(self) -> tuple[int, int]:
        free, total = self._runtime.memGetInfo()
        return int(free), int(total)

    @fault_at
    def allocate(self, n_bytes: int) -> int:
        return int(self._runtime.malloc(n_bytes))

    @fault_at
    def free(self, address: int) -> None:
        self._runtime.free(address)

    def array(self, address: int, n_bytes: int, shape: tuple[int, ...], dtype: npt.DTypeLike, owner: object) -> Array:
        pointer = self._pointer(self._unowned(address, n_bytes, owner, self.ordinal), 0)
        return self._ndarray(shape, dtype, pointer)

    def owns(self, array: object) -> bool:
        return isinstance(array, self._cupy.ndarray)

    @fault_at
    def zero(self, address: int, n_bytes: int, queue: Queue = Queue.COMPUTE) -> None:
        self._runtime.memsetAsync(address, 0, n_bytes, self._streams[queue].ptr)

    @fault_at
    def to_device(self, array: Array, host: npt.NDArray[Any], queue: Queue) -> None:
        stream = self._streams[queue]
        self._runtime.memcpyAsync(
            array.data.ptr, host.ctypes.data, host.nbytes, self._runtime.memcpyHostToDevice, stream.ptr
        )

    @fault_at
    def to_host(self, array: Array) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = array.get()
        return host

    @fault_at
    def to_host_later(self, host: npt.NDArray[Any], array: Array, queue: Queue) -> None:
        stream = self._streams[queue]
        self._runtime.memcpyAsync(
            host.ctypes.data, array.data.ptr, array.nbytes, self._runtime.memcpyDeviceToHost, stream.ptr
        )

    @fault_at
    def copy(self, target: Array, source: Array) -> None:
        target.data.copy_from_device_async(source.data, source.nbytes, self._compute)

    @fault_at
    def page_lock(self, address: int, n_bytes: int) -> None:
        self._runtime.hostRegister(address, n_bytes, 0)

    @fault_at
    def page_unlock(self, address: int) -> None:
        self._runtime.hostUnregister(address)

    @fault_at
    def page_locked(self, address: int) -> bool:
        return bool(self._runtime.pointerGetAttributes(address).type == self._runtime.memoryTypeHost)

    # ---- kernels ----

    @fault_at
    def load(self, code: bytes) -> Any:
        module = self._cupy.cuda.function.Module()
        module.load(code)
        return module

    @fault_at
    def function(self, module: Any, name: str, shared: int) -> Any:
        function = module.get_function(name)
        if shared > UNASKED_SHARED:
            driver = self._cupy.cuda.driver
            driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
        return function

    def launch(
        self,
        function: Any,
        grid: tuple[int, int],
        block: int,
        arguments: Sequence[Array | int],
        shared: int,
        queue: Queue = Queue.COMPUTE,
    ) -> None:
        # Fewer steps than CuPy's own packing of arguments: what a proof of a small circuit waits for are launches.
        words = [a if isinstance(a, int) else a.data.ptr for a in arguments]
        WORDS[len(words)].pack_into(self._words, 0, *words)
        try:
            self._launch_kernel(
                function.ptr, *grid, 1, block, 1, 1, shared, self._addresses[queue], self._parameters_at, 0
            )
        except RuntimeError as error:
            raise _fault("launch", error) from None

    # ---- order ----

    @fault_at
    def record(self, queue: Queue) -> Event:
        event = self._cupy.cuda.Event()
        event.record(self._streams[queue])
        return event

    @fault_at
    def wait_for(self, queue: Queue, event: Event) -> None:
        self._streams[queue].wait_event(event)

    @fault_at
    def passed(self, event: Event) -> bool:
        return bool(event.done)

    @fault_at
    def await_event(self, event: Event) -> None:
        event.synchronize()

    @fault_at
    def elapsed(self, begin: Event, end: Event) -> float:
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) / 1e3


def require_driver() -> None:
    """Raises NoDriverError where there is no driver, without asking for CuPy."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoDriverError("no NVIDIA driver is installed") from None


def _import_cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingLibraryError(f"CuPy, which drives the GPU, is not installed: {INSTALL} ({error})") from None
    return cupy


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
