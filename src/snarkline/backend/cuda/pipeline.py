"""The sums of a proof, one behind the other on the device.

The host must know how many scalars are long before it can queue a sum's digits, and how full its buckets are before it
can queue its additions. The device does not wait for it meanwhile: scalars are counted as soon as a sum is begun, sums
of which nothing must be counted go first, and each is sorted before the one before it is added up:

    count 1, count 2, ... | sort 1, sort 2, add 1, sort 3, add 2, add 3

How a sum ends, with few additions that depend on each other, runs beside the rounds of the next, where there is memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

from snarkline.backend.cuda.device import Device
from snarkline.backend.cuda.msm import RunningSum
from snarkline.backend.cuda.plan import MIN_SLICE
from snarkline.curves.point import Point
from snarkline.errors import BudgetError

End = Callable[[], list[Point]]


class _Entry:
    """One sum, or the pieces that it was taken in, then what waits for their ends on the host, then their points."""

    def __init__(self, whole: RunningSum) -> None:
        self.pieces = [whole]
        self.ends: list[End] = []
        self._points: list[list[Point]] | None = None

    def ready(self) -> bool:
        return all(piece.ready() for piece in self.pieces)

    def points(self) -> list[list[Point]]:
        if self._points is None:
            self._points = [end() for end in self.ends]
        return self._points


class Pipeline:
    """Sums in the order in which they were begun; `folders` end them on the host while the device goes on.

    Where memory does not suffice for a sum it is taken in halves, without another beside it.
    """

    def __init__(self, device: Device, folders: ThreadPoolExecutor, room: Callable[[int], bool]) -> None:
        """`room`: whether so many bytes may be taken beside those in use."""
        self._device, self._folders, self._room = device, folders, room
        self._coming: list[_Entry] = []
        self._queued: deque[_Entry] = deque()

    def begin(self, whole: RunningSum) -> Callable[[], list[list[Point]]]:
        """The function returned waits for all sums, and returns the points of each piece. It raises BudgetError where
        even the smallest pieces find no memory."""
        entry = _Entry(whole)
        self._coming.append(entry)
        whole.count()
        return lambda: self._end(entry)

    def drain(self) -> None:
        """Queues what is left of all sums."""
        if not self._coming:
            return
        self._coming.sort(key=lambda entry: entry.pieces[0].counted)
        if not self._all_fit():
            waiting = [entry for entry in self._coming if not entry.pieces[0].added]
            for entry in waiting:
                entry.pieces[0].rewind()
            self._device.trim()
            for entry in waiting:
                entry.pieces = self._alone(entry.pieces[0])
        self._queued.extend(self._coming)
        self._coming.clear()

    def clear(self) -> None:
        """Forgets all sums."""
        self._coming.clear()
        self._queued.clear()

    def _all_fit(self) -> bool:
        sums = [entry.pieces[0] for entry in self._coming]
        try:
            for this, following in zip_longest(sums, sums[1:]):
                this.sort()
                if following is not None:
                    following.sort()
                if not self._room(this.bytes_needed):
                    self._device.join()
                this.add()
        except BudgetError:
            return False  # its frames, which hold memory, are gone when this has returned
        return True

    def _alone(self, whole: RunningSum) -> list[RunningSum]:
        if self._fits(whole):
            return [whole]
        whole.rewind()
        self._device.trim()
        return [piece for half in whole.halves() for piece in self._alone(half)]

    @staticmethod
    def _fits(whole: RunningSum) -> bool:
        try:
            whole.add()
        except BudgetError:
            if len(whole) <= MIN_SLICE:
                raise
            return False
        return True

    def _end(self, entry: _Entry) -> list[list[Point]]:
        if self._coming:
            self.drain()
            # While the host waits anyway: at the end of the proof there is then little left to zero.
            self._device.join()
            self._device.wipe(self._queued[-1].pieces[-1].ready)
        self._await_all()
        return entry.points()

    def _await_all(self) -> None:
        """What is left when the last sum is there is the fold of that one."""
        earlier: list[_Entry] = []
        while self._queued:
            first = self._queued.popleft()
            last = not self._queued
            if last and not first.ready():
                for entry in earlier:
                    entry.points()
            sums = [piece.window_sums() for piece in first.pieces]
            first.ends = [s.at_once(self._folders) if last else s.in_background(self._folders) for s in sums]
            earlier.append(first)
