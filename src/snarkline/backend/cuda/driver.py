"""The seam around CUDA: every call that reaches the driver is a method of `Driver`.

Above it are policies in plain Python (pool, plan, retries, what an error means), so that a recording driver on the host
can stand in for a GPU, and faults of the driver can be injected at any call.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

import numpy.typing as npt

OUT_OF_MEMORY = 2
"""cudaErrorMemoryAllocation, and CUDA_ERROR_OUT_OF_MEMORY: the one error that leaves the context as it was."""

UNASKED_SHARED = 40 << 10
"""Dynamic shared memory that every kernel has without asking for it: 48 KiB, less what it declares itself."""

Array = Any
Event = Any


class DriverFault(Exception):
    """A call that CUDA refused, or reported an earlier failure at. `code` is CUDA's error number."""

    def __init__(self, call: str, code: int, text: str) -> None:
        self.call, self.code, self.text = call, code, text
        super().__init__(f"{call}: {text} ({code})")

    @property
    def out_of_memory(self) -> bool:
        return self.code == OUT_OF_MEMORY


class Queue(Enum):
    """The device's queues of work: kernels, copies beside them, and kernels beside those of the first."""

    COMPUTE = "compute"
    COPY = "copy"
    SIDE_1 = "side 1"
    SIDE_2 = "side 2"
    SIDE_3 = "side 3"

    __hash__ = object.__hash__  # Enum's own hashes the name, in Python, at every launch


class Driver(Protocol):
    """One GPU. Every method may raise DriverFault; sizes are in bytes, addresses integers."""

    name: str
    ordinal: int
    architecture: str
    multiprocessors: int

    def use(self) -> int:
        """Make this the calling thread's device; returns the number of the one before, for `leave`."""

    def leave(self, previous: int) -> None:
        """Raises nothing: that the thread's other device has failed is no fault of this one."""

    def alive(self) -> bool:
        """Whether the context that this driver works in still is. Raises nothing."""

    def memory(self) -> tuple[int, int]:
        """Free and all memory of the device."""

    def allocate(self, n_bytes: int) -> int: ...
    def free(self, address: int) -> None:
        """Waits until the device has done what was queued before."""

    def array(self, address: int, n_bytes: int, shape: tuple[int, ...], dtype: npt.DTypeLike, owner: object) -> Array:
        """The memory as an array whose views keep `owner` alive."""

    def owns(self, array: object) -> bool: ...
    def zero(self, address: int, n_bytes: int, queue: Queue = Queue.COMPUTE) -> None: ...
    def to_device(self, array: Array, host: npt.NDArray[Any], queue: Queue) -> None:
        """Queued where `host` is page-locked, done on return otherwise."""

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """Waits for the queue of kernels."""

    def to_host_later(self, host: npt.NDArray[Any], array: Array, queue: Queue) -> None:
        """Queued; `host` is page-locked memory of the array's size."""

    def copy(self, target: Array, source: Array) -> None: ...
    def load(self, code: bytes) -> Any:
        """A module of machine code."""

    def function(self, module: Any, name: str, shared: int) -> Any:
        """A kernel that takes up to `shared` bytes of dynamic shared memory."""

    def launch(
        self,
        function: Any,
        grid: tuple[int, int],
        block: int,
        arguments: Sequence[Array | int],
        shared: int,
        queue: Queue = Queue.COMPUTE,
    ) -> None:
        """Arguments are arrays and integers, of Python's own type: as many of their bytes are read as the parameter
        has."""

    def record(self, queue: Queue) -> Event:
        """An event behind all work of the queue."""

    def wait_for(self, queue: Queue, event: Event) -> None:
        """Later work of the queue starts after the event. Does not block the caller."""

    def passed(self, event: Event) -> bool: ...
    def await_event(self, event: Event) -> None: ...
    def elapsed(self, begin: Event, end: Event) -> float:
        """Seconds between two events that are past."""

    def synchronize(self) -> None:
        """Waits for all queues."""

    def page_lock(self, address: int, n_bytes: int) -> None: ...
    def page_unlock(self, address: int) -> None: ...
    def page_locked(self, address: int) -> bool: ...
    def close(self) -> None: ...
