"""Small circuits and their witnesses, built term by term."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import SecurityWarning
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.setup import setup
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix
from snarkline.r1cs.witness import Witness

Row = Sequence[tuple[int, int]]
"""A linear combination as pairs (wire, coefficient); wires may repeat, coefficients may be 0 or negative."""


def matrix(curve: Curve, n_columns: int, rows: Sequence[Row]) -> SparseMatrix:
    distinct = sorted({value % curve.r for row in rows for _, value in row})
    return SparseMatrix(
        n_columns=n_columns,
        row_start=np.cumsum([0, *map(len, rows)], dtype=np.uint64),
        column=np.array([wire for row in rows for wire, _ in row], dtype=np.uint32),
        value=np.array([distinct.index(value % curve.r) for row in rows for _, value in row], dtype=np.uint32),
        coefficients=FrVector.from_ints(curve, distinct, Form.MONTGOMERY),
    )


def witness(curve: Curve, values: Sequence[int]) -> Witness:
    return Witness(FrVector.from_ints(curve, values))


@dataclass(frozen=True)
class Circuit:
    """Constraints (a, b, c), wires, and the values of a satisfying witness."""

    n_public: int
    constraints: list[tuple[Row, Row, Row]]
    values: list[int]

    def r1cs(self, curve: Curve) -> R1CS:
        n = len(self.values)
        a, b, c = (matrix(curve, n, [row[k] for row in self.constraints]) for k in range(3))
        return R1CS(curve, n, self.n_public, 0, Matrices(a, b, c))

    def witness(self, curve: Curve) -> Witness:
        return witness(curve, self.values)


def multiplier() -> Circuit:
    """out = x y, (out + 3) (x + y) = z; out is public."""
    x, y = 7, 11
    out = x * y
    return Circuit(
        1,
        [([(2, 1)], [(3, 1)], [(1, 1)]), ([(1, 1), (0, 3)], [(2, 1), (3, 1)], [(4, 1)])],
        [1, out, x, y, (out + 3) * (x + y)],
    )


def ladder(n: int, n_public: int = 1) -> Circuit:
    """n constraints x_(i+1) = (x_i + i) (2 - x_(i mod 2)), over integers of both signs."""
    values = [1, 3]
    rows: list[tuple[Row, Row, Row]] = []
    for i in range(n):
        other = 1 + i % 2 if i else 1
        rows.append(([(i + 1, 1), (0, i)], [(0, 2), (other, -1)], [(i + 2, 1)]))
        values.append((values[i + 1] + i) * (2 - values[other]))
    return Circuit(n_public, rows, values)


EDGE_CIRCUITS: dict[str, Callable[[], Circuit]] = {
    "multiplier": multiplier,
    "no public signal": lambda: Circuit(0, multiplier().constraints, multiplier().values),
    "only public signals": lambda: Circuit(4, multiplier().constraints, multiplier().values),
    "one constraint": lambda: Circuit(1, multiplier().constraints[:1], multiplier().values[:4]),
    "no constraint": lambda: Circuit(1, [], [1, 5, 6]),
    "no constraint, no public signal": lambda: Circuit(0, [], [1, 5]),
    "nothing but the constant": lambda: Circuit(0, [], [1]),
    "15 rows": lambda: ladder(13),
    "16 rows": lambda: ladder(14),
    "17 rows": lambda: ladder(15),
    "15 constraints, no public signal": lambda: ladder(15, 0),
    "16 constraints": lambda: ladder(16),
    "17 constraints": lambda: ladder(17),
    "unused wires": lambda: Circuit(3, [([(1, 1)], [(5, 1)], [(7, 1)])], [1, 2, 9, 9, 9, 3, 9, 6, 9]),
    "few wires, many constraints": lambda: Circuit(1, [([(1, k)], [(1, 1)], [(1, 4 * k)]) for k in range(40)], [1, 4]),
    "many wires, few constraints": lambda: Circuit(
        1, [([(i, 1) for i in range(2, 60)], [(0, 1)], [(1, 1)])], [1, sum(range(2, 60)), *range(2, 60)]
    ),
    "B all at infinity": lambda: Circuit(1, [([(1, 1)], [], []), ([(2, 5)], [], [])], [1, 8, 9]),
    "A and C empty": lambda: Circuit(1, [([], [(1, 1)], []), ([], [(2, 5)], [])], [1, 8, 9]),
    "explicit zero coefficients": lambda: Circuit(
        1, [([(2, 1), (3, 0)], [(3, 1), (1, 0)], [(1, 1), (0, 0)]), ([(2, 0)], [(3, 0)], [(4, 0)])], [1, 77, 7, 11, 5]
    ),
    "repeated wires in a row": lambda: Circuit(1, [([(2, 1), (2, 2), (2, -1)], [(3, 1)], [(1, 2)])], [1, 77, 7, 11]),
    "all zero": lambda: Circuit(1, [([(2, 1)], [(3, 1)], [(1, 1)])], [1, 0, 0, 0]),
    "largest values": lambda: Circuit(1, [([(2, 1)], [(2, 1)], [(1, 1)])], [1, 1, -1, -1]),
    "20 public signals": lambda: ladder(30, 20),
}


WASTE = (0x1234567, 0x2345678, 0x3456789, 0x456789A, 0x56789AB)
"""tau, alpha, beta, gamma, delta of keys whose discrete logarithms the tests know."""


@cache
def development_key(name: str, curve: Curve) -> ProvingKey:
    """The key of an edge circuit."""
    return quiet_setup(EDGE_CIRCUITS[name]().r1cs(curve))


def quiet_setup(r1cs: R1CS, backend: str = "auto") -> ProvingKey:
    """`setup` with known toxic waste, without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return setup(r1cs, backend=backend, threads=1, toxic_waste_for_tests=WASTE)


def chain(curve: Curve, n: int) -> tuple[R1CS, Witness]:
    """x_(i+1) = x_i^2 + 5 for n constraints, built by arrays: a large circuit whose witness is dense. x_0 is public."""
    values = [1, 3]
    for _ in range(n):
        values.append((values[-1] ** 2 + 5) % curve.r)
    coefficients = FrVector.from_ints(curve, [1, -5], Form.MONTGOMERY)
    x = np.arange(1, n + 1, dtype=np.uint32)
    single = SparseMatrix(n + 2, np.arange(n + 1, dtype=np.uint64), x, np.zeros(n, dtype=np.uint32), coefficients)
    pairs = SparseMatrix(
        n_columns=n + 2,
        row_start=np.arange(0, 2 * n + 1, 2, dtype=np.uint64),
        column=np.stack([x + 1, np.zeros(n, dtype=np.uint32)], axis=1).astype(np.uint32).ravel(),
        value=np.tile(np.array([0, 1], dtype=np.uint32), n),
        coefficients=coefficients,
    )
    return R1CS(curve, n + 2, 1, 0, Matrices(single, single, pairs)), witness(curve, values)
