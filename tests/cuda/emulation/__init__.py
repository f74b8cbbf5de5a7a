"""An emulated GPU: the kernels compiled for the processor (emulation.h), and a driver on the host that records its
calls, and fails where a test wants it to."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from snarkline import Prover
from snarkline.backend.cuda.driver import DriverFault, Queue
from snarkline.backend.cuda.gpu import Gpu
from snarkline.backend.cuda.module import SOURCE_ROOT, Module, flattened_source
from snarkline.errors import DeviceWarning
from snarkline.groth16.keys import Proof
from snarkline.r1cs.witness import Witness

HERE = Path(__file__).parent
FLAGS = ("-std=c++20", "-O1", "-w", "-fPIC", "-shared")


@cache
def library(module: Module) -> ctypes.CDLL:
    """The module as a shared library, compiled once and kept in the temporary folder."""
    sources = [(HERE / name).read_text() for name in ("emulation.h", "emulation.cpp")]
    text = "\0".join([flattened_source(module.file), *sources, *module.defines, *FLAGS])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"snarkline_emulation_{module.name}_{key}.so"
    if not path.exists():
        part = path.with_suffix(f".{id(module)}.part")
        command = ["g++", *FLAGS, *module.defines, "-include", str(HERE / "emulation.h"), "-x", "c++"]
        command += [str(SOURCE_ROOT / f"{module.file}.cu"), str(HERE / "emulation.cpp"), "-o", str(part)]
        subprocess.run(command, check=True)
        part.replace(path)
    return ctypes.CDLL(str(path))


POISON = 0xA5
ONE_LAUNCH = threading.Lock()
"""The fibers of a launch are in variables of the library."""

CURRENT = threading.local()


def current_device() -> int:
    """The number of the calling thread's device."""
    return getattr(CURRENT, "device", 0)


OUT_OF_MEMORY, NO_DEVICE, ILLEGAL_ADDRESS, LAUNCH_FAILURE, DEVICE_LOST = 2, 100, 700, 719, 46


@dataclass
class Fault:
    """An error at the call of that name, after `after` good ones; at all calls from then on if `sticky`. `failed` is
    the call that it was."""

    call: str
    code: int
    after: int = 0
    sticky: bool = False
    times: int = 1
    failed: str = ""


@dataclass
class EmulatedEvent:
    """A point in a queue. `held` keeps it from being passed."""

    queue: Queue
    time: float
    number: int
    held: bool = False


@dataclass
class Allocation:
    """Memory of the device. The bytes stay for whoever still reads them after it was freed: poisoned."""

    data: np.ndarray
    live: bool = True


