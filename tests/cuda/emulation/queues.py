"""A driver that knows what happens before what: a queue's in order, others' behind events that are waited for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from emulation import EmulatedDevice, EmulatedDriver, EmulatedEvent
from snarkline.backend.cuda.driver import Queue

Clock = dict[Queue, int]
"""Of each queue the last work that is over before."""


@dataclass
class Use:
    """What a loan of a block was used for: the last write and the last use of each queue."""

    writes: Clock = field(default_factory=dict)
    uses: Clock = field(default_factory=dict)


class OrderedDriver(EmulatedDriver):
    """Work is done at once, and noted in `races` where another queue may still use the memory: of an earlier loan at
    all, of the same one with a copy or zeroing on either side."""

    def __init__(self) -> None:
        super().__init__()
        self.now: dict[Queue, Clock] = {queue: {} for queue in Queue}
        self.host: Clock = {}
        self.events_at: dict[int, Clock] = {}
        self.before: dict[int, Use] = {}
        self.present: dict[int, Use] = {}
        self.races: list[str] = []
        self.lent = 0

    def lend(self, address: int) -> None:
        earlier = self.present.pop(address, None)
        if earlier is not None:
            merge(self.before.setdefault(address, Use()).uses, earlier.uses)
            self.lent += 1
        self.present[address] = Use()

    def _used(self, what: str, queue: Queue, arrays, *, writes: bool = False) -> None:
        now = self.now[queue]
        merge(now, self.host)
        now[queue] = now.get(queue, 0) + 1
        begins = sorted(self.allocations)
        for array in arrays:
            address = array if isinstance(array, int) else array.ctypes.data
            block = begins[bisect_right(begins, address) - 1]
            use = self.present.setdefault(block, Use())
            earlier = self.before.get(block, Use()).uses
            for others in (earlier, use.uses if writes else use.writes):
                self.races += [
                    f"{what} in {queue.value}: {other.value} may still use a block"
                    for other, number in others.items()
                    if now.get(other, 0) < number
                ]
            use.uses[queue] = now[queue]
            if writes:
                use.writes[queue] = now[queue]

    # ---- calls ----

    def synchronize(self) -> None:
        super().synchronize()
        for queue in Queue:
            merge(self.host, self.now[queue])

    def allocate(self, n_bytes: int) -> int:
        address = super().allocate(n_bytes)
        self.before.pop(address, None)
        self.present.pop(address, None)
        return address

    def free(self, address: int) -> None:
        super().free(address)
        for queue in Queue:
            merge(self.host, self.now[queue])

    def zero(self, address: int, n_bytes: int, queue: Queue = Queue.COMPUTE) -> None:
        super().zero(address, n_bytes, queue)
        self._used("zero", queue, [address], writes=True)

    def to_device(self, array, host, queue) -> None:
        super().to_device(array, host, queue)
        self._used("to_device", queue, [array], writes=True)

    def to_host(self, array):
        self._used("to_host", Queue.COMPUTE, [array])
        merge(self.host, self.now[Queue.COMPUTE])
        return super().to_host(array)

    def to_host_later(self, host, array, queue) -> None:
        super().to_host_later(host, array, queue)
        self._used("to_host_later", queue, [array])

    def copy(self, target, source) -> None:
        super().copy(target, source)
        self._used("copy", Queue.COMPUTE, [target, source])

    def launch(self, function, grid, block, arguments, shared, queue: Queue = Queue.COMPUTE) -> None:
        super().launch(function, grid, block, arguments, shared, queue)
        self._used(function[1], queue, [a for a in arguments if isinstance(a, np.ndarray)])

    # ---- order ----

    def record(self, queue: Queue) -> EmulatedEvent:
        event = super().record(queue)
        self.events_at[event.number] = dict(self.now[queue])
        return event

    def wait_for(self, queue: Queue, event: EmulatedEvent) -> None:
        super().wait_for(queue, event)
        merge(self.now[queue], self.events_at[event.number])

    def await_event(self, event: EmulatedEvent) -> None:
        super().await_event(event)
        merge(self.host, self.events_at[event.number])


class OrderedDevice(EmulatedDevice):
    """A `Gpu` over an `OrderedDriver`."""

    driver: OrderedDriver

    def __init__(self) -> None:
        super().__init__()
        self.driver = self._pool._driver = OrderedDriver()

    def _take(self, shape, dtype):
        array, address = super()._take(shape, dtype)
        self.driver.lend(address)
        return array, address


def merge(clock: Clock, other: Clock) -> None:
    for queue, number in other.items():
        clock[queue] = max(number, clock.get(queue, 0))
