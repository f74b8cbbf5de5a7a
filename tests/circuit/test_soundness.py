"""No wire that a gadget computes is left free: changing any one of them violates a constraint."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from evaluation import satisfied

from snarkline.circuit import ConstraintSystem, UInt8
from snarkline.circuit.gadgets.compare import divide, is_equal, is_zero, less_than
from snarkline.circuit.gadgets.lookup import lookup
from snarkline.circuit.gadgets.merkle import poseidon_level
from snarkline.circuit.gadgets.pack import num2bits
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.select import choose, select, swap
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.curves.curve import BLS12_381, BN254, Curve

Build = Callable[[ConstraintSystem], Any]


def byte(cs: ConstraintSystem) -> UInt8:
    return UInt8(cs, cs.alloc_bits(8).literals)


GADGETS: dict[str, tuple[Curve, Build, list[int]]] = {
    "bits": (BN254, lambda cs: num2bits(cs, cs.alloc(), 8), [200]),
    "canonical bits of 0": (BN254, lambda cs: num2bits(cs, cs.alloc(), 254), [0]),
    "canonical bits of r - 1": (BLS12_381, lambda cs: num2bits(cs, cs.alloc(), 255), [BLS12_381.r - 1]),
    "is zero": (BN254, lambda cs: is_zero(cs, cs.alloc()), [5]),
    "is equal": (BN254, lambda cs: is_equal(cs, cs.alloc(), cs.alloc()), [5, 6]),
    "division": (BN254, lambda cs: divide(cs, cs.alloc(), cs.alloc()), [5, 6]),
    "comparison": (BN254, lambda cs: less_than(cs, cs.alloc(), cs.alloc(), 8), [5, 6]),
    "selection": (BN254, lambda cs: select(cs, cs.alloc_bit(), cs.alloc(), cs.alloc()), [1, 5, 6]),
    "swap": (BN254, lambda cs: swap(cs, cs.alloc_bit(), cs.alloc(), cs.alloc()), [0, 5, 6]),
    "choice": (BN254, lambda cs: choose(cs, cs.alloc_bits(2), [cs.alloc() for _ in range(4)]), [0, 1, 5, 6, 7, 8]),
    "lookup": (BN254, lambda cs: lookup(cs, cs.alloc_bits(3), list(range(8))), [1, 1, 0]),
    "word": (
        BN254,
        lambda cs: UInt8(cs, cs.alloc_bits(8).literals).plus(UInt8(cs, cs.alloc_bits(8).literals)),
        [1] * 16,
    ),
    "poseidon": (BN254, lambda cs: poseidon(cs, [cs.alloc(), cs.alloc()]), [1, 2]),
    "neptune": (BLS12_381, lambda cs: neptune_poseidon(cs, [cs.alloc(), cs.alloc()]), [1, 2]),
    "level": (BN254, lambda cs: poseidon_level(cs, cs.alloc(), cs.alloc(), cs.alloc_bit()), [1, 2, 1]),
    "sha256": (BN254, lambda cs: sha256(cs, cs.alloc_bits(8)), [1, 0, 1, 1, 0, 0, 0, 1]),
}


@pytest.mark.parametrize("name", GADGETS)
def test_every_computed_wire_is_bound(name: str) -> None:
    curve, build, given = GADGETS[name]
    cs = ConstraintSystem(curve)
    build(cs)
    r1cs = cs.finish()
    wires = satisfied(r1cs, given)
    matrices = r1cs.flatten().matrices
    sides = [matrix for matrix in (matrices.a, matrices.b, matrices.c) if matrix is not None]
    columns = np.concatenate([matrix.column for matrix in sides])
    counts = [np.diff(matrix.row_start).astype(np.int64) for matrix in sides]
    numbers = np.concatenate([np.repeat(np.arange(len(count)), count) for count in counts])

    @cache
    def row(k: int) -> list[list[tuple[int, int]]]:
        return [matrix.row(k) for matrix in sides]

    def holds(k: int) -> bool:
        a, b, c = (sum(coefficient * wires[wire] for wire, coefficient in side) for side in row(k))
        return (a * b - c) % curve.r == 0

    computed = sorted(set(range(1, r1cs.n_wires)) - set(r1cs.given.tolist()))
    assert computed
    for wire in computed[:: max(1, len(computed) // 400)]:
        reading = np.unique(numbers[columns == wire]).tolist()
        value = wires[wire]
        for other in {(value + 1) % curve.r, (1 - value) % curve.r, (-value) % curve.r} - {value}:
            wires[wire] = other
            assert not all(map(holds, reading)), f"wire {wire} may be {other} as well as {value}"
        wires[wire] = value