class EmulatedDriver:
    """A `Driver` on the host: `calls` is its record, `faults` what goes wrong.

    `capacity` is the device's memory, of which other processes hold `taken`.
    """

    name, architecture, multiprocessors = "emulation", "90", 2

    def __init__(self, capacity: int = 1 << 32, *, ordinal: int = 0) -> None:
        self.capacity, self.taken, self.ordinal = capacity, 0, ordinal
        self.calls: list[tuple] = []
        self.faults: list[Fault] = []
        self.dead = False
        self.held = False
        self.allocations: dict[int, Allocation] = {}
        self.locked: dict[int, int] = {}
        self.unwiped = 0
        self.events = 0
        self.broken: int | None = None

    # ---- faults and the record ----

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def kernels(self) -> list[str]:
        return [call[1] for call in self.calls if call[0] == "launch"]

    def allocated(self) -> int:
        return sum(a.data.nbytes for a in self.allocations.values() if a.live)

    def _call(self, name: str, *facts) -> None:
        self.calls.append((name, *facts))
        if self.broken is not None:
            raise DriverFault(name, self.broken, "the context is undefined")
        for fault in self.faults:
            if fault.call not in (name, "*") or fault.times == 0:
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            fault.times -= 1
            fault.failed = name
            if fault.sticky:
                self.broken = fault.code
            raise DriverFault(name, fault.code, "injected")

    # ---- the device ----

    def use(self) -> int:
        self._call("use")
        previous = current_device()
        CURRENT.device = self.ordinal
        return previous

    def leave(self, previous: int) -> None:
        self.calls.append(("leave", previous))
        CURRENT.device = previous

    def alive(self) -> bool:
        return not self.dead and self.broken is None

    def synchronize(self) -> None:
        self._call("synchronize")

    def close(self) -> None:
        self.calls.append(("close",))

    # ---- memory ----

    def memory(self) -> tuple[int, int]:
        self._call("memory")
        return max(0, self.capacity - self.taken - self.allocated()), self.capacity

    def allocate(self, n_bytes: int) -> int:
        self._call("allocate", n_bytes)
        if n_bytes > self.capacity - self.taken - self.allocated():
            raise DriverFault("allocate", OUT_OF_MEMORY, "out of memory")
        data = np.full(n_bytes, POISON, np.uint8)
        self.allocations[data.ctypes.data] = Allocation(data)
        return data.ctypes.data

    def free(self, address: int) -> None:
        self._call("free", address)
        allocation = self.allocations[address]
        assert allocation.live, "freed twice"
        self.unwiped += int(np.count_nonzero(allocation.data))
        allocation.live = False
        allocation.data.fill(POISON)

    def array(self, address, n_bytes, shape, dtype, owner):
        return np.asarray(_Memory(address, shape, np.dtype(dtype), owner)).view(DeviceArray)

    def owns(self, array) -> bool:
        return isinstance(array, DeviceArray)

    def zero(self, address: int, n_bytes: int, queue: Queue = Queue.COMPUTE) -> None:
        self._call("zero", address, n_bytes)
        ctypes.memset(address, 0, n_bytes)

    def to_device(self, array, host, queue) -> None:
        self._call("to_device", array.ctypes.data, host.nbytes, queue)
        assert not isinstance(host, DeviceArray) and array.nbytes == host.nbytes
        array.reshape(-1).view(np.uint8)[:] = host.reshape(-1).view(np.uint8)

    def to_host(self, array):
        self._call("to_host", array.nbytes)
        return np.array(array, order="C").view(np.ndarray)

    def to_host_later(self, host, array, queue) -> None:
        self._call("to_host_later", array.nbytes, queue)
        assert self.page_locked(host.ctypes.data)
        host[...] = array.reshape(-1).view(np.uint8)

    def copy(self, target, source) -> None:
        self._call("copy", source.nbytes)
        target[...] = source

    def page_lock(self, address: int, n_bytes: int) -> None:
        self._call("page_lock", n_bytes)
        assert address not in self.locked
        self.locked[address] = n_bytes

    def page_unlock(self, address: int) -> None:
        self._call("page_unlock")
        del self.locked[address]

    def page_locked(self, address: int) -> bool:
        self._call("page_locked", address)
        return any(begin <= address < begin + n for begin, n in self.locked.items())

    # ---- kernels ----

    def load(self, code: bytes):
        self._call("load")
        return code

    def function(self, module, name: str, shared: int):
        self._call("function", name)
        return module, name

    def launch(self, function, grid, block, arguments, shared, queue: Queue = Queue.COMPUTE) -> None:
        module, kernel = function
        self._call("launch", kernel, queue)
        words = [_word(a) for a in arguments]
        assert len(words) <= 20 and block <= 1024
        lib = library(module)
        with ONE_LAUNCH:
            lib.emulate_launch(
                ctypes.cast(getattr(lib, kernel), ctypes.c_void_p), (ctypes.c_uint64 * len(words))(*words),
                ctypes.c_uint(len(words)), (ctypes.c_uint * 3)(*grid, block), ctypes.c_size_t(shared),
            )  # fmt: skip

    # ---- order ----

    def record(self, queue: Queue) -> EmulatedEvent:
        self.events += 1
        self._call("record", queue, self.events)
        return EmulatedEvent(queue, time.perf_counter(), self.events, self.held)

    def wait_for(self, queue: Queue, event: EmulatedEvent) -> None:
        self._call("wait_for", queue, event.queue, event.number)

    def passed(self, event: EmulatedEvent) -> bool:
        self._call("passed", event.number)
        return not event.held

    def await_event(self, event: EmulatedEvent) -> None:
        self._call("await_event", event.number)

    def elapsed(self, begin: EmulatedEvent, end: EmulatedEvent) -> float:
        self._call("elapsed")
        return end.time - begin.time


class EmulatedDevice(Gpu):
    """A `Gpu` over an `EmulatedDriver`. Memory is poisoned when it is lent: what a kernel leaves unwritten shows."""

    driver: EmulatedDriver

    def __init__(self, capacity: int = 1 << 32, *, ordinal: int = 0, memory_limit: int | None = None) -> None:
        super().__init__(EmulatedDriver(capacity, ordinal=ordinal), Path("unused"), memory_limit=memory_limit)

    def empty(self, shape, dtype):
        array = super().empty(shape, dtype)
        array.reshape(-1).view(np.uint8).fill(POISON)
        return array

    def prepare(self, modules: Sequence[Module]) -> None:
        self._modules |= {module: module for module in modules}


@dataclass
class _Memory:
    """Gives NumPy an array over an address, which keeps the owner alive."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: object
    __array_interface__: dict = field(init=False)

    def __post_init__(self) -> None:
        self.__array_interface__ = {
            "data": (self.address, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3,
        }  # fmt: skip


class DeviceArray(np.ndarray):
    """An array that stands for device memory."""


def _word(argument) -> int:
    if isinstance(argument, np.ndarray):
        assert isinstance(argument, DeviceArray), "a kernel was given host memory"
        assert argument.flags.c_contiguous
        return argument.ctypes.data
    assert type(argument) is int, "CuPy passes other types in their own size"
    return argument & (2**64 - 1)


# ---- proofs ----

BLINDING = (11, 13)


@contextmanager
def said() -> Iterator[list[str]]:
    """What is warned of in the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeviceWarning)
        texts: list[str] = []
        yield texts
        texts += [str(w.message) for w in caught if w.category is DeviceWarning]


def prove(prover: Prover, witness: Witness) -> Proof:
    return prover.prove(witness, blinding_for_tests=BLINDING)
