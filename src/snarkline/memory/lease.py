"""A lease: an array together with its explicit end."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.memory.fence import HeldBuffers
from snarkline.memory.policy import Release
from snarkline.native import core


class Lease:
    """A buffer that is handed back explicitly, by `release()` or by the end of a `with` block.

    The buffer also goes back by itself when the lease and all views of its array are gone.
    """

    def __init__(self, array: npt.NDArray[Any], release: Release, held: HeldBuffers) -> None:
        self._array: npt.NDArray[Any] | None = array
        self._capacity: npt.NDArray[Any] | None = None
        self._release = release
        self._held = held
        self._fd = _native(array).fd

    @property
    def array(self) -> npt.NDArray[Any]:
        """The array; ValueError after `release()`."""
        if self._array is None:
            raise ValueError("the lease was released")
        return self._array

    @property
    def address(self) -> int:
        return _native(self.array).address

    @property
    def registered(self) -> bool:
        """Whether a device knows the mapping."""
        return _native(self.array).registered

    @property
    def fd(self) -> int | None:
        """The memfd behind a shared lease, open as long as the lease's memory: duplicate it to keep it."""
        return self._fd if self._fd >= 0 and self._array is not None else None

    def release(self) -> None:
        """Ends the lease: its array raises from here on, and the buffer goes its policy's way. Twice is once.

        Raises BufferError, as memoryview does, when there are views: the array itself in somebody's hands, slices of
        it, memoryviews. A buffer that is held for a fence goes when the fence is done.
        """
        if self._array is None:
            return
        n_views = _references(self) - _REFERENCES_ALONE - self._held.count(self._array)
        if n_views > 0:
            raise BufferError(f"the buffer has {n_views} live view{'s' if n_views > 1 else ''}")
        if self._release is Release.CLEAR:
            self._capacity = self._array
        self._array = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Frames of an exception hold views; it must not be hidden by a BufferError.
        if error is None:
            self.release()


def _native(array: npt.NDArray[Any]) -> core.Lease:
    base = array.base
    assert isinstance(base, core.Lease)
    return base


def _references(lease: Any) -> int:
    return sys.getrefcount(lease._array)


class _Alone:
    def __init__(self) -> None:
        self._array = np.empty(1)


# What the interpreter counts for an array that only its lease refers to; it differs between versions.
_REFERENCES_ALONE = _references(_Alone())
