"""Templates: a gadget recorded once, as constraints over local columns and a program for its wires.

Column 0 is the constant 1, columns 1 to n_ports are the ports (wires from outside, distinct from one another), and then
come the template's own wires, its aux columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import FormatError
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import WRITES_BITS, Instruction, Op, Program


@dataclass(frozen=True, eq=False)
class Native:
    """An implementation that backends know by name and that computes a template's outputs only.

    `inputs` and `outputs`, int32, are literals for bits ("sha256_compress") or columns for field elements ("poseidon"),
    in the order that the implementation defines. `parameters` are its constants, or None.
    """

    name: str
    inputs: npt.NDArray[np.int32]
    outputs: npt.NDArray[np.int32]
    parameters: FrVector | None = None

    @property
    def nbytes(self) -> int:
        constants = 0 if self.parameters is None else self.parameters.limbs.nbytes
        return self.inputs.nbytes + self.outputs.nbytes + constants


@dataclass(frozen=True, eq=False)
class Template:
    """A recorded gadget: rows of A, B and C over its columns, and the program that computes its aux columns.

    `bits` says of every column whether it is known to be 0 or 1. `paths` are pairs (first row, gadget path inside the
    template), ascending; `names` are the names of the aux columns, where they are known. `broken` are pairs (row, what
    a witness that violates it gets wrong), ascending, for some rows.
    """

    name: str
    n_ports: int
    n_aux: int
    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix
    bits: npt.NDArray[np.bool_]
    program: Program
    native: Native | None = None
    paths: tuple[tuple[int, str], ...] = ()
    names: tuple[str, ...] = ()
    broken: tuple[tuple[int, str], ...] = ()

    @property
    def n_rows(self) -> int:
        return self.a.n_rows

    @property
    def n_columns(self) -> int:
        return 1 + self.n_ports + self.n_aux

    @property
    def first_aux(self) -> int:
        """The column of the first aux wire."""
        return 1 + self.n_ports

    @property
    def nbytes(self) -> int:
        matrices = self.a.nbytes + self.b.nbytes + self.c.nbytes
        return matrices + self.program.nbytes + self.bits.nbytes + (self.native.nbytes if self.native else 0)

    def path(self, row: int) -> str:
        """The gadget path of a row: the template's name and the path inside it."""
        i = bisect_right(self.paths, row, key=lambda path: path[0])
        return self.name if i == 0 else "/".join(part for part in (self.name, self.paths[i - 1][1]) if part)

    def check(self, curve: Curve, given: Set[int] = frozenset(), *, writes_ports: bool = False) -> None:
        """Check everything that can be checked without the template's surroundings.

        `given` are aux columns that the caller of the circuit gives, which nobody writes; `writes_ports` whether the
        program may write ports. Raises FormatError naming the template and what is wrong.
        """
        if self.n_ports < 0 or self.n_aux < 0:
            raise self.error("sizes", "at least 0 ports and aux wires", (self.n_ports, self.n_aux))
        for name, matrix in (("a", self.a), ("b", self.b), ("c", self.c), ("program", self.program.combinations)):
            self._check_matrix(curve, name, matrix)
        if not self.a.n_rows == self.b.n_rows == self.c.n_rows:
            raise self.error("matrices", "the same number of rows", (self.a.n_rows, self.b.n_rows, self.c.n_rows))
        if self.bits.shape != (self.n_columns,) or self.bits.dtype != np.bool_ or not self.bits[0]:
            raise self.error("bits", f"{self.n_columns} booleans, the first of them True", self.bits.shape)
        rows = [row for row, _ in self.paths]
        if rows != sorted(set(rows)) or (rows and not 0 <= rows[0] <= rows[-1] < max(1, self.n_rows)):
            raise self.error("paths", "rows in ascending order", rows[:4])
        if self.names and len(self.names) != self.n_aux:
            raise self.error("names", f"none or {self.n_aux}", len(self.names))
        self._check_program(given, writes_ports)
        self._check_native()

    def error(self, where: str, expected: object, found: object) -> FormatError:
        return FormatError(None, f"template {self.name!r}, {where}", expected, found)

    def _check_matrix(self, curve: Curve, name: str, matrix: SparseMatrix) -> None:
        starts = matrix.row_start
        if len(starts) == 0 or starts[0] != 0 or starts[-1] != matrix.n_entries or (starts[1:] < starts[:-1]).any():
            raise self.error(f"matrix {name}", "row starts that ascend from 0 to the number of entries", "others")
        if matrix.coefficients.curve is not curve or matrix.coefficients.form is not Form.MONTGOMERY:
            raise self.error(f"matrix {name}", f"Montgomery coefficients over {curve.name}", matrix.coefficients)
        if matrix.n_columns != self.n_columns or len(matrix.value) != matrix.n_entries:
            raise self.error(f"matrix {name}", f"{self.n_columns} columns", matrix.n_columns)
        if matrix.n_entries == 0:
            return
        if matrix.column.max() >= self.n_columns or matrix.value.max() >= len(matrix.coefficients):
            raise self.error(f"matrix {name}", "columns and values in range", "one out of range")
        # Within a row columns are distinct: programs and evaluation take a row's entries as a set.
        row = np.repeat(np.arange(matrix.n_rows, dtype=np.uint64), np.diff(starts).astype(np.int64))
        keys = np.sort(row * np.uint64(self.n_columns) + matrix.column)
        if (keys[1:] == keys[:-1]).any():
            twice = int(keys[1:][keys[1:] == keys[:-1]][0]) // self.n_columns
            raise self.error(f"matrix {name}, row {twice}", "distinct columns", "a column twice")

    def _check_program(self, given: Set[int], writes_ports: bool) -> None:
        """Every aux column is written once, after what it is computed from, unless it is given."""
        written = np.zeros(self.n_columns, np.bool_)
        for instruction in self.program.instructions(f"template {self.name!r}, program"):
            where = f"program, word {instruction.offset} ({instruction.op.name})"
            for target in instruction.targets:
                first = 1 if writes_ports else self.first_aux
                if not first <= target < self.n_columns or target in given or written[target]:
                    raise self.error(where, "a column to write that is not yet written", target)
                if instruction.op in WRITES_BITS and not self.bits[target] and instruction.op is not Op.BITS:
                    raise self.error(where, "a bit column to write", target)
            unknown = self._first_unknown(instruction, written, given, where)
            if unknown is not None:
                raise self.error(where, "columns that are known before", f"column {unknown}")
            written[list(instruction.targets)] = True
        written[list(given)] = True
        missing = np.flatnonzero(~written[self.first_aux :])
        if len(missing):
            raise self.error("program", "every aux column written", f"not column {self.first_aux + int(missing[0])}")

    def _first_unknown(
        self, instruction: Instruction, written: npt.NDArray[np.bool_], given: Set[int], where: str
    ) -> int | None:
        """A column that an instruction reads and nobody wrote before; ports count as known unless written later."""
        for literal in instruction.literals:
            if not 0 <= literal < 2 * self.n_columns or not self.bits[literal >> 1]:
                raise self.error(where, "literals of bit columns", literal)
        columns = [literal >> 1 for literal in instruction.literals]
        for row in instruction.rows:
            columns += self._columns_read(instruction, row, where)
        for column in columns:
            if column >= self.first_aux and not written[column] and column not in given:
                return column
        return None

    def _columns_read(self, instruction: Instruction, row: int, where: str) -> list[int]:
        if instruction.op is not Op.SOLVE:
            if not 0 <= row < self.program.combinations.n_rows:
                raise self.error(where, f"a row below {self.program.combinations.n_rows}", row)
            return columns_of(self.program.combinations, row)
        if not 0 <= row < self.n_rows:
            raise self.error(where, f"a constraint below {self.n_rows}", row)
        a, b, c = (columns_of(matrix, row) for matrix in (self.a, self.b, self.c))
        (target,) = instruction.targets
        if target in a or target in b or target not in c:
            raise self.error(where, f"column {target} in C and not in A and B of constraint {row}", "otherwise")
        return [*a, *b, *(column for column in c if column != target)]

    def _check_native(self) -> None:
        if self.native is None:
            return
        n = self.n_columns * (2 if self.native.parameters is None else 1)
        for name, operands in (("inputs", self.native.inputs), ("outputs", self.native.outputs)):
            if operands.dtype != np.int32 or operands.ndim != 1 or len(operands) == 0:
                raise self.error(f"native {name}", "one row of int32", operands.dtype)
            if operands.min() < 0 or operands.max() >= n:
                raise self.error(f"native {name}", f"operands below {n}", operands.max())


def columns_of(matrix: SparseMatrix, row: int) -> list[int]:
    """The columns of a row's entries."""
    columns: list[int] = matrix.column[int(matrix.row_start[row]) : int(matrix.row_start[row + 1])].tolist()
    return columns
