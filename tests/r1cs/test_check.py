"""The first violated constraint, against evaluation in Python integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from snarkline.curves.curve import BN254, CURVES, Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import MismatchError
from snarkline.r1cs import check
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix, bind_public
from snarkline.r1cs.witness import Witness

N_WIRES = 9


def sparse(curve: Curve, rows: list[list[tuple[int, int]]]) -> SparseMatrix:
    coefficients = [value for row in rows for _, value in row]
    return SparseMatrix(
        N_WIRES,
        np.cumsum([0, *map(len, rows)], dtype=np.uint64),
        np.array([wire for row in rows for wire, _ in row], dtype=np.uint32),
        np.arange(len(coefficients), dtype=np.uint32),
        FrVector.from_ints(curve, coefficients, Form.MONTGOMERY),
    )


def random_system(curve: Curve, n: int, seed: int) -> tuple[R1CS, list[int]]:
    """Constraints that hold: C is <A, w> <B, w> times the constant wire."""
    rng = random.Random(seed)
    edge = (0, 1, 2, curve.r - 1, 1 << 64, rng.randrange(curve.r))
    w = [1, *(rng.choice(edge) for _ in range(N_WIRES - 1))]
    a, b = (
        [[(rng.randrange(N_WIRES), rng.choice(edge)) for _ in range(rng.randrange(4))] for _ in range(n)] for _ in "ab"
    )
    dot = [[sum(c * w[i] for i, c in row) for row in rows] for rows in (a, b)]
    c = [[(0, x * y)] for x, y in zip(*dot, strict=True)]
    return R1CS(curve, N_WIRES, 2, 0, Matrices(sparse(curve, a), sparse(curve, b), sparse(curve, c))), w


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few constraints make several blocks."""
    monkeypatch.setattr(check, "BLOCK_ROWS", 4)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 13])
def test_satisfied(curve: Curve, n: int) -> None:
    r1cs, w = random_system(curve, n, n)
    assert first_violation(r1cs, Witness(FrVector.from_ints(curve, w))) is None


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("violated", [[0], [3], [4], [12], [5, 6], [12, 3], [0, 12], list(range(13))])
def test_first_violation(curve: Curve, violated: list[int]) -> None:
    r1cs, w = random_system(curve, 13, 99)
    assert r1cs.matrices.c is not None
    limbs = r1cs.matrices.c.coefficients.limbs.copy()
    broken = FrVector(curve, limbs, Form.MONTGOMERY)
    limbs[violated] = FrVector.from_ints(curve, [v + 1 for v in broken.to_ints()], Form.MONTGOMERY).limbs[violated]
    c = SparseMatrix(N_WIRES, r1cs.matrices.c.row_start, r1cs.matrices.c.column, r1cs.matrices.c.value, broken)
    r1cs = R1CS(curve, N_WIRES, 2, 0, Matrices(r1cs.matrices.a, r1cs.matrices.b, c))
    found = first_violation(r1cs, Witness(FrVector.from_ints(curve, w)), threads=2)
    assert found is not None and found.constraint == min(violated)
    rows = [m.row(found.constraint) for m in (r1cs.matrices.a, r1cs.matrices.b, c)]
    values = [sum(k * w[i] for i, k in row) % curve.r for row in rows]
    assert [found.a, found.b, found.c] == values
    assert found.a * found.b % curve.r != found.c
    assert found.wires == tuple(sorted({i for row in rows for i, _ in row}))
    assert found.error().constraint == found.constraint


def test_values_are_not_in_the_representation() -> None:
    violation = check.Violation(3, 1111111, 2222222, 3333333, (0, 4))
    for text in (repr(violation), str(violation.error())):
        assert "1111111" not in text and "2222222" not in text and "3333333" not in text
        assert "3" in text and "4" in text


def test_matrices_without_c() -> None:
    r1cs, w = random_system(BN254, 3, 5)
    r1cs = R1CS(BN254, N_WIRES, 2, 0, Matrices(r1cs.matrices.a, r1cs.matrices.b, None))
    with pytest.raises(MismatchError):
        first_violation(r1cs, Witness(FrVector.from_ints(BN254, w)))


def test_public_rows() -> None:
    r1cs, _ = random_system(BN254, 5, 1)
    bound = bind_public(r1cs)
    assert bound.c is not None and r1cs.matrices.c is not None
    assert [bound.a.row(5 + i) for i in range(3)] == [[(i, 1)] for i in range(3)]
    assert [m.row(5 + i) for m in (bound.b, bound.c) for i in range(3)] == [[]] * 6
    assert {bound.a.n_rows, bound.b.n_rows, bound.c.n_rows} == {8}
    for before, after in ((r1cs.matrices.a, bound.a), (r1cs.matrices.b, bound.b), (r1cs.matrices.c, bound.c)):
        assert [before.row(k) for k in range(5)] == [after.row(k) for k in range(5)]
