"""Structured constraint systems: templates, and runs of their instances, in place of rows written out one by one.

Constraints are numbered in the order of runs, then instances, then template rows. Wire 0 is the constant 1, wires 1 to
n_public are public, then come the aux wires of the runs in order, instance by instance.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.native import core
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix
from snarkline.r1cs.template import Template

Wires = npt.NDArray[np.int64]
BLOCK_ENTRIES = 1 << 20
Block = tuple[SparseMatrix, SparseMatrix, SparseMatrix]


@dataclass(frozen=True, eq=False)
class Run:
    """`count` instances of a template.

    The wire of aux column k (from 0) of instance i is first_wire + i * n_aux + k. The wire of port j in instance i is
    base[j] + i * stride[j], or table[i, j] where the wiring is not arithmetic; base and stride are then empty. `path`
    is the gadget path of the place where the template is used.
    """

    template: int
    count: int
    first_row: int
    first_wire: int
    base: Wires
    stride: Wires
    table: npt.NDArray[np.uint32] | None = None
    path: str = ""

    @property
    def nbytes(self) -> int:
        return self.base.nbytes + self.stride.nbytes + (0 if self.table is None else self.table.nbytes)

    def ports(self, start: int, stop: int) -> Wires:
        """The wires of the ports of instances [start, stop), one row an instance."""
        if self.table is not None:
            return self.table[start:stop].astype(np.int64)
        return self.base + np.arange(start, stop, dtype=np.int64)[:, None] * self.stride


class Place(NamedTuple):
    """Where a constraint stands: run, instance, row of the template, and the gadget path."""

    run: int
    instance: int
    row: int
    path: str


@dataclass(frozen=True, eq=False)
class StructuredR1CS:
    """A constraint system as templates and runs.

    `given` are the wires whose values the caller gives, in the order of the circuit's inputs, and `bits` says which of
    them are bits. `n_outputs` of the public wires are outputs (circom's distinction).
    """

    curve: Curve
    n_wires: int
    n_public: int
    n_outputs: int
    templates: tuple[Template, ...]
    runs: tuple[Run, ...]
    given: npt.NDArray[np.uint32]
    bits: npt.NDArray[np.bool_]

    @property
    def path(self) -> None:
        """The file that the system comes from: none."""
        return None

    @property
    def n_constraints(self) -> int:
        if not self.runs:
            return 0
        last = self.runs[-1]
        return last.first_row + last.count * self.templates[last.template].n_rows

    @property
    def nbytes(self) -> int:
        """Bytes of the structure."""
        structure = sum(template.nbytes for template in self.templates) + sum(run.nbytes for run in self.runs)
        return structure + self.given.nbytes + self.bits.nbytes

    def check(self) -> None:
        """Check every invariant. Raises FormatError or MismatchError naming template, run and row."""
        from snarkline.r1cs.structured_check import check_system  # it reads this module's types

        check_system(self)

    @cached_property
    def native(self) -> core.StructuredSystem:
        """The system as the compiled core executes it. It is checked first: raises like `check`."""
        from snarkline.r1cs.structured_native import compile_system  # it reads this module's types

        return compile_system(self)

    def template_of(self, run: Run) -> Template:
        return self.templates[run.template]

    def find(self, row: int) -> Place:
        """The place of a constraint in [0, n_constraints)."""
        number = bisect_right(self._first_rows, row) - 1
        run = self.runs[number]
        instance, local = divmod(row - run.first_row, self.template_of(run).n_rows)
        path = "/".join(part for part in (run.path, self.template_of(run).path(local)) if part)
        return Place(number, instance, local, path)

    def reads(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """For each wire in [start, stop) whether a constraint reads it."""
        found = np.zeros(stop - start, np.bool_)
        columns = [np.unique(np.concatenate([t.a.column, t.b.column, t.c.column])) for t in self.templates]
        for run in self.runs:
            template, used = self.template_of(run), columns[run.template]
            if template.n_rows == 0:
                continue
            step = max(1, BLOCK_ENTRIES // max(1, len(used)))
            for first in range(0, run.count, step):
                wires = _wires(run, template, used, first, min(first + step, run.count))
                found[wires[(wires >= start) & (wires < stop)] - start] = True
        return found

    def wire_path(self, wire: int) -> str:
        """What a wire is called: its gadget path and name, or its number within the template."""
        if wire <= self.n_public:
            return str(wire)
        run = self.runs[bisect_right([run.first_wire for run in self.runs], wire) - 1]
        template = self.template_of(run)
        instance, aux = divmod(wire - run.first_wire, template.n_aux)
        name = (template.names and template.names[aux]) or f"aux {aux}"
        return f"{template.name}[{instance}]/{name}" if run.count > 1 else f"{template.name}/{name}"

    def flatten(self) -> R1CS:
        """All constraints written out."""
        a, b, c = self.rows(0, self.n_constraints)
        return R1CS(self.curve, self.n_wires, self.n_public, self.n_outputs, Matrices(a, b, c))

    def rows(self, start: int, stop: int) -> Block:
        """Constraints [start, stop) as rows of A, B and C over the wires. Memory is in proportion to their number."""
        pieces = list(self._pieces(start, stop))
        a, b, c = (self._side(side, pieces) for side in range(3))
        return a, b, c

    def _side(self, side: int, pieces: list[_Piece]) -> SparseMatrix:
        coefficients, numbers = self._coefficients[side]
        sizes, columns, values = [np.zeros(1, np.uint64)], [], []
        for piece in pieces:
            run, template = self.runs[piece.run], self.template_of(self.runs[piece.run])
            matrix = (template.a, template.b, template.c)[side]
            starts = matrix.row_start[piece.row_start : piece.row_stop + 1]
            entries = slice(int(starts[0]), int(starts[-1]))
            count = piece.stop - piece.start
            sizes.append(np.tile(np.diff(starts), count))
            columns.append(_wires(run, template, matrix.column[entries], piece.start, piece.stop))
            values.append(np.tile(numbers[run.template][matrix.value[entries]], count))
        return SparseMatrix(
            self.n_wires,
            np.cumsum(np.concatenate(sizes), dtype=np.uint64),
            np.concatenate(columns) if columns else np.zeros(0, np.uint32),
            np.concatenate(values) if values else np.zeros(0, np.uint32),
            coefficients,
        )

    def _pieces(self, start: int, stop: int) -> Iterator[_Piece]:
        """Constraints [start, stop) as blocks of instances by template rows: whole instances in the middle."""
        for number, run in enumerate(self.runs):
            n_rows = self.template_of(run).n_rows
            low, high = max(0, start - run.first_row), min(run.count * n_rows, stop - run.first_row)
            if low >= high:
                continue
            first, last = -(-low // n_rows), high // n_rows
            if first > last:  # within one instance
                yield _Piece(number, last, last + 1, low - last * n_rows, high - last * n_rows)
                continue
            if low < first * n_rows:
                yield _Piece(number, first - 1, first, low - (first - 1) * n_rows, n_rows)
            if first < last:
                yield _Piece(number, first, last, 0, n_rows)
            if last * n_rows < high:
                yield _Piece(number, last, last + 1, 0, high - last * n_rows)

    @cached_property
    def _first_rows(self) -> list[int]:
        return [run.first_row for run in self.runs]

    @cached_property
    def _coefficients(self) -> list[tuple[FrVector, list[npt.NDArray[np.uint32]]]]:
        """For A, B and C: the distinct coefficients of all templates, and where each template's stand among them."""
        merged = []
        for side in "abc":
            tables = [getattr(template, side).coefficients.limbs for template in self.templates]
            distinct, numbers = _distinct(tables, self.curve)
            merged.append((FrVector(self.curve, distinct, Form.MONTGOMERY), numbers))
        return merged


class _Piece(NamedTuple):
    """Rows [row_start, row_stop) of the template in instances [start, stop) of a run."""

    run: int
    start: int
    stop: int
    row_start: int
    row_stop: int


def _wires(
    run: Run, template: Template, columns: npt.NDArray[np.uint32], start: int, stop: int
) -> npt.NDArray[np.uint32]:
    """The wires of columns in instances [start, stop), instance after instance."""
    instances = np.arange(start, stop, dtype=np.int64)
    local = columns.astype(np.int64)
    out = (run.first_wire + instances * template.n_aux)[:, None] + (local - template.first_aux)
    inside = np.flatnonzero((local > 0) & (local < template.first_aux))
    if len(inside):
        out[:, inside] = run.ports(start, stop)[:, local[inside] - 1]
    out[:, local == 0] = 0
    return out.astype(np.uint32).reshape(-1)


def _distinct(tables: list[Limbs], curve: Curve) -> tuple[Limbs, list[npt.NDArray[np.uint32]]]:
    rows = np.concatenate(tables) if tables else np.zeros((0, curve.fr_limbs), np.uint64)
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return distinct, np.split(inverse.reshape(-1).astype(np.uint32), ends) if tables else []
