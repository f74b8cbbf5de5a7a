"""Work of a proof that the host does while an accelerator goes on: in threads of its own, without the GIL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from snarkline.trace import follow

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

R = TypeVar("R")

HELPERS = 8
"""Proofs of several devices may have such work at a time; each piece uses several threads in turn."""


class Helpers:
    """Threads that are started when they are first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], R]) -> Future[R]:
        """Begins a piece of work, whose spans are those of the caller's timeline."""
        with self._lock:
            if self._threads is None:
                from concurrent.futures import ThreadPoolExecutor  # which loads logging: 3 ms

                self._threads = ThreadPoolExecutor(HELPERS, "snarkline-beside")
            return self._threads.submit(follow(work))

    def close(self) -> None:
        """Ends the threads, when they have done what they are at."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown()
                self._threads = None
