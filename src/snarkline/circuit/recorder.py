"""The recorder: columns, rows and witness program of one template while a gadget runs.

A *column* is a wire as the recorder counts them: 0 is the constant 1, then come the ports (wires of the outside), then
the template's own wires in the order in which they were allocated. A *literal* is a bit: 2 * column + negated, so that
0 is true, 1 is false and `literal ^ 1` is the negation. A *combination* is a dict from columns to coefficients.

The numbers that a recorder's `_new` hands out only have to ascend; `system.py` counts through a whole circuit with
them, and maps them to columns when a template is closed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import CircuitError
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import Op, Program
from snarkline.r1cs.template import Native, Template

Literal = int
Combination = dict[int, int]

ONE = 0
TRUE: Literal = 0
FALSE: Literal = 1
MAX_COLUMNS = 1 << 30
"""A literal of a template is 31 bits."""

# How the operands of an instruction are to be read: d a column, l a literal, r a row.
SHAPES = {
    Op.XOR: "dll", Op.AND: "dll", Op.CH: "dlll", Op.MAJ: "dlll", Op.COPY: "dl", Op.SOLVE: "dr", Op.LINEAR: "dr",
    Op.INVERSE: "dr", Op.IS_ZERO: "dr", Op.DIVIDE: "drr",
}  # fmt: skip


class Rows:
    """Sparse rows under construction; their coefficients are numbered in a dict that several of them share."""

    def __init__(self, coefficients: dict[int, int]) -> None:
        self._coefficients = coefficients
        self._starts = array("q", [0])
        self._columns = array("q")
        self._values = array("I")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, combination: Combination, r: int) -> None:
        """One more row. Coefficients are taken modulo r, those that are 0 are left out."""
        numbers = self._coefficients
        for column in sorted(combination):
            coefficient = combination[column] % r
            if coefficient:
                self._columns.append(column)
                self._values.append(numbers.setdefault(coefficient, len(numbers)))
        self._starts.append(len(self._columns))

    def columns(self) -> npt.NDArray[np.int64]:
        """The columns of all entries."""
        return np.frombuffer(self._columns, dtype=np.int64) if self._columns else np.empty(0, np.int64)

    def matrix(self, columns: npt.NDArray[np.int64], n_columns: int, coefficients: FrVector) -> SparseMatrix:
        """The matrix, its entries renamed to `columns` and sorted by them within their rows."""
        starts = np.frombuffer(self._starts, dtype=np.int64)
        values = np.frombuffer(self._values, dtype=np.uint32) if self._values else np.empty(0, np.uint32)
        order = np.lexsort((columns, np.repeat(np.arange(len(self)), np.diff(starts))))
        return SparseMatrix(
            n_columns=n_columns,
            row_start=starts.astype(np.uint64),
            column=columns[order].astype(np.uint32),
            value=values[order],
            coefficients=coefficients,
        )


class Recorder:
    """What a gadget records into: allocation, constraints and the instructions that compute what was allocated."""

    def __init__(self, curve: Curve, name: str, n_ports: int, bit_ports: frozenset[int] = frozenset()) -> None:
        self.curve = curve
        self.r = curve.r
        self.name = name
        self.n_ports = n_ports
        self._scope: list[str] = []
        self.depth = 0  # of gadgets that are called in one another
        self._next = 1 + n_ports
        self._bit_ports = bit_ports
        self._clear()

    def _clear(self) -> None:
        """Begin a template with the next column."""
        self._first = self._next
        self._coefficients: dict[int, int] = {}
        self._a, self._b, self._c, self._sums = (Rows(self._coefficients) for _ in range(4))
        self._program: list[tuple[int, ...]] = []
        self._own_bits = bytearray()
        self._given: list[range] = []
        self._names: dict[int, str] = {}
        self._paths: list[tuple[int, str]] = []
        self._broken: list[tuple[int, str]] = []
        self._native: Native | None = None

    # --- where ----------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The path of the gadget that is being recorded."""
        return "/".join([self.name, *self._scope] if self.name else self._scope)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """What is recorded in the block belongs to `name`, in profiles and messages."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def error(self, detail: str) -> CircuitError:
        """An error about what is being recorded."""
        return CircuitError(self.path, detail)

    # --- columns and rows -----------------------------------------------------------------------

    def new(self, *, bit: bool = False) -> int:
        """A new column, which an instruction must compute. `bit`: the constraints make it 0 or 1."""
        column = self._next
        self._next += 1
        self._own_bits.append(bit)
        return column

    def new_given(self, n: int = 1, *, bit: bool = False) -> int:
        """The first of `n` new columns whose values are given with the inputs."""
        column = self._next
        self._next += n
        self._own_bits.extend(bytes([bit]) * n)
        self._given.append(range(column, column + n))
        return column

    def is_bit(self, column: int) -> bool:
        """Whether the column is known to be 0 or 1."""
        if column >= self._first:
            return bool(self._own_bits[column - self._first])
        return column == ONE or column in self._bit_ports

    def row(self, a: Combination, b: Combination, c: Combination, broken: str = "") -> int:
        """The constraint <a, w> * <b, w> = <c, w>; its number in the template.

        `broken` says what a witness that violates it gets wrong, where that can be told.
        """
        number, path = len(self._a), "/".join(self._scope)
        if not self._paths or self._paths[-1][1] != path:
            self._paths.append((number, path))
        if broken:
            self._broken.append((number, broken))
        self._a.append(a, self.r)
        self._b.append(b, self.r)
        self._c.append(c, self.r)
        return number

    def emit(self, op: Op, *arguments: int) -> None:
        """An instruction of the witness program."""
        self._program.append((op, *arguments))

    def position(self) -> int:
        """The place of the next instruction, for `emit_at`."""
        return len(self._program)

    def emit_at(self, position: int, op: Op, *arguments: int) -> None:
        """An instruction before those that were emitted since `position` was taken."""
        self._program.insert(position, (op, *arguments))

    def sum(self, combination: Combination) -> int:
        """The number of a linear combination for the witness program."""
        self._sums.append(combination, self.r)
        return len(self._sums) - 1

    def is_own(self, column: int) -> bool:
        """Whether the column was allocated since the template began."""
        return self._first <= column < self._next

    def name_column(self, column: int, name: str) -> None:
        """The name of a wire, for .sym files."""
        self._names[column] = name

    def set_native(self, name: str, inputs: list[int], outputs: list[int], parameters: FrVector | None = None) -> None:
        """Names the implementation that computes `outputs` from `inputs` without running the program.

        It has a meaning only for a gadget that is a template of its own: within another it is ignored.
        """
        if not self._scope:
            self._native = Native(name, np.array(inputs, np.int32), np.array(outputs, np.int32), parameters)

    # --- closing --------------------------------------------------------------------------------

    def n_own(self) -> int:
        """How many columns the template has allocated so far."""
        return self._next - self._first

    def template(self) -> Template:
        """The template that was recorded. Raises CircuitError if a wire is neither given nor computed."""
        return self._close(Renaming(range(1, 1 + self.n_ports), 1 + self.n_ports))

    def _close(self, renaming: Renaming) -> Template:
        n_ports, n_own = renaming.n_ports, self.n_own()
        n_columns = 1 + n_ports + n_own
        if n_columns > MAX_COLUMNS:
            raise self.error(f"a template has at most {MAX_COLUMNS} columns, this one has {n_columns}")
        coefficients = FrVector.from_ints(self.curve, self._coefficients, Form.MONTGOMERY)
        a, b, c, sums = (
            rows.matrix(renaming.columns(rows.columns()), n_columns, coefficients)
            for rows in (self._a, self._b, self._c, self._sums)
        )
        code, written = _encode(self._program, renaming)
        known = np.zeros(n_columns, dtype=np.bool_)
        known[list(written)] = True
        for columns in self._given:
            known[renaming.column(columns.start) :][: len(columns)] = True
        missing = n_own - int(known[1 + n_ports :].sum())
        if missing:
            raise self.error(f"{missing} of its wires are allocated but neither given nor computed")
        bits = np.concatenate([[True], [self.is_bit(port) for port in renaming.ports], self._own_bits]).astype(np.bool_)
        names = tuple(self._names.get(self._first + i, "") for i in range(n_own)) if self._names else ()
        return Template(
            name=self.name,
            n_ports=n_ports,
            n_aux=n_own,
            a=a,
            b=b,
            c=c,
            bits=bits,
            program=Program(np.array(code, dtype=np.int32), sums),
            native=self._native,
            paths=tuple(self._paths),
            broken=tuple(self._broken),
            names=names,
        )

    def given_offsets(self) -> npt.NDArray[np.int64]:
        """The columns whose values are given, as offsets among the template's own."""
        ranges = [np.arange(columns.start, columns.stop, dtype=np.int64) for columns in self._given]
        return np.concatenate([np.empty(0, np.int64), *ranges]) - self._first

    def _foreign_columns(self) -> list[int]:
        """The columns of earlier templates that this one reads or computes, in ascending order."""
        arrays = [np.unique(rows.columns()) for rows in (self._a, self._b, self._c, self._sums)]
        numbers = {number for numbers in arrays for number in numbers.tolist()}
        numbers.update(_columns(self._program))
        own = range(self._first, self._next)
        return sorted(number for number in numbers if number != ONE and number not in own)


