"""Constraint systems: what a whole circuit is recorded into.

Calls of gadgets become runs of templates. What is recorded between two calls becomes a template of its own, with one
instance; equal ones are kept once. Wires are counted in three ranges, private ones from 1, public ones and outputs from
far above, because how many of them there are is known at the end only: `finish` renames them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from snarkline.circuit import logic
from snarkline.circuit.batch import Batch
from snarkline.circuit.builder import Builder, Gadget, Returned
from snarkline.circuit.library import Library
from snarkline.circuit.merging import Instances, merged
from snarkline.circuit.recorder import ONE, Combination, Renaming
from snarkline.circuit.recording import Match, Pattern, Recording, match
from snarkline.circuit.slots import Shape, Slot, Slots, put_together
from snarkline.circuit.values import Bit, Num, Operand, combination
from snarkline.circuit.where import Lines
from snarkline.circuit.wiring import Ints, Wiring, after, beside, segments
from snarkline.curves.curve import Curve
from snarkline.curves.vector import FrVector
from snarkline.errors import CircuitError
from snarkline.r1cs.program import Op
from snarkline.r1cs.structured import Run, StructuredR1CS
from snarkline.r1cs.template import Template

PUBLIC = 1 << 40
OUTPUT = 1 << 41
MAX_WIRES = 1 << 32


@dataclass(frozen=True)
class Given:
    """A stretch of wires whose values are given with the inputs."""

    first: int
    count: int
    bits: bool


class ConstraintSystem(Builder):
    """A circuit while it is recorded: wires and constraints of its own, and calls of gadgets.

    `library` holds the templates of gadgets; one that is shared between circuits saves recording them again.
    """

    def __init__(self, curve: Curve, *, library: Library | None = None) -> None:
        super().__init__(curve, "", 0)
        self.library = library or Library(curve)
        if self.library.curve is not curve:
            raise CircuitError("", f"a library of templates over {self.library.curve.name} for {curve.name}")
        self._templates: list[Template] = []
        self._numbers: dict[object, int] = {}
        self._runs: list[Instances] = []
        self._firsts: list[int] = []
        self._all_given: list[Given] = []
        self._public_bits = bytearray(1)
        self._n_outputs = self._n_rows = 0
        self._recorded = ""  # the gadget that is being recorded, on a recorder of its own
        self.lines: Lines | None = None
        """Where to note which lines of the circuit's source rows come from."""

    # --- public wires ---------------------------------------------------------------------------

    @property
    def n_public(self) -> int:
        """How many public wires there are so far, outputs among them."""
        return len(self._public_bits) - 1 + self._n_outputs

    def public(self) -> Num:
        """A public number, given with the inputs."""
        return Num(self, {self.new_public(1): 1})

    def public_bit(self) -> Bit:
        """A public bit, given with the inputs, and the constraint that it is one."""
        column = self.new_public(1, bits=True)
        logic.constrain_bit(self, column)
        return Bit(self, 2 * column)

    def new_given(self, n: int = 1, *, bit: bool = False) -> int:
        first = super().new_given(n, bit=bit)
        self._add_given(Given(first, n, bit))
        return first

    def new_public(self, n: int, *, bits: bool = False) -> int:
        """The first of `n` public wires that are given."""
        first = PUBLIC + len(self._public_bits)
        self._public_bits.extend(bytes([bits]) * n)
        self._add_given(Given(first, n, bits))
        return first

    def row(self, a: Combination, b: Combination, c: Combination, broken: str = "") -> int:
        """See `Recorder.row`. A gadget that reaches for the circuit around it is refused: its template is recorded once
        and instanced many times, so the constraint would be missing in the others."""
        if self._recorded:
            raise CircuitError(self._recorded, "it constrains the circuit around it: use the cs that it is given")
        if self.lines is not None:
            self.lines.mark(self._n_rows + len(self._a))
        return super().row(a, b, c, broken)

    def inputize(self, value: Operand) -> Num:
        """A public wire that takes the value of a private number: wire * 1 = value."""
        terms, column = combination(self, value), self._new_computed_public()
        self.row({column: 1}, {ONE: 1}, terms)
        self.emit(Op.LINEAR, column, self.sum(terms))
        return Num(self, {column: 1})

    def expose(self, value: Operand) -> Num:
        """A public wire that takes the value of a combination: combination * 1 = wire."""
        terms, column = combination(self, value), self._new_computed_public()
        self.emit(Op.SOLVE, column, self.row(terms, {ONE: 1}, {column: 1}))
        return Num(self, {column: 1})

    def _new_computed_public(self) -> int:
        self._public_bits.append(False)
        return PUBLIC + len(self._public_bits) - 1

    def output(self, value: Operand) -> Num:
        """A public wire among the circuit's outputs, which stand before its inputs: value * 1 = wire."""
        terms = combination(self, value)
        self._n_outputs += 1
        column = OUTPUT + self._n_outputs
        row = self.row(terms, {ONE: 1}, {column: 1})
        self.emit(Op.SOLVE, column, row)
        return Num(self, {column: 1})

    def set_native(self, name: str, inputs: list[int], outputs: list[int], parameters: FrVector | None = None) -> None:
        """Nothing: what is recorded at the top level is no gadget's template."""

    def is_bit(self, column: int) -> bool:
        if column >= PUBLIC:
            return column < OUTPUT and bool(self._public_bits[column - PUBLIC])
        if column >= self._first or column == ONE:
            return super().is_bit(column)
        run = self._runs[bisect_right(self._firsts, column) - 1]
        template = self._templates[run.template]
        return bool(template.bits[template.first_aux + (column - run.first) % template.n_aux])

    # --- calls ----------------------------------------------------------------------------------

    def call(self, gadget: Gadget[Returned], *inputs: Any) -> Returned:
        slots = Slots()
        shape = slots.take_apart(self, inputs)
        out_shape, outputs = self._stretch(gadget, shape, Wiring.same(1, slots.slots))
        value: Returned = put_together(self, out_shape, iter(outputs.row(0)))
        return value

    def map(self, gadget: Gadget[Any], *inputs: Any) -> Batch:
        shape, wiring = self._inputs(inputs, self.common_length(inputs))
        stretches = [self._stretch(gadget, shape, wiring.part(*bounds)) for bounds in segments(wiring)]
        (out_shape, first), *rest = stretches
        if any(other != out_shape or part.constants != first.constants for other, part in rest):
            raise self.error(f"{gadget.name} returns values of other shapes, or other constants, for some instances")
        return Batch(self, out_shape, after([part for _, part in stretches]))

    def scan(self, gadget: Gadget[Any], carry: Any, *inputs: Any, count: int | None = None) -> Any:
        slots = Slots()
        carry_shape = slots.take_apart(self, carry)
        (_, *item_shapes), wiring = self._inputs(inputs, self.common_length(inputs, count))
        shape = ("tuple", carry_shape, *item_shapes)
        state, done = slots.slots, 0
        while done < wiring.count:
            full = self._steady(gadget, shape, state, wiring.part(done, wiring.count))
            out_shape, outputs = self._stretch(gadget, shape, full)
            if out_shape != carry_shape:
                raise self.error(f"{gadget.name} must return what it is to take next: the same kinds of values")
            done += full.count
            state = outputs.row(full.count - 1)
        return put_together(self, carry_shape, iter(state))

    def _inputs(self, inputs: tuple[Any, ...], count: int) -> tuple[Shape, Wiring]:
        """Batches, and values that are the same for all, as the slots of `count` instances."""
        shapes: list[Shape] = []
        parts = [Wiring.same(count, [])]
        for value in inputs:
            if isinstance(value, Batch):
                if value.cs is not self:
                    raise self.error("a batch of another constraint system is used here")
                shapes.append(value.shape)
                parts.append(value.wiring)
            else:
                slots = Slots()
                shapes.append(slots.take_apart(self, value))
                parts.append(Wiring.same(count, slots.slots))
        return ("tuple", *shapes), beside(parts)

    def _steady(self, gadget: Gadget[Any], shape: Shape, state: list[Slot], rest: Wiring) -> Wiring:
        """The inputs of as many instances of a chain as follow one another by arithmetic and have one pattern.

        The first of them has the carry `state`. They do if the inputs of the second differ from those of the first by
        what each later step adds too: the template's size for wires of the instance before, the same as a port for a
        port that is handed on, the stride of the batch for its values.
        """
        alone = beside([Wiring.same(1, state), rest.part(0, 1)])
        if rest.count == 1:
            return alone
        found = self._match(shape, alone)
        recording = self._recording(gadget, found.pattern)
        first = self._next  # of the instance's own wires: a call closes what is open
        n = len(state)
        returned = {place: slot for place, slot in recording.constants.items() if place < n}
        carried = Wiring(1, recording.wired(found.ports, first)[:n], np.zeros(n, np.int64), None, returned)
        following = beside([carried, rest.part(1, 2)])
        after_it = match(
            shape, following.base, following.constants, lambda wire: self._will_be_bit(wire, recording.template, first)
        )
        if after_it.pattern != found.pattern:
            return alone
        steps = after_it.ports - found.ports
        columns = np.array([max(slot, 0) >> 1 for slot in found.pattern.slots[:n]], dtype=np.int64)
        stride = np.append(0, steps)[columns]
        if (stride != recording.steps(steps)[:n])[columns > 0].any():
            return alone
        carry = Wiring(rest.count, alone.base[:n], stride, None, {k: v for k, v in alone.constants.items() if k < n})
        full = beside([carry, rest])
        return full.part(*segments(full)[0])

    def _match(self, shape: Shape, wiring: Wiring) -> Match:
        """The pattern of the first instance."""
        return match(shape, wiring.rows(0, 1)[0], wiring.constants, self.is_bit)

    def _will_be_bit(self, column: int, template: Template, first: int) -> bool:
        """Whether a column is a bit, once the instance of a template whose own columns begin at `first` is there."""
        is_own = first <= column < PUBLIC
        return bool(template.bits[template.first_aux + column - first]) if is_own else self.is_bit(column)

    # --- runs -----------------------------------------------------------------------------------

    def _recording(self, gadget: Gadget[Any], pattern: Pattern) -> Recording:
        """The recording of a gadget. Errors name the place of the call too."""
        checked = self.checked(gadget)
        self._recorded, before = checked.name, self._recorded
        try:
            return self.library.get(checked, pattern)
        except CircuitError as error:
            raise CircuitError(self._place(error.gadget), error.detail, error.line) from error.__cause__
        finally:
            self._recorded = before

    def _stretch(self, gadget: Gadget[Any], shape: Shape, wiring: Wiring) -> tuple[Shape, Wiring]:
        """Instances of one pattern: shape and slots of their outputs."""
        found = self._match(shape, wiring)
        recording = self._recording(gadget, found.pattern)
        template = recording.template
        # The slot in which a port appears first says how its wire moves on.
        base, stride = found.ports, wiring.stride[found.places]
        table = None if wiring.table is None else wiring.table[:, found.places] >> 1
        self._close_segment()
        first = self._next
        outputs = _output_wiring(recording, wiring.count, first, (base, stride, table))
        if template.n_aux or template.n_rows:
            number = self._numbers.setdefault(template, len(self._templates))
            if number == len(self._templates):
                self._templates.append(template)
            joins = len(recording.given) == 0
            run = Instances(number, wiring.count, first, base, stride, table, self.path, joins)
            self._add_instances(run, recording.given)
        return recording.shape, outputs

    def _add_instances(self, run: Instances, given: Ints) -> None:
        template = self._templates[run.template]
        if self.lines is not None and template.n_rows:
            self.lines.mark(self._n_rows)
        self._count_rows(run.count * template.n_rows, template.name)
        for i in range(1 if run.joins else run.count):
            one = run if run.joins else run.part(i, i + 1, template.n_aux)
            self._runs.append(one)
            self._firsts.append(one.first)
            for offset in given.tolist():
                self._add_given(Given(one.first + offset, 1, bool(template.bits[template.first_aux + offset])))
        self._next += run.count * template.n_aux
        self._clear()
        if self._next + self.n_public >= MAX_WIRES:
            raise self.error(f"more than {MAX_WIRES} wires")

    def _close_segment(self) -> None:
        """Makes a template, with one instance, of what was recorded since the last call."""
        if self._next == self._first and len(self._a) == 0 and self.position() == 0:
            return
        ports = self._foreign_columns()
        template = self._close(Renaming(ports, self._first))
        number = self._numbers.setdefault(_content(template), len(self._templates))
        if number == len(self._templates):
            self._templates.append(template)
        self._count_rows(template.n_rows, "")
        base = np.array(ports, dtype=np.int64)
        self._runs.append(Instances(number, 1, self._first, base, np.zeros_like(base), None, "", joins=False))
        self._firsts.append(self._first)
        self._clear()

    def _count_rows(self, n: int, name: str) -> None:
        self._n_rows += n
        limit = 1 << self.curve.two_adicity - 1
        if self._n_rows + self.n_public + 1 > limit:
            raise CircuitError(
                self._place(name),
                f"{self._n_rows} constraints and {self.n_public} public wires; the scalar field of {self.curve.name} "
                f"has evaluation domains up to 2^{self.curve.two_adicity - 1}",
            )

    def _place(self, name: str) -> str:
        """The path of something within the gadget that is being recorded."""
        return "/".join(filter(None, (self.path, name)))

    def _add_given(self, given: Given) -> None:
        last = self._all_given[-1] if self._all_given else None
        if last is not None and last.bits == given.bits and last.first + last.count == given.first:
            self._all_given[-1] = Given(last.first, last.count + given.count, given.bits)
        else:
            self._all_given.append(given)

    # --- the end --------------------------------------------------------------------------------

    def finish(self) -> StructuredR1CS:
        """The constraint system that was recorded."""
        self._close_segment()
        n_public = self.n_public
        runs: list[Run] = []
        row = 0
        for run in merged(self._runs, self._templates):
            table = run.table
            base = self._wires(run.base)
            runs.append(
                Run(
                    template=run.template,
                    count=run.count,
                    first_row=row,
                    first_wire=n_public + run.first,
                    base=base if table is None else base[:0],
                    stride=run.stride if table is None else base[:0],
                    table=None if table is None else self._wires(table).astype(np.uint32),
                    path=run.path,
                )
            )
            row += run.count * self._templates[run.template].n_rows
        given = [np.arange(part.count, dtype=np.int64) + part.first for part in self._all_given]
        bits = [np.full(part.count, part.bits) for part in self._all_given]
        return StructuredR1CS(
            curve=self.curve,
            n_wires=n_public + self._next,
            n_public=n_public,
            n_outputs=self._n_outputs,
            templates=tuple(self._templates),
            runs=tuple(runs),
            given=self._wires(np.concatenate([np.empty(0, np.int64), *given])).astype(np.uint32),
            bits=np.concatenate([np.empty(0, np.bool_), *bits]),
        )

    def _wires(self, columns: Ints) -> Ints:
        """The final numbers of wires: 1, then outputs, other public wires, private ones."""
        inputs = np.where(columns >= PUBLIC, columns - PUBLIC + self._n_outputs, columns + self.n_public)
        return np.where(columns >= OUTPUT, columns - OUTPUT, inputs)


def _output_wiring(recording: Recording, count: int, first: int, ports: tuple[Ints, Ints, Ints | None]) -> Wiring:
    """The slots that the instances of a run return, for base, stride and table of its ports."""
    base, stride, table = ports
    wiring = Wiring(count, recording.wired(base, first), recording.steps(stride), None, recording.constants)
    if table is None:
        return wiring
    rows = wiring.rows().copy()
    for j, slot in enumerate(recording.outputs):
        if 1 <= slot >> 1 <= recording.template.n_ports:
            rows[:, j] = 2 * table[:, (slot >> 1) - 1] | slot & 1
    return Wiring.of_rows(rows, recording.constants)


def _content(template: Template) -> tuple[object, ...]:
    """What makes two templates of the top level the same one."""
    arrays = [template.bits, template.program.code]
    for matrix in (template.a, template.b, template.c, template.program.combinations):
        arrays += [matrix.row_start, matrix.column, matrix.value, matrix.coefficients.limbs]
    return (template.n_ports, template.paths, template.names, template.broken, *(array.tobytes() for array in arrays))
