"""What the backend sees of a GPU: memory, launches, events (`Gpu` over a `Driver`), or an emulation in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt

from snarkline.backend.cuda.module import Module
from snarkline.trace import DeviceClock

Array = Any
"""An array on the device: C order, with shape, dtype, slices and reshape. Never leaves the backend but inside FrVector
and PointTable."""


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

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array: ...
    def upload(self, host: npt.NDArray[Any]) -> Array: ...
    def streamed(self, hosts: Sequence[npt.NDArray[Any]], ranges: Sequence[slice]) -> Iterator[list[Array]]:
        """For each range the slices of `hosts`, valid until the next are asked for, which are copied meanwhile."""

    def download(self, array: Array) -> npt.NDArray[Any]: ...
    def copy(self, target: Array, source: Array) -> None:
        """Between arrays of the device, of the same shape and type."""

    def owns(self, array: object) -> bool:
        """Whether an array lives on the device."""

    def prepare(self, modules: Sequence[Module]) -> None:
        """Compile (where the cache has them not) and load modules."""

    def launch(
        self, module: Module, kernel: str, grid: int | tuple[int, int], block: int, *arguments: object, shared: int = 0
    ) -> None:
        """Queue a kernel. Arguments are arrays, integers or None (a null pointer); `shared` in bytes."""

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
