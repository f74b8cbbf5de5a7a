"""Hand-made templates and systems for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import Op, Program
from snarkline.r1cs.structured import Run, StructuredR1CS
from snarkline.r1cs.template import Native, Template

Row = dict[int, int]


def sparse(curve: Curve, n_columns: int, rows: Sequence[Row]) -> SparseMatrix:
    """Rows as {column: coefficient}."""
    distinct = sorted({value % curve.r for row in rows for value in row.values()})
    number = {value: i for i, value in enumerate(distinct)}
    return SparseMatrix(
        n_columns,
        np.cumsum([0, *map(len, rows)], dtype=np.uint64),
        np.array([column for row in rows for column in row], dtype=np.uint32),
        np.array([number[value % curve.r] for row in rows for value in row.values()], dtype=np.uint32),
        FrVector.from_ints(curve, distinct, Form.MONTGOMERY),
    )


@dataclass
class Recorder:
    """Writes down a template: columns, constraints and the program."""

    curve: Curve
    port_bits: Sequence[bool]
    rows: list[tuple[Row, Row, Row]] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    combinations: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bits = [True, *self.port_bits]

    def aux(self, *, bit: bool) -> int:
        self.bits.append(bit)
        return len(self.bits) - 1

    def emit(self, op: Op, *operands: int) -> None:
        self.code += [op, *operands]

    def combination(self, row: Row) -> int:
        self.combinations.append(row)
        return len(self.combinations) - 1

    def enforce(self, a: Row, b: Row, c: Row) -> int:
        self.rows.append((a, b, c))
        return len(self.rows) - 1

    def xor(self, a: int, b: int) -> int:
        """The column of the exclusive or of two literals: 2ab = a + b - d over the literals."""
        d = self.aux(bit=True)
        self.enforce(lc((a, 2)), lc((b, 1)), lc((a, 1), (b, 1), (2 * d, -1)))
        self.emit(Op.XOR, d, a, b)
        return d

    def product(self, a: Row, b: Row) -> int:
        """The column of the product of two combinations."""
        d = self.aux(bit=False)
        self.emit(Op.SOLVE, d, self.enforce(a, b, {d: 1}))
        return d

    def template(self, name: str, *, native: Native | None = None, paths: tuple[tuple[int, str], ...] = ()) -> Template:
        n = len(self.bits)
        a, b, c = (sparse(self.curve, n, [row[side] for row in self.rows]) for side in range(3))
        program = Program(np.array(self.code, dtype=np.int32), sparse(self.curve, n, self.combinations))
        n_ports = len(self.port_bits)
        return Template(name, n_ports, n - 1 - n_ports, a, b, c, np.array(self.bits), program, native, paths)


def lc(*terms: tuple[int, int]) -> Row:
    """A combination of pairs (literal, coefficient); a negated bit x is 1 - x."""
    row: Row = {}
    for literal, k in terms:
        if literal & 1:
            row[0] = row.get(0, 0) + k
        row[literal >> 1] = row.get(literal >> 1, 0) + (-k if literal & 1 else k)
    return {column: k for column, k in row.items() if k}


Wiring = tuple[Template, int, Sequence[int], Sequence[int]] | tuple[Template, int, np.ndarray, None]


def system(
    curve: Curve, n_public: int, runs: Sequence[Wiring], given: Sequence[int], bits: Sequence[bool], n_outputs: int = 0
) -> StructuredR1CS:
    """Runs as (template, count, base, stride) or (template, count, table, None), one after the other."""
    templates: list[Template] = []
    made, row, wire = [], 0, n_public + 1
    for template, count, base, stride in runs:
        if template not in templates:
            templates.append(template)
        none = np.zeros(0, np.int64)
        table = None if stride is not None else np.asarray(base, dtype=np.uint32)
        wiring = (none, none) if stride is None else (np.array(base, np.int64), np.array(stride, np.int64))
        made.append(Run(templates.index(template), count, row, wire, *wiring, table))
        row, wire = row + count * template.n_rows, wire + count * template.n_aux
    return StructuredR1CS(
        curve,
        wire,
        n_public,
        n_outputs,
        tuple(templates),
        tuple(made),
        np.array(given, np.uint32),
        np.array(bits, np.bool_),
    )
