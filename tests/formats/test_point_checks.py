"""The check that every point of a key passes, on each instruction set, at any address."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from snarkline.curves.curve import CURVES, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Limbs, ints_to_limbs, limbs_to_ints
from snarkline.native import core

SIZES = [0, 1, 7, 8, 9, 16, 23, 40]


def multiples(curve: Curve, group: Group, n: int) -> Limbs:
    """G, 2 G, ... n G with infinity at every fifth place."""
    out = np.empty((n, curve.point_limbs(group)), np.uint64)
    base = PointTable.from_points(curve, group, [Point.generator(curve, group)]).limbs
    scalars = ints_to_limbs((i + 1 if i % 5 else 0 for i in range(n)), curve.fr_limbs)
    core.Executor(1, "portable").fixed_base(curve.name, group.value, out, base, scalars)
    return out


def unaligned(limbs: Limbs, offset: int) -> Limbs:
    """The same points at `offset` bytes from an aligned address."""
    buffer = np.zeros(limbs.nbytes + 64, np.uint8)
    start = -buffer.ctypes.data % 8 + offset
    view: Limbs = np.ndarray(limbs.shape, "<u8", buffer, start)
    view[...] = limbs
    assert view.ctypes.data % 8 == offset
    return view


CASES = list(product(CURVES.values(), Group, core.instruction_sets()))


@pytest.mark.parametrize(("curve", "group", "isa"), CASES)
@pytest.mark.parametrize("offset", [0, 4, 1])
def test_every_wrong_point_is_found(curve: Curve, group: Group, isa: str, offset: int) -> None:
    executor, limbs = core.Executor(2, isa), curve.fp_limbs
    for n in SIZES:
        good = multiples(curve, group, n)
        assert executor.first_bad_point(curve.name, group.value, unaligned(good, offset), False) == -1
        for i in range(n):
            for c in range(good.shape[1] // limbs):
                bad = unaligned(good, offset)
                bad[i, c * limbs + (i + c) % limbs] ^= np.uint64(1 << (7 * i + c) % 50)
                assert executor.first_bad_point(curve.name, group.value, bad, False) == i
                bad[max(0, i - 3)] = bad[i]
                assert executor.first_bad_point(curve.name, group.value, bad, False) == max(0, i - 3)


@pytest.mark.parametrize(("curve", "group", "isa"), CASES)
def test_coordinates_are_below_q(curve: Curve, group: Group, isa: str) -> None:
    """c + q and c + k q are the same residues; q itself stands for 0, also in infinity."""
    executor, limbs, n = core.Executor(1, isa), curve.fp_limbs, 11
    good = multiples(curve, group, n)
    for i, c in product(range(n), range(good.shape[1] // limbs)):
        columns = slice(c * limbs, (c + 1) * limbs)
        value = limbs_to_ints(good[i : i + 1, columns])[0]
        for larger in (value + curve.q, value + (2 ** (64 * limbs) - 1 - value) // curve.q * curve.q):
            bad = good.copy()
            bad[i, columns] = ints_to_limbs([larger], limbs)[0]
            assert executor.first_bad_point(curve.name, group.value, bad, False) == i


@pytest.mark.parametrize(("curve", "group", "isa"), CASES)
def test_half_of_infinity_is_no_point(curve: Curve, group: Group, isa: str) -> None:
    executor, width = core.Executor(1, isa), curve.point_limbs(group)
    for half in (slice(None, width // 2), slice(width // 2, None)):
        bad = multiples(curve, group, 9)
        bad[8, half] = 0
        assert executor.first_bad_point(curve.name, group.value, bad, False) == 8
        bad[8] = 0
        assert executor.first_bad_point(curve.name, group.value, bad, False) == -1


@pytest.mark.parametrize(("curve", "group", "isa"), CASES)
def test_many_points_on_several_threads(curve: Curve, group: Group, isa: str) -> None:
    n = 20_011
    table = np.tile(multiples(curve, group, 101), (n // 101 + 1, 1))[:n]
    executor = core.Executor(3, isa)
    assert executor.first_bad_point(curve.name, group.value, table, False) == -1
    for i in (n - 1, 12_345, 9_000, 1):
        table[i, 0] ^= np.uint64(1)
        assert executor.first_bad_point(curve.name, group.value, table, False) == i
