"""Sums of windows, the end of a sum that a device computed, against multiples of the generator."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from snarkline.backend.cpu import CpuBackend
from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.pairing import fold_windows
from snarkline.curves.point import Point
from snarkline.curves.vector import FrVector, Limbs
from snarkline.memory import Arena

CASES = [
    ([0], [1]),
    ([0], [0]),
    ([7], [5]),
    ([0, 1], [0, 1]),
    ([0, 3, 3, 200], [4, -1, 1, 0]),
    ([0, 20, 40], [0, 0, 0]),
    ([0, 20], [-(1 << 20), 1]),  # the doublings meet the opposite point
    ([0, 20], [1 << 20, 1]),  # and the same one
    ([5, 17, 100, 256], [3, 2, 0, 9]),
]


def xyzz(curve: Curve, group: Group, multiples: Sequence[int]) -> Limbs:
    """Multiples of the generator with ZZ = z^2 and ZZZ = z^3, by Python's integers; infinity as ZZ = 0."""
    q, shift, n = curve.q, 1 << (64 * curve.fp_limbs), curve.fp_limbs
    cpu = CpuBackend(1, Arena())
    points = cpu.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, multiples)).to_points()
    rows = []
    for multiple, point in zip(multiples, points, strict=True):
        z = random.Random(multiple).randrange(2, q) if multiple else 0
        size = 2 if group is Group.G2 else 1
        x, y = point.coordinates()[:size], point.coordinates()[size:]
        values = [*(c * z**2 % q for c in x), *(c * z**3 % q for c in y)]
        values += [z**2 % q, 0][:size] + [z**3 % q, 0][:size]
        rows.append([value * shift % q >> (64 * i) & (2**64 - 1) for value in values for i in range(n)])
    return np.array(rows, np.uint64)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("group", list(Group))
@pytest.mark.parametrize(("starts", "multiples"), CASES, ids=str)
def test_windows_fold_to_their_weighted_sum(
    curve: Curve, group: Group, starts: list[int], multiples: list[int]
) -> None:
    exponent = sum(m << s for m, s in zip(multiples, starts, strict=True)) % curve.r
    expected = CpuBackend(1, Arena()).fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, [exponent]))
    assert fold_windows(curve, group, xyzz(curve, group, multiples), starts).point(0) == expected.point(0)


def test_arguments_are_checked() -> None:
    sums = xyzz(BN254, Group.G1, [1, 2])
    for starts in ([1, 0], [0, 257], [0]):
        with pytest.raises((ValueError, TypeError)):
            fold_windows(BN254, Group.G1, sums, starts)
    with pytest.raises((ValueError, TypeError)):
        fold_windows(BN254, Group.G2, sums, [0, 1])
