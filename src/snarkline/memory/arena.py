"""An arena: NumPy arrays over mappings that are given back off the critical path."""

from __future__ import annotations

import atexit
import math
import operator
import os
import weakref
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.errors import InputError
from snarkline.memory.budget import UNLIMITED, Budget, Request, take
from snarkline.memory.fence import Fence, HeldBuffers
from snarkline.memory.lease import Lease
from snarkline.memory.pages import Pages, huge_pages_granted
from snarkline.memory.pinner import Pinner, Registrations
from snarkline.memory.policy import Release
from snarkline.memory.stats import ArenaStats
from snarkline.native import core
from snarkline.threads import usable_threads

# Smaller arrays are NumPy's own: a mapping for each would cost more than it saves.
SMALLEST_BYTES = 64 << 10

# How long the end of an arena waits for fences.
FENCES_S = 2.0

# Threads that touch pages of 4 KiB: more hinder each other in the kernel. On 16 processors 1, 4, 8 and 16 threads take
# 0.38, 0.10, 0.24 and 0.24 s a GiB.
SMALL_PAGE_THREADS = 4

Shape = int | tuple[int, ...]


class Arena:
    """Lends arrays, and takes each back when its last view is dropped.

    `release`: what happens then (`Release`, or its value).
    `budget_bytes`: cap of what is lent, pooled and pending together; a taker waits up to `deadline_s` seconds.
    `backlog_bytes`: while more is pending, nothing fresh is mapped; by default a quarter of the budget or an eighth of
        the machine's memory.
    `pages`: "auto" (2 MiB where the system grants them) or "4k".
    `idle_s`: a pooled buffer that nobody took for so long goes to the release thread.
    `threads`: at most so many for the first touch of fresh memory; 0 leaves it to whoever writes first. By default all
        processors.
    `pinner`: registers the mappings of leases that are taken with `registered=True`.

    Safe to use from several threads, and after a fork in the child, which has copies of all but registered memory.
    """

    def __init__(
        self,
        release: Release | str = Release.RECYCLE,
        budget_bytes: int | None = None,
        pages: Pages | str = Pages.AUTO,
        *,
        deadline_s: float = 30.0,
        backlog_bytes: int | None = None,
        idle_s: float = 30.0,
        threads: int | None = None,
        pinner: Pinner | None = None,
    ) -> None:
        self.release = Release.of(release)
        if pinner is not None:
            _check_calls("pinner", pinner, ("pin", "unpin", "alive"))
        self.budget_bytes = budget_bytes
        if backlog_bytes is None:
            backlog_bytes = _memory_bytes() // 8 if budget_bytes is None else budget_bytes // 4
        self._budget = Budget(UNLIMITED if budget_bytes is None else budget_bytes, backlog_bytes, deadline_s)
        huge = Pages.of(pages) is Pages.AUTO and huge_pages_granted()
        threads = usable_threads() if threads is None else threads
        self._threads = threads if huge else min(threads, SMALL_PAGE_THREADS)
        self.native = core.Arena.create(self._budget.n_bytes, backlog_bytes, idle_s, huge)
        self._held = HeldBuffers()
        self._registrations = None if pinner is None else Registrations(self.native, pinner)
        # Also runs at exit, so that registered memory goes before its context.
        self._finalizer = weakref.finalize(self, _finish, self.native, self._held, self._registrations)

    def empty(
        self,
        shape: Shape,
        dtype: npt.DTypeLike = np.uint64,
        *,
        secret: bool = False,
        release: Release | str | None = None,
    ) -> npt.NDArray[Any]:
        """An uninitialised C-ordered array. When its last view is dropped the buffer goes the policy's way.

        A secret is zeroed before its memory is lent again or returned. Arrays below 64 KiB that are not secret are
        ordinary NumPy arrays. Raises InputError for a shape that is none or a dtype of Python objects, BudgetError,
        MemoryError.
        """
        dtype = np.dtype(dtype)
        n_bytes = _n_bytes(shape, dtype)
        if n_bytes == 0 or (n_bytes < SMALLEST_BYTES and not secret):
            return np.empty(shape, dtype)
        policy = self.release if release is None else Release.of(release)
        return np.ndarray(shape, dtype, self._take(n_bytes, policy, secret))

    def lease(
        self,
        shape: Shape,
        dtype: npt.DTypeLike = np.uint64,
        *,
        secret: bool = False,
        release: Release | str | None = None,
        shared: bool = False,
        registered: bool = False,
    ) -> Lease:
        """An array of at least one byte with an explicit end, always over a mapping of the arena.

        `shared` puts it on a memfd of its own (`Lease.fd`), to be passed to other processes. `registered` makes the
        arena's pinner know its mapping; that excludes policies that give pages back under the mapping.
        Raises RegistrationError when the pinner refuses, and what `empty` raises.
        """
        dtype = np.dtype(dtype)
        n_bytes = max(_n_bytes(shape, dtype), 1)
        policy = self.release if release is None else Release.of(release)
        if registered and policy.empties_pages:
            raise InputError(f"release policy {policy.value} on registered memory: the device would keep the old pages")
        if registered and (self._registrations is None or shared):
            raise InputError("registered memory needs an arena with a pinner, and cannot be shared")
        native = self._take(n_bytes, policy, secret, shared, registered)
        if registered and self._registrations is not None:
            self._registrations.ensure(native)
        return Lease(np.ndarray(shape, dtype, native), policy, self._held)

    def keep_until(self, buffer: Lease | npt.NDArray[Any], fence: Fence) -> None:
        """Keeps the buffer of a lease or array until the device work that reads it is over.

        The caller can drop it at once. The arena looks at the fence whenever it is called, and at exit.
        Raises InputError for what is no buffer or no fence.
        """
        array = buffer.array if isinstance(buffer, Lease) else buffer
        if not isinstance(array, np.ndarray):
            raise InputError(f"a buffer to keep is a Lease or an array, found {type(array).__name__}")
        _check_calls("fence", fence, ("done", "wait"))
        self._held.add(array, fence)

    def trim(self, keep_bytes: int = 0) -> None:
        """Gives pooled buffers back, the longest idle first, until at most `keep_bytes` are pooled."""
        self._held.settle()
        self.native.trim(keep_bytes)
        if keep_bytes == 0 and self._registrations is not None:
            self._registrations.release_idle()

    def drain(self, timeout: float) -> bool:
        """True when no release is pending within `timeout` seconds. Pooled buffers stay."""
        self._held.settle()
        return self.native.drain(timeout)

    def stats(self) -> ArenaStats:
        """A snapshot of the accounts."""
        self._held.settle()
        return ArenaStats(**self.native.stats(), held_bytes=self._held.n_bytes)

    def close(self) -> None:
        """Unregisters everything and gives the pool back. Arrays in use stay valid, and follow when they are dropped.

        What is held for a fence that does not become done within two seconds stays held.
        """
        _finish(self.native, self._held, self._registrations)

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(
        self, n_bytes: int, policy: Release, secret: bool, shared: bool = False, registered: bool = False
    ) -> core.Lease:
        self._held.settle()
        request = Request(n_bytes, policy.way, secret, shared, registered, self._threads)
        return take(self.native, request, self._budget, self._make_room, self.stats)

    def _make_room(self, timeout: float) -> bool:
        if self._held and not self._held.settle():
            return self._held.wait(timeout)
        return self._registrations is not None and self._registrations.release_idle()


def _finish(native: core.Arena, held: HeldBuffers, registrations: Registrations | None) -> None:
    if not held.wait(FENCES_S):
        atexit.register(held.wait, FENCES_S)  # and keeps them, rather than to free what a device may read
    elif registrations is not None:
        registrations.close()
    native.close()


def _n_bytes(shape: Shape, dtype: np.dtype[Any]) -> int:
    """Bytes of such an array. References to Python objects over a mapping would crash the interpreter: refused."""
    if dtype.hasobject:
        raise InputError(f"an arena lends plain memory, dtype {dtype} holds Python objects")
    try:  # as Python's integers, which do not wrap around
        sizes = [operator.index(size) for size in (shape if isinstance(shape, tuple) else (shape,))]
    except TypeError:
        raise InputError(f"a shape is a whole number or a tuple of them, found {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise InputError(f"an array has no negative sizes, found shape {shape}")
    return math.prod(sizes) * dtype.itemsize


def _check_calls(what: str, value: object, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not callable(getattr(value, name, None))]
    if missing:
        raise InputError(f"a {what} has the methods {', '.join(names)}; {type(value).__name__} lacks {missing[0]}")


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
