"""Several devices and the CPU as one place for work: who gets which piece, and what happens when a device fails."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from snarkline.backend.base import Backend
from snarkline.errors import BudgetError, DeviceError, DeviceWarning

R = TypeVar("R")


class Accelerator(Backend, Protocol):
    """A backend on a device, for one thread at a time."""

    @property
    def note(self) -> str:
        """Where it works."""

    @property
    def failure(self) -> str | None:
        """Why it must not be used any more; None while it can be."""

    def session(self) -> AbstractContextManager[None]:
        """Around one piece of work. Raises BudgetError or DeviceError, at its start too."""

    def shrink(self) -> bool:
        """After a BudgetError: take less in the next session. False if that is no use."""


class DeviceRunner:
    """A `Runner` over accelerators of the same kind; each piece of work has one for itself.

    Where memory is short, work is done again in smaller pieces. Where a device fails, it is done again on another.
    Where that is no use, or there is none, it is done on the CPU if `fall_back` allows. Each of these is said once for
    each cause, as a DeviceWarning. A device that failed is not used again. One that was short of memory is: it may be
    back.
    """

    def __init__(self, accelerators: Sequence[Accelerator], host: Backend, *, fall_back: bool) -> None:
        self.host = host
        self._all, self._idle = list(accelerators), list(accelerators)
        self._fall_back = fall_back
        self._said: set[tuple[type[Exception], str]] = set()
        self._free = threading.Condition()

    @property
    def note(self) -> str:
        usable = [a.note for a in self._all if a.failure is None]
        if usable or not self._fall_back:
            return " and ".join(usable or [a.note for a in self._all])
        return f"on the CPU: {self._all[0].failure}"

    def run(self, work: Callable[[Backend], R]) -> R:
        while True:
            accelerator = self._take_one()
            if accelerator is None:
                return work(self.host)
            try:
                return self._on(accelerator, work)
            except (BudgetError, DeviceError) as error:
                failed = accelerator.failure is not None
                if not self._fall_back and not (failed and self._usable(self._all)):
                    raise
                self._say(error, failed)
            finally:
                self._give_back(accelerator)
            if not failed:
                return work(self.host)

    def close(self) -> None:
        for accelerator in self._all:
            accelerator.close()
        self.host.close()

    @staticmethod
    def _on(accelerator: Accelerator, work: Callable[[Backend], R]) -> R:
        while True:
            try:
                with accelerator.session():
                    return work(accelerator)
            except BudgetError:
                if not accelerator.shrink():
                    raise

    def _take_one(self) -> Accelerator | None:
        """An accelerator that nobody uses, waiting for one. Once all have failed, None if the CPU may be used, and one
        that says so otherwise."""
        with self._free:
            while not (usable := self._usable(self._idle)) and self._usable(self._all):
                self._free.wait()
            if not usable:
                return None if self._fall_back else self._all[0]
            # The one that has been idle for the shortest time: its caches are warm.
            self._idle.remove(usable[-1])
            return usable[-1]

    def _give_back(self, accelerator: Accelerator) -> None:
        with self._free:
            if accelerator not in self._idle:
                self._idle.append(accelerator)
            self._free.notify_all()

    @staticmethod
    def _usable(accelerators: Sequence[Accelerator]) -> list[Accelerator]:
        return [a for a in accelerators if a.failure is None]

    def _say(self, error: BudgetError | DeviceError, failed: bool) -> None:
        what = "this proof is made on the CPU"
        if failed:
            what = f"proofs are made {self.note if self._usable(self._all) else 'on the CPU'}"
        kind = BudgetError if isinstance(error, BudgetError) else DeviceError
        with self._free:
            repeated = (kind, what) in self._said
            self._said.add((kind, what))
        if not repeated:
            warnings.warn(f"{error}; {what}", DeviceWarning, stacklevel=4)