class Renaming:
    """From the recorder's numbers to columns: ports first, which ascend, then the template's own."""

    def __init__(self, ports: Sequence[int], first: int) -> None:
        self.ports = ports
        self.n_ports = len(ports)
        self._shift = 1 + len(ports) - first
        self._same = isinstance(ports, range) and self._shift == 0
        self._port_columns = {} if self._same else {port: i + 1 for i, port in enumerate(ports)}

    def column(self, number: int) -> int:
        """The column of a number."""
        if self._same or number == ONE:
            return number
        column = self._port_columns.get(number)
        return number + self._shift if column is None else column

    def columns(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The columns of many numbers."""
        if self._same:
            return numbers
        ports = np.array(self.ports, dtype=np.int64)
        places = np.searchsorted(ports, numbers)
        are_ports = np.append(ports, -1)[places] == numbers
        return np.where(numbers == ONE, ONE, np.where(are_ports, 1 + places, numbers + self._shift))

    def literal(self, literal: Literal) -> Literal:
        """The literal of a column, from that of a number."""
        return literal if self._same else 2 * self.column(literal >> 1) | literal & 1


def _operands(instruction: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """The operands of an instruction, and a letter for each that says how it is to be read; - is a plain number."""
    op, operands = Op(instruction[0]), instruction[1:]
    if op is Op.ADD:
        n, k, m = operands[:3]
        return "---" + "d" * n + "l" * (k * m), operands
    return ("-r" + "d" * operands[0] if op is Op.BITS else SHAPES[op]), operands


def _encode(program: list[tuple[int, ...]], renaming: Renaming) -> tuple[list[int], set[int]]:
    """The instructions as one list of numbers, and the columns that they compute."""
    code: list[int] = []
    written: set[int] = set()
    for instruction in program:
        code.append(instruction[0])
        for kind, operand in zip(*_operands(instruction), strict=True):
            if kind == "d":
                column = renaming.column(operand)
                written.add(column)
                code.append(column)
            else:
                code.append(renaming.literal(operand) if kind == "l" else operand)
    return code, written


def _columns(program: list[tuple[int, ...]]) -> set[int]:
    """The columns that instructions compute, and those of the literals that they read."""
    columns: set[int] = set()
    for instruction in program:
        for kind, operand in zip(*_operands(instruction), strict=True):
            if kind == "d":
                columns.add(operand)
            elif kind == "l":
                columns.add(operand >> 1)
    return columns
