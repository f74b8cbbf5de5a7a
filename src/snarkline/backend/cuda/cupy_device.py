"""One NVIDIA GPU through CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import Array
from snarkline.backend.cuda.module import KernelCache, KernelError, Module, Progress, modules_of
from snarkline.curves.curve import CURVES
from snarkline.errors import BudgetError, DeviceError, MissingLibraryError
from snarkline.threads import usable_threads
from snarkline.trace import DeviceClock


class CupyDevice:
    """A `Device` on the GPU number `ordinal`.

    `memory_limit` bounds the memory pool, in bytes. Kernels that the cache folder lacks are compiled by `workers`
    threads. Raises DeviceError where there is no driver or no such GPU, and MissingLibraryError without CuPy.
    """

    def __init__(
        self,
        cache_folder: Path,
        *,
        ordinal: int = 0,
        memory_limit: int | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        try:
            import cupy

            self._device = cupy.cuda.Device(ordinal)
            self.architecture = self._device.compute_capability
            properties = cupy.cuda.runtime.getDeviceProperties(ordinal)
        except ImportError as error:
            hint = "pip install 'snarkline[cuda13]'"
            raise MissingLibraryError(f"CuPy, which drives the GPU, is not installed: {hint} ({error})") from None
        except Exception as error:
            raise DeviceError(f"GPU {ordinal} cannot be used: {error}") from None
        self._cupy = cupy
        self.name = properties["name"].decode()
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.clock: DeviceClock = EventClock(cupy, f"gpu{ordinal}")
        self._pool = cupy.cuda.MemoryPool()
        if memory_limit is not None:
            self._pool.set_limit(size=memory_limit)
        self._limit = memory_limit
        self._cache = KernelCache(cache_folder)
        self._workers = workers if workers is not None else usable_threads()
        self._progress = progress
        self._modules: dict[Module, Any] = {}
        self._functions: dict[tuple[Module, str], Any] = {}
        self._shared: dict[tuple[Module, str], int] = {}

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            memory = self._pool.malloc(size)
        except self._cupy.cuda.memory.OutOfMemoryError:
            self._pool.free_all_blocks()
            try:
                memory = self._pool.malloc(size)
            except self._cupy.cuda.memory.OutOfMemoryError:
                raise BudgetError(size, self.free_bytes(), f"the memory of {self.name}") from None
        return self._cupy.ndarray(shape, dtype, memptr=memory)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        array = self.empty(shape, dtype)
        array.data.memset_async(0, array.nbytes)
        return array

    def upload(self, host: npt.NDArray[Any]) -> Array:
        array = self.empty(host.shape, host.dtype)
        if host.size:
            array.set(np.ascontiguousarray(host))
        return array

    def download(self, array: Array) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = array.get()
        return host

    def copy(self, target: Array, source: Array) -> None:
        target.data.copy_from_device_async(source.data, source.nbytes)

    def owns(self, array: object) -> bool:
        return isinstance(array, self._cupy.ndarray)

    def prepare(self, modules: Sequence[Module]) -> None:
        missing = [module for module in modules if module not in self._modules]
        built = self._cache.build(missing, self.architecture, workers=self._workers, progress=self._progress)
        for module in missing:
            loaded = self._cupy.cuda.function.Module()
            try:
                loaded.load(built.paths[module].read_bytes())
            except Exception as error:
                raise KernelError(f"kernel module {built.paths[module]} cannot be loaded: {error}") from None
            self._modules[module] = loaded

    def launch(
        self, module: Module, kernel: str, grid: int | tuple[int, int], block: int, *arguments: object, shared: int = 0
    ) -> None:
        key = (module, kernel)
        function = self._functions.get(key)
        if function is None:
            self.prepare(modules_of(CURVES[module.curve]))  # all of them side by side, where they must be compiled
            function = self._functions[key] = self._modules[module].get_function(kernel)
        if shared > self._shared.get(key, 48 << 10):
            driver = self._cupy.cuda.driver
            driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
            self._shared[key] = shared
        shape = grid if isinstance(grid, tuple) else (grid, 1)
        function(shape, (block,), [_argument(a) for a in arguments], shared)

    def free_bytes(self) -> int:
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        free += self._pool.free_bytes()
        if self._limit is not None:
            free = min(free, self._limit - self._pool.used_bytes())
        return int(free)

    def synchronize(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def close(self) -> None:
        self._functions.clear()
        self._modules.clear()
        self._pool.free_all_blocks()


class EventClock:
    """Time on the device, from its events (trace.DeviceClock)."""

    def __init__(self, cupy: Any, name: str) -> None:
        self._cupy, self.name = cupy, name

    def record(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def elapsed(self, begin: Any, end: Any) -> float:
        begin.synchronize()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) / 1e3


def _argument(value: object) -> object:
    """CuPy takes a Python integer as 8 bytes, of which the driver reads as many as the parameter has."""
    if value is None:
        return 0
    return int(value) if isinstance(value, (int, np.integer)) else value
