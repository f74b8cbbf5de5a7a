"""Several devices and the CPU as one place for work: who gets which piece, and what happens when a device fails."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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

    Where memory is short, work is done again in smaller pieces. Where that is no use, or a device fails, it is done
    again on the CPU if `fall_back` allows; that is said once for each cause, as a DeviceWarning. A device that failed
    is not used again. One that was short of memory is: it may be back.
    """

    def __init__(self, accelerators: Sequence[Accelerator], host: Backend, *, fall_back: bool) -> None:
        self.host = host
        self._all, self._idle = list(accelerators), list(accelerators)
        self._fall_back = fall_back
        self._said: set[type[Exception]] = set()
        self._free = threading.Condition()

    @property
    def note(self) -> str:
        usable = [a.note for a in self._all if a.failure is None]
        if usable or not self._fall_back:
            return " and ".join(usable or [a.note for a in self._all])
        return f"on the CPU: {self._all[0].failure}"

    def run(self, work: Callable[[Backend], R]) -> R:
        with self._one() as accelerator:
            if accelerator is not None:
                try:
                    return self._on(accelerator, work)
                except (BudgetError, DeviceError) as error:
                    if not self._fall_back:
                        raise
                    self._say(error)
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

    @contextmanager
    def _one(self) -> Iterator[Accelerator | None]:
        """An accelerator that nobody uses, waiting for one; None if all have failed and the CPU may be used."""
        with self._free:
            while not self._idle:
                self._free.wait()
            # The one that has been idle for the shortest time: its caches are warm.
            usable = [a for a in self._idle if a.failure is None]
            chosen = usable[-1] if usable else None if self._fall_back else self._idle[-1]
            if chosen is not None:
                self._idle.remove(chosen)
        try:
            yield chosen
        finally:
            if chosen is not None:
                with self._free:
                    self._idle.append(chosen)
                    self._free.notify()

    def _say(self, error: BudgetError | DeviceError) -> None:
        kind = BudgetError if isinstance(error, BudgetError) else DeviceError
        if kind not in self._said:
            self._said.add(kind)
            until = "this proof is" if kind is BudgetError else "proofs are"
            warnings.warn(f"{error}; {until} made on the CPU", DeviceWarning, stacklevel=4)
