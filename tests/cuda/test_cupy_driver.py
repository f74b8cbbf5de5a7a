"""The seam itself, on a CuPy that is not there: what is asked before a GPU is used, and what its errors become."""

from __future__ import annotations

import builtins
import ctypes
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from snarkline.backend.cuda import CupyDriver, cupy_driver
from snarkline.backend.cuda.driver import OUT_OF_MEMORY, DriverFault, Queue
from snarkline.errors import InputError, MissingLibraryError, NoDeviceError, NoDriverError


class CudaError(RuntimeError):
    """As CuPy's: a RuntimeError with CUDA's number."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Runtime:
    """cupy.cuda.runtime for GPUs that are Hopper unless told otherwise. `failing` are calls that raise."""

    memoryTypeDevice = 2

    def __init__(self) -> None:
        self.driver, self.runtime, self.count, self.major, self.minor = 13000, 13000, 2, 9, 0
        self.failing: dict[str, Exception] = {}
        self.current, self.dead, self.gone = 0, -1, -1
        self.asked: list[int] = []
        self.launches: list[tuple[Any, ...]] = []

    def _call(self, name: str) -> None:
        if name in self.failing:
            raise self.failing[name]

    def driverGetVersion(self) -> int:
        return self.driver

    def runtimeGetVersion(self) -> int:
        return self.runtime

    def getDeviceCount(self) -> int:
        if self.count == 0:
            raise CudaError(100, "cudaErrorNoDevice")
        return self.count

    def getDeviceProperties(self, ordinal: int) -> dict[str, Any]:
        return {"name": b"A GPU", "major": self.major, "minor": self.minor, "multiProcessorCount": 132}

    def free(self, address: int) -> None:
        self._call("free")

    def malloc(self, n_bytes: int) -> int:
        self._call("malloc")
        return 512

    def getDevice(self) -> int:
        self._call("getDevice")
        return self.current

    def setDevice(self, ordinal: int) -> None:
        if ordinal == self.gone:
            raise CudaError(709, "cudaErrorContextIsDestroyed")
        self.current = ordinal

    def pointerGetAttributes(self, address: int) -> SimpleNamespace:
        self.asked.append(self.current)
        if self.current == self.dead:
            raise CudaError(700, "an illegal memory access")
        return SimpleNamespace(type=self.memoryTypeDevice)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    found = Runtime()
    stream = SimpleNamespace(null=SimpleNamespace(ptr=0))

    def launch_kernel(*arguments: int) -> None:
        found._call("launchKernel")
        pointers = (ctypes.c_uint64 * 4).from_address(arguments[9])
        found.launches.append((*arguments[:9], [ctypes.c_int64.from_address(at).value for at in pointers]))

    cuda = SimpleNamespace(
        runtime=found, driver=SimpleNamespace(launchKernel=launch_kernel), Device=lambda ordinal: nullcontext(),
        Stream=type("Stream", (), {"null": stream.null, "__init__": lambda self, non_blocking: None, "ptr": 77}),
        MemoryPointer=None, UnownedMemory=None,
    )  # fmt: skip
    monkeypatch.setattr(cupy_driver, "_import_cupy", lambda: SimpleNamespace(cuda=cuda, ndarray=None))
    return found


def test_a_gpu_that_can_be_used(runtime: Runtime) -> None:
    driver = CupyDriver(1)
    assert (driver.name, driver.ordinal, driver.architecture, driver.multiprocessors) == ("A GPU", 1, "90", 132)


@pytest.mark.parametrize(
    ("facts", "ordinal", "kind", "text"),
    [
        ({"driver": 0}, 0, NoDriverError, "no NVIDIA driver is installed"),
        ({"driver": 12080}, 0, NoDeviceError, r"driver is for CUDA 12\.8, the installed CuPy needs 13: pip install"),
        ({"count": 0}, 0, NoDeviceError, r"shows no GPU \(see CUDA_VISIBLE_DEVICES\)"),
        ({"count": 1}, 1, NoDeviceError, "GPU 1: the NVIDIA driver shows 1, numbered from 0"),
        ({"major": 7, "minor": 0}, 0, NoDeviceError, r"A GPU has compute capability 7\.0; 7\.5 or later is needed"),
        ({"failing": {"free": CudaError(46, "busy")}}, 0, NoDeviceError, "GPU 0 cannot be used: busy"),
        ({"failing": {"malloc": CudaError(2, "out of memory")}}, 0, NoDeviceError, "cannot be used: out of memory"),
    ],
)
def test_what_cannot_be_used_is_named(
    runtime: Runtime, facts: dict[str, Any], ordinal: int, kind: type[Exception], text: str
) -> None:
    for name, value in facts.items():
        setattr(runtime, name, value)
    with pytest.raises(kind, match=text) as caught:
        CupyDriver(ordinal)
    assert isinstance(caught.value, InputError), "exit code 2"


def test_a_newer_driver_is_no_fault(runtime: Runtime) -> None:
    runtime.driver = 13020
    CupyDriver()


def test_cupy_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "cupy":
            raise ImportError("No module named 'cupy'")
        return load(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingLibraryError, match=r"CuPy, .* is not installed: pip install 'snarkline\[cuda13\]'"):
        CupyDriver()


@pytest.mark.parametrize(
    ("error", "code", "want_of_memory"),
    [
        (MemoryError("out of memory"), OUT_OF_MEMORY, True),
        (CudaError(2, "cudaErrorMemoryAllocation"), OUT_OF_MEMORY, True),
        (CudaError(700, "cudaErrorIllegalAddress"), 700, False),
        (RuntimeError("something else"), -1, False),
    ],
)
def test_errors_keep_cudas_number(runtime: Runtime, error: Exception, code: int, want_of_memory: bool) -> None:
    driver = CupyDriver()
    runtime.failing["malloc"] = error
    with pytest.raises(DriverFault) as caught:
        driver.allocate(1)
    assert (caught.value.call, caught.value.code, caught.value.out_of_memory) == ("allocate", code, want_of_memory)


def test_a_kernel_is_launched_with_its_arguments(runtime: Runtime) -> None:
    driver, function, array = CupyDriver(), SimpleNamespace(ptr=500), SimpleNamespace(data=SimpleNamespace(ptr=1 << 46))
    driver.launch(function, (6, 2), 256, [array, 7, -1, 1 << 40], 1024)
    driver.launch(function, (1, 1), 32, [0, array, 5, 6], 0, Queue.SIDE_2)
    assert runtime.launches == [
        (500, 6, 2, 1, 256, 1, 1, 1024, 0, [1 << 46, 7, -1, 1 << 40]),
        (500, 1, 1, 1, 32, 1, 1, 0, 77, [0, 1 << 46, 5, 6]),
    ]
    runtime.failing["launchKernel"] = CudaError(719, "unspecified launch failure")
    with pytest.raises(DriverFault, match=r"launch: .* \(719\)"):
        driver.launch(function, (1, 1), 32, [0], 0)


def test_a_failed_device_does_not_answer_for_another(runtime: Runtime) -> None:
    first, second = CupyDriver(0), CupyDriver(1)
    runtime.current = runtime.dead = 0
    assert second.alive() and not first.alive()
    assert runtime.asked == [1, 0] and runtime.current == 0, "the thread's device is as it was"


def test_nobody_goes_back_to_a_device_that_is_gone(runtime: Runtime) -> None:
    driver = CupyDriver(1)
    previous = driver.use()
    runtime.gone = 0
    driver.leave(previous)
    assert runtime.current == 1


def test_a_device_is_used_where_the_threads_own_has_failed(runtime: Runtime) -> None:
    driver = CupyDriver(1)
    runtime.failing["getDevice"] = CudaError(719, "unspecified launch failure")
    driver.leave(driver.use())
    assert runtime.current == 1
