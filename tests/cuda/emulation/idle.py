"""A GPU that does nothing: for the order, the number and the sizes of what is asked of it, at any size of circuit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from emulation import EmulatedDevice, EmulatedDriver
from snarkline import setup
from snarkline.backend.cuda.buckets import COUNTERS, MAX_ROUNDS
from snarkline.backend.cuda.driver import Queue
from snarkline.backend.cuda.windows import best_count, make_windows
from snarkline.cli.bench import synthetic
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import PointTable
from snarkline.curves.vector import Form, FrVector
from snarkline.groth16.keys import ProvingKey, Query
from snarkline.r1cs.matrices import bind_public
from snarkline.r1cs.witness import Witness


class IdleDriver(EmulatedDriver):
    """Addresses without memory. The host reads that all scalars are of full width, with as few to a bucket as can be:
    what takes most memory."""

    multiprocessors = 132

    def __init__(self, curve: Curve) -> None:
        super().__init__(1 << 37)
        self.curve, self.at, self.sizes = curve, 1 << 44, {}
        self.counting: list[int] = []
        self.entries = 0

    def allocated(self) -> int:
        return sum(self.sizes.values())

    def allocate(self, n_bytes: int) -> int:
        self._call("allocate", n_bytes)
        self.at += n_bytes
        self.sizes[self.at] = n_bytes
        return self.at

    def free(self, address: int) -> None:
        self._call("free", address)
        del self.sizes[address]

    def zero(self, address: int, n_bytes: int, queue: Queue = Queue.COMPUTE) -> None:
        self._call("zero", address, n_bytes)

    def to_device(self, array, host, queue) -> None:
        self._call("to_device", array.ctypes.data, host.nbytes, queue)

    def to_host(self, array):
        raise AssertionError("waits for all that is queued")

    def to_host_later(self, host, array, queue) -> None:
        self._call("to_host_later", array.nbytes, queue)
        words = host.view(np.uint32)
        words[:] = 0
        if len(words) == 3:
            words[0] = self.counting.pop(0)
        elif len(words) == COUNTERS:
            words[0] = self.entries
            words[1 : MAX_ROUNDS + 1] = [self.entries >> r for r in range(1, MAX_ROUNDS + 1)]

    def page_locked(self, address: int) -> bool:
        return True

    def launch(self, function, grid, block, arguments, shared, queue: Queue = Queue.COMPUTE) -> None:
        kernel = function[1]
        self._call("launch", kernel, queue)
        if kernel == "count_lengths":
            self.counting.append(arguments[1])
        elif kernel == "make_digits":
            n = arguments[1]
            self.entries = n * len(make_windows(self.curve, best_count(self.curve, n)).bits)


class IdleDevice(EmulatedDevice):
    """A `Gpu` over an `IdleDriver`."""

    driver: IdleDriver

    def __init__(self, curve: Curve, *, memory_limit: int | None = None) -> None:
        super().__init__(memory_limit=memory_limit)
        self.driver = self._pool._driver = IdleDriver(curve)
        self.multiprocessors = self.driver.multiprocessors

    def empty(self, shape, dtype):
        return self._take(shape, dtype)[0]


def large_proof(curve: Curve, log_n: int, kind: str) -> tuple[ProvingKey, Witness]:
    """A key of 2^log_n constraints whose points are all zeros, and a witness."""
    key = setup(synthetic.circuit(curve, 5, kind)[0], backend="cpu", threads=1)
    r1cs, values = synthetic.circuit(curve, log_n, kind)
    n = len(values)

    def table(group: Group, n_points: int) -> PointTable:
        return PointTable(curve, group, np.zeros((n_points, curve.point_limbs(group)), np.uint64))

    matrices = bind_public(r1cs)
    return replace(
        key, n_wires=n, domain=replace(key.domain, log_size=log_n), matrices=replace(matrices, c=None),
        a=Query(table(Group.G1, n)), b1=Query(table(Group.G1, n)), b2=Query(table(Group.G2, n)),
        l=Query(table(Group.G1, n - key.l.first), first=key.l.first), h=table(Group.G1, 1 << log_n),
    ), Witness(FrVector(curve, values, Form.CANONICAL))  # fmt: skip
