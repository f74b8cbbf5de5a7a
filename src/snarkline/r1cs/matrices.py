"""Rank-1 constraint systems: <A_k, w> * <B_k, w> = <C_k, w> for every constraint k."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import FrVector


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix over Fr by rows (CSR), its distinct values kept once.

    `row_start` has shape (rows + 1,), uint64; `column` and `value` have shape (entries,), uint32, and `value[i]`
    indexes `coefficients` (Montgomery form). Every column is below `n_columns`, every value below
    `len(coefficients)`: whoever builds a matrix checks that.
    """

    n_columns: int
    row_start: npt.NDArray[np.uint64]
    column: npt.NDArray[np.uint32]
    value: npt.NDArray[np.uint32]
    coefficients: FrVector

    @property
    def n_rows(self) -> int:
        return len(self.row_start) - 1

    @property
    def n_entries(self) -> int:
        return len(self.column)

    @property
    def nbytes(self) -> int:
        arrays = (self.row_start, self.column, self.value, self.coefficients.limbs)
        return sum(array.nbytes for array in arrays)

    def columns(self) -> npt.NDArray[np.uint32]:
        """The columns in which an entry is not zero, ascending."""
        used = np.zeros(self.n_columns, dtype=np.bool_)
        self.mark(used)
        return np.flatnonzero(used).astype(np.uint32)

    def mark(self, used: npt.NDArray[np.bool_]) -> None:
        """Sets `used` in the columns in which an entry is not zero."""
        zero = np.logical_not(self.coefficients.limbs.any(axis=1)).reshape(-1)
        used[self.column[~zero[self.value]] if zero.any() else self.column] = True

    def row(self, k: int) -> list[tuple[int, int]]:
        """Row `k` as pairs (column, coefficient), coefficients as integers in [0, r)."""
        start, stop = int(self.row_start[k]), int(self.row_start[k + 1])
        coefficients = FrVector(
            self.coefficients.curve, self.coefficients.limbs[self.value[start:stop]], self.coefficients.form
        )
        return list(zip((int(c) for c in self.column[start:stop]), coefficients.to_ints(), strict=True))


@dataclass(frozen=True, eq=False)
class Matrices:
    """The matrices that a prover evaluates. Where `c` is None, c is taken as a * b element by element.

    They may have more rows than the circuit has constraints: the rows that bind public inputs come last.
    """

    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix | None

    @property
    def n_entries(self) -> tuple[int, ...]:
        """The entries of each matrix."""
        return tuple(m.n_entries for m in (self.a, self.b, self.c) if m is not None)

    def wires_read(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The wires that rows of A read, and those of B, ascending."""
        return self.a.columns(), self.b.columns()

    def flatten(self) -> Matrices:
        """The matrices row by row: these."""
        return self


@dataclass(frozen=True, eq=False)
class R1CS:
    """A constraint system. Wire 0 is the constant 1, wires 1 to n_public are the public inputs, the rest is private.

    `n_outputs` of the public wires are outputs (circom's distinction; it has no meaning for the proof).
    """

    curve: Curve
    n_wires: int
    n_public: int
    n_outputs: int
    matrices: Matrices

    @property
    def path(self) -> str | None:
        """The file that the circuit comes from, for messages."""
        return None

    @property
    def n_constraints(self) -> int:
        return self.matrices.a.n_rows


def bind_public(r1cs: R1CS) -> Matrices:
    """The matrices with a row at their end for each public wire and wire 0: in A it is that wire, in B and C empty.

    They hold for every witness, and make the A polynomials of public wires independent of one another, without which
    a proof could be changed into one for other public inputs (Ben-Sasson et al., eprint 2013/879, section 4.1).
    """
    matrices, extra = r1cs.matrices, r1cs.n_public + 1
    a = matrices.a
    one = FrVector.from_ints(r1cs.curve, [1], a.coefficients.form).limbs
    bound = SparseMatrix(
        n_columns=a.n_columns,
        row_start=np.append(a.row_start, a.n_entries + np.arange(1, extra + 1, dtype=np.uint64)).astype(np.uint64),
        column=np.append(a.column, np.arange(extra, dtype=np.uint32)),
        value=np.append(a.value, np.full(extra, len(a.coefficients), dtype=np.uint32)),
        coefficients=FrVector(r1cs.curve, np.append(a.coefficients.limbs, one, axis=0), a.coefficients.form),
    )
    return Matrices(bound, _append_empty(matrices.b, extra), matrices.c and _append_empty(matrices.c, extra))


def _append_empty(matrix: SparseMatrix, n_rows: int) -> SparseMatrix:
    row_start = np.append(matrix.row_start, np.full(n_rows, matrix.n_entries, dtype=np.uint64))
    return replace(matrix, row_start=row_start)
