"""What the backend sees of a GPU: memory, launches, events (`Gpu` over a `Driver`), or an emulation in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from snarkline.backend.cuda.module import Module
from snarkline.trace import DeviceClock

Array = Any
"""An array on the device: C order, with shape, dtype, slices and reshape. Never leaves the backend but inside FrVector
and PointTable."""
Argument = Array | int
"""Of a kernel. Integers are Python's own, and passed in the size of the parameter."""


R = TypeVar("R")

NULL = 0
"""A null pointer, as an argument of a kernel."""


class Reading(Protocol):
    """Arrays that are on their way to the host."""

    def ready(self) -> bool: ...
    def wait(self) -> list[npt.NDArray[Any]]:
        """The arrays. May be called once."""


class Device(Protocol):
    """One GPU. Operations are queued in order; `download` and `synchronize` wait."""

    name: str
    multiprocessors: int
    clock: DeviceClock
    failure: str | None
    """Why it is not used any more."""

    def session(self) -> AbstractContextManager[None]:
        """Work of one thread at a time. Memory that was given back is wiped at its end."""

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Memory from the pool, contents undefined. Raises BudgetError."""

    def empty_again(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """The same, faster where the last session asked for one of that shape and type."""

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array: ...
    def upload(self, host: npt.NDArray[Any]) -> Array: ...
    def fill(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Of the same shape and type."""

    def streamed(self, hosts: Sequence[npt.NDArray[Any]]) -> Iterator[Array]:
        """Each of `hosts`, for work that is queued before the next is asked for, which is copied meanwhile."""

    def download(self, array: Array) -> npt.NDArray[Any]: ...
    def download_later(self, arrays: Sequence[Array]) -> Reading:
        """The arrays as they are behind all work that is queued now."""

    def copy(self, target: Array, source: Array) -> None:
        """Between arrays of the device, of the same shape and type."""

    def owns(self, array: object) -> bool:
        """Whether an array lives on the device."""

    def prepare(self, modules: Sequence[Module]) -> None:
        """Compile (where the cache has them not) and load modules."""

    def launch(
        self,
        module: Module,
        kernel: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: Argument,
        shared: int = 0,
    ) -> None:
        """Queue a kernel. Arguments are arrays and integers (0 as a null pointer); `shared` in bytes."""

    def beside(self, works: Sequence[Callable[[], R]]) -> list[R]:
        """What each queues runs behind all work that is queued now, beside the others and all that is queued later.
        The memory that they use stays in use until `join`."""

    def join(self) -> None:
        """Work that is queued later waits for all that runs beside. So does, if need be, a request for memory."""

    def wipe(self, until: Callable[[], bool]) -> None:
        """Queue the zeroing of memory that was given back, or until then. The end of a session does the rest."""

    def free_bytes(self) -> int:
        """Memory that `empty` can still give: free on the device plus free in the pool."""

    def used_bytes(self) -> int:
        """Memory that arrays are on."""

    def trim(self) -> None:
        """Memory that is not in use back to the driver."""

    def synchronize(self) -> None: ...
    def close(self) -> None: ...


def blocks(n: int, size: int) -> int:
    """How many blocks of `size` threads make n threads; at least one."""
    return max(1, -(-n // size))
