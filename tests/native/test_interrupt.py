"""A signal ends a long kernel soon, on every number of threads, and other Python threads run meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from snarkline.curves.curve import BLS12_381, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Limbs
from snarkline.native import core

curve = BLS12_381


def generators(group: Group, n: int) -> Limbs:
    one = PointTable.from_points(curve, group, [Point.generator(curve, group)]).limbs
    return np.repeat(one, n, axis=0)


def long_fixed_base(executor: core.Executor) -> None:
    n = 1 << 18
    scalars = np.random.default_rng(1).integers(0, 1 << 62, size=(n, 4), dtype=np.uint64)
    out = np.empty((n, curve.point_limbs(Group.G2)), np.uint64)
    executor.fixed_base(curve.name, Group.G2.value, out, generators(Group.G2, 1), scalars)


def long_subgroup_check(executor: core.Executor) -> None:
    executor.first_bad_point(curve.name, Group.G2.value, generators(Group.G2, 1 << 17), True)


def long_pairing_product(executor: core.Executor) -> None:
    n = 1 << 14
    executor.pairing_product_is_one(curve.name, generators(Group.G1, n), generators(Group.G2, n))


LONG = [long_fixed_base, long_subgroup_check, long_pairing_product]


@pytest.fixture
def default_sigint() -> None:
    """A test runner may have been started with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kernel", LONG)
def test_interrupt(kernel: Callable[[core.Executor], None], threads: int) -> None:
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel(core.Executor(threads))
    assert sent, "the kernel ended by itself"
    assert time.monotonic() - sent[0] < 1


def test_a_handlers_exception_goes_up() -> None:
    class Alarm(Exception):
        pass

    def handler(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            long_subgroup_check(core.Executor(2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_during_a_kernel() -> None:
    points = generators(Group.G2, 1 << 11)
    ticks = 0
    done = threading.Event()

    def check() -> None:
        assert core.Executor(1).first_bad_point(curve.name, Group.G2.value, points, True) == -1
        done.set()

    worker = threading.Thread(target=check)
    worker.start()
    while not done.wait(0.001):
        ticks += 1
    worker.join()
    assert ticks > 10
