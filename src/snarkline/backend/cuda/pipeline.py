"""The sums of a proof, one behind the other on the device.

The host must know how many scalars are long before it can queue a sum's digits, and how full its buckets are before it
can queue its additions. The device does not wait for it meanwhile: scalars are counted as soon as a sum is begun, sums
of which nothing must be counted are sorted first, and another is sorted before one is added up. Those with most to add
up are: what follows on the host is then done while the device adds up the others. With h, over which a sum is not
counted, and w:

    count w, count l | sort h, sort w, sort l, add w, add h, add l

How a sum ends, with few additions that depend on each other, runs beside the rounds of the next. Where there is little
memory, no sum is sorted but that which is added up and the next, and none begins before the one before has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from snarkline.backend.cuda.device import Device
from snarkline.backend.cuda.msm import RunningSum
from snarkline.backend.cuda.plan import MIN_SLICE
from snarkline.curves.point import Point
from snarkline.errors import BudgetError

End = Callable[[], list[Point]]


class _Entry:
    """One sum, or the pieces that it was taken in, and then what waits for their ends on the host."""

    def __init__(self, whole: RunningSum) -> None:
        self.pieces = [whole]
        self.ends: list[End] = []


class Pipeline:
    """Sums that are begun, queued together and awaited; `folders` end them on the host while the device goes on.

    Where memory does not suffice for a sum it is taken in halves, without another beside it.
    """

    def __init__(
        self,
        device: Device,
        folders: ThreadPoolExecutor,
        room: Callable[[int], bool],
        spare: Callable[[], bool] = lambda: True,
    ) -> None:
        """`room`: whether so many bytes may be taken beside those in use. `spare`: whether sums may wait sorted."""
        self._device, self._folders, self._room, self._spare = device, folders, room, spare
        self._coming: list[_Entry] = []
        self._queued: deque[_Entry] = deque()

    def begin(self, whole: RunningSum) -> Callable[[], list[list[Point]]]:
        """The function returned waits for the points of each piece. It raises BudgetError where even the smallest
        pieces find no memory."""
        entry = _Entry(whole)
        self._coming.append(entry)
        whole.count()
        return lambda: self._end(entry)

    def drain(self) -> None:
        """Queues what is left of all sums."""
        if not self._coming:
            return
        self._coming.sort(key=lambda entry: entry.pieces[0].rank)
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
        unsorted = deque(sorted(sums, key=lambda this: this.counted) if self._spare() else sums)
        try:
            for this in sums:
                while this in unsorted:
                    unsorted.popleft().sort()
                if unsorted:
                    unsorted.popleft().sort()
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

    def await_all(self) -> None:
        """Waits until the device is done with all sums. They are folded meanwhile, and after."""
        self._queue_all()
        while self._queued:
            self._await_next()

    def _end(self, entry: _Entry) -> list[list[Point]]:
        self._queue_all()
        while not entry.ends:
            self._await_next()
        return [end() for end in entry.ends]

    def _queue_all(self) -> None:
        if self._coming:
            self.drain()
            # While the host waits anyway: at the end of the proof there is then little left to zero.
            self._device.join()
            self._device.wipe(self._queued[-1].pieces[-1].ready)

    def _await_next(self) -> None:
        first = self._queued.popleft()
        first.ends = [piece.window_sums().in_background(self._folders) for piece in first.pieces]
