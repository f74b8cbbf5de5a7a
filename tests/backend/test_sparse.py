"""Sparse products of every instruction set against the reference, biased to empty rows, 0, 1 and -1."""

from __future__ import annotations

import random

import numpy as np
import pytest

from snarkline.backend.base import Domain
from snarkline.backend.reference import ReferenceBackend
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.native import core
from snarkline.r1cs.matrices import SparseMatrix

CURVES = [BN254, BLS12_381]
ISAS = core.instruction_sets()
reference = ReferenceBackend()

every_curve = pytest.mark.parametrize("curve", CURVES, ids=repr)
every_isa = pytest.mark.parametrize("isa", ISAS)

Rows = list[list[tuple[int, int]]]  # (column, coefficient)


def sparse(curve: Curve, n_columns: int, rows: Rows) -> SparseMatrix:
    coefficients = sorted({c for row in rows for _, c in row})
    index = {c: i for i, c in enumerate(coefficients)}
    entries = [entry for row in rows for entry in row]
    return SparseMatrix(
        n_columns=n_columns,
        row_start=np.cumsum([0] + [len(row) for row in rows], dtype=np.uint64),
        column=np.array([column for column, _ in entries], dtype=np.uint32),
        value=np.array([index[c] for _, c in entries], dtype=np.uint32),
        coefficients=FrVector.from_ints(curve, coefficients, Form.MONTGOMERY),
    )


def parts(m: SparseMatrix) -> tuple[np.ndarray, ...]:
    return m.row_start, m.column, m.value, m.coefficients.limbs


def multiply(m: SparseMatrix, w: FrVector, isa: str, threads: int) -> list[int]:
    out = np.full((m.n_rows, 4), 0xAB, dtype=np.uint64)
    core.Executor(threads, isa).spmv(w.curve.name, out, *parts(m), w.limbs, w.form.value)
    return FrVector(w.curve, out, Form.MONTGOMERY).to_ints()


def multiply_transposed(m: SparseMatrix, v: FrVector, isa: str, threads: int) -> list[int]:
    out = np.full((m.n_columns, 4), 0xAB, dtype=np.uint64)
    core.Executor(threads, isa).spmv_transposed(v.curve.name, out, *parts(m), v.limbs)
    return FrVector(v.curve, out, v.form).to_ints()


def check(m: SparseMatrix, w: list[int], v: list[int], isa: str) -> None:
    """Both products, both forms, several numbers of threads."""
    curve = m.coefficients.curve
    log_size = max(m.n_rows - 1, 0).bit_length()
    w_canonical = FrVector.from_ints(curve, w)
    expected = reference.evaluate(m, w_canonical, Domain(curve, log_size, 1)).to_ints()[: m.n_rows]
    v_montgomery = FrVector.from_ints(curve, v, Form.MONTGOMERY)
    expected_transposed = reference.evaluate_transposed(m, v_montgomery).to_ints()
    for threads in (1, 2, 5):
        for form in Form:
            assert multiply(m, FrVector.from_ints(curve, w, form), isa, threads) == expected
        assert multiply_transposed(m, v_montgomery, isa, threads) == expected_transposed


def random_rows(curve: Curve, n_rows: int, n_columns: int, seed: int) -> Rows:
    rng = random.Random(seed)
    values = [0, 1, curve.r - 1, 2, 1 << 64, rng.randrange(curve.r), rng.randrange(curve.r)]
    weights = [1, 6, 6, 2, 1, 1, 1]
    lengths = rng.choices([0, 1, 2, 3, 30], weights=[3, 5, 5, 3, 1], k=n_rows)
    return [[(rng.randrange(n_columns), rng.choices(values, weights)[0]) for _ in range(length)] for length in lengths]


def witness(curve: Curve, n: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    wide = [2, 1 << 64, 1 << 128, 1 << 192, curve.r - 1, (1 << 64) - 1, rng.randrange(curve.r)]
    return [rng.choice([0, 1, 0, 1, rng.choice(wide)]) for _ in range(n)]


@every_isa
@every_curve
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 100), (500, 40), (2000, 1500)])
def test_agrees_with_the_reference(curve, isa, shape):
    n_rows, n_columns = shape
    m = sparse(curve, n_columns, random_rows(curve, n_rows, n_columns, seed=n_rows))
    check(m, witness(curve, n_columns, 1), witness(curve, n_rows, 2), isa)


@every_isa
@every_curve
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no rows"),
        pytest.param([[], [], []], id="no entries"),
        pytest.param([[], [(0, 1)], []], id="empty rows around"),
        pytest.param([[(2, 0), (1, 0)]], id="zero coefficients"),
        pytest.param([[(0, 1), (0, 1), (0, -1), (0, 5)]], id="one column four times"),
        pytest.param([[(0, 3), (1, -1), (2, 1)], [(0, -3), (1, 1), (2, -1)]], id="opposite rows"),
    ],
)
def test_edges(curve, isa, rows):
    m = sparse(curve, 3, [[(column, c % curve.r) for column, c in row] for row in rows])
    for w in ([0, 0, 0], [1, 1, 1], [1, 0, curve.r - 1], [curve.r - 1, 2, 1 << 200]):
        check(m, w, [curve.r - 1, 1, 0][: len(rows)], isa)


@every_isa
def test_sums_of_many_equal_terms(isa):
    """One row with all entries: n terms of r - 1 are -n; then all rows in one column."""
    r, n = BN254.r, 50_000
    row = sparse(BN254, n, [[(i, 1) for i in range(n)]])
    top = FrVector.from_ints(BN254, [r - 1] * n)
    assert multiply(row, top, isa, 2) == [r - n]
    column = sparse(BN254, 1, [[(0, r - 1)] for _ in range(n)])
    assert multiply_transposed(column, top, isa, 2) == [n]
    assert multiply(column, FrVector.from_ints(BN254, [r - 1]), isa, 2) == [1] * n


@every_isa
@every_curve
def test_the_two_products_are_adjoint(curve, isa):
    """v * (M w) = (v M) * w, at a size that is worked on in many tasks."""
    n_rows, n_columns, n_entries = 30_000, 20_000, 600_000
    rng = np.random.default_rng(1)
    r = curve.r
    m = SparseMatrix(
        n_columns=n_columns,
        row_start=np.concatenate(([0], np.sort(rng.integers(0, n_entries, n_rows - 1)), [n_entries])).astype(np.uint64),
        column=rng.integers(0, n_columns, n_entries).astype(np.uint32),
        value=rng.integers(0, 5, n_entries).astype(np.uint32),
        coefficients=FrVector.from_ints(curve, [1, r - 1, 3, 1 << 100, r - 5], Form.MONTGOMERY),
    )
    w, v = witness(curve, n_columns, 3), witness(curve, n_rows, 4)
    left = multiply(m, FrVector.from_ints(curve, w), isa, 2)
    right = multiply_transposed(m, FrVector.from_ints(curve, v, Form.MONTGOMERY), isa, 2)
    assert sum(x * y for x, y in zip(v, left, strict=True)) % r == sum(x * y for x, y in zip(w, right, strict=True)) % r
