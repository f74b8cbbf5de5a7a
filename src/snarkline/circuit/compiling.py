"""Circuits as functions: `@circuit def f(cs, x: Private[Num], ...)`, compiled for a curve and sizes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snarkline.circuit import logic
from snarkline.circuit.batch import Batch
from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.pack import unpack
from snarkline.circuit.library import Library
from snarkline.circuit.recording import gadget
from snarkline.circuit.schema import Field, Schema
from snarkline.circuit.slots import WORDS, Shape, n_slots
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.types import Input, element, resolve, resolve_size
from snarkline.circuit.values import Bit, Bits, Num
from snarkline.circuit.where import Lines, located
from snarkline.circuit.wiring import Wiring
from snarkline.circuit.words import UInt8, Word
from snarkline.curves.curve import BN254, CURVES, Curve
from snarkline.curves.vector import FrVector
from snarkline.errors import CircuitError, CircuitWarning, UnsatisfiedError
from snarkline.r1cs.check import Violation
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.trace import span

MAX_SHOWN = 8
SMALL = 1 << 64


@dataclass(frozen=True, eq=False)
class CompiledCircuit:
    """A constraint system, its inputs, and the names of its outputs, which are public wires 1, 2, ..."""

    name: str
    r1cs: StructuredR1CS
    schema: Schema
    outputs: tuple[str, ...]
    lines: Lines = field(default_factory=Lines)
    """The lines of the circuit's source that constraints come from."""

    @property
    def curve(self) -> Curve:
        return self.r1cs.curve

    def given(self, inputs: Mapping[str, Any], source: str | None = None) -> FrVector:
        """The values of the wires that are given; `Schema.encode` says what values may be. Raises FormatError."""
        return self.schema.encode(inputs, source)

    def assign(
        self, inputs: Mapping[str, Any], source: str | None = None, *, threads: int | None = None
    ) -> StructuredWitness:
        """The values of all wires for the values of the inputs, bits packed. Raises FormatError."""
        return self.values(inputs, source).run(threads=threads)

    def values(self, inputs: Mapping[str, Any], source: str | None = None) -> GivenValues:
        """The values of the inputs, for `Prover.prove`, which computes all others: on a GPU where that is faster.
        Raises FormatError."""
        return GivenValues(self.r1cs, self.given(inputs, source))

    def witness(self, inputs: Mapping[str, Any], source: str | None = None, *, threads: int | None = None) -> Witness:
        """The same, one field element a wire."""
        return self.assign(inputs, source, threads=threads).expand(threads=threads)

    def input_names(self) -> dict[int, str]:
        """The names of the wires that are outputs and inputs."""
        names = {i + 1: name for i, name in enumerate(self.outputs)}
        names.update(zip(self.r1cs.given.tolist(), self.schema.wire_names(), strict=False))
        return names

    def symbols(self) -> Iterator[tuple[int, str]]:
        """Every wire but 0 with a name, in order: that of an input or output, else its gadget path and number."""
        names = self.input_names()
        yield from ((wire, names.get(wire, f"public[{wire}]")) for wire in range(1, self.r1cs.n_public + 1))
        for run in self.r1cs.runs:
            template = self.r1cs.template_of(run)
            path = ".".join(part.replace("/", ".") for part in (run.path, template.name) if part)
            own = [name or f"aux[{k}]" for k, name in enumerate(template.names or [""] * template.n_aux)]
            for i in range(run.count):
                prefix = f"{path}[{i}]." if run.count > 1 else f"{path}." if path else ""
                first = run.first_wire + i * template.n_aux
                for k in range(template.n_aux):
                    yield first + k, names.get(first + k) or prefix + own[k]

    def explain(self, violation: Violation, *, values: Mapping[int, int] | None = None) -> UnsatisfiedError:
        """The error for a violated constraint: its gadget path, its wires by name.

        It shows the three sides and the wires' values only if `values`, of the wires that it reads, are handed in:
        they are secret.
        """
        names = self.input_names()
        place = self.r1cs.find(violation.constraint)
        shown = [names.get(wire) or self.r1cs.wire_path(wire) for wire in violation.wires[:MAX_SHOWN] if wire]
        more = ", ..." if len(violation.wires) > MAX_SHOWN else ""
        line = self.lines.at(violation.constraint)
        template = self.r1cs.template_of(self.r1cs.runs[place.run])
        broken = dict(template.broken).get(place.row)
        detail = f"in {place.path or 'the top level'} (row {place.row}, instance {place.instance})"
        detail += (f", {line}" if line else "") + (f": {broken}" if broken else "")
        detail += f": <A, w> * <B, w> is not <C, w>, on {', '.join(shown) or 'no wires'}{more}"
        if values is not None:
            a, b, c = (_signed(value, self.curve.r) for value in (violation.a, violation.b, violation.c))
            detail += f"; {a} * {b} is not {c}"
            pairs = zip((wire for wire in violation.wires if wire), shown, strict=False)
            detail += "".join(f"; {name} = {_signed(values[wire], self.curve.r)}" for wire, name in pairs)
        return UnsatisfiedError(violation.constraint, detail)


def _signed(value: int, r: int) -> int:
    """A value in [0, r), those just below r as the small negative numbers that they stand for."""
    return value - r if r - value < SMALL else value


class Circuit:
    """A function `f(cs, inputs..., parameters...)` that records a circuit.

    Arguments annotated with `Public[...]` or `Private[...]` are inputs; others are whole numbers, the circuit's
    parameters, which sizes may refer to. What it returns becomes public outputs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.inputs, self.parameters = _read_signature(function)

    @span("compile circuit")
    def compile(self, curve: Curve | str = BN254, *, library: Library | None = None, **sizes: int) -> CompiledCircuit:
        """The circuit's constraint system over a curve, with its parameters' values.

        `library` holds templates of gadgets that were recorded before. Raises CircuitError for what cannot be recorded:
        parameters that are missing or unknown, and everything that the gadgets refuse.
        """
        curve = _curve(curve)
        values = self._parameter_values(sizes)
        cs = ConstraintSystem(curve, library=library)
        cs.lines = Lines()
        fields: list[Field] = []
        arguments: dict[str, Any] = {}
        for name, type_ in self.inputs.items():
            input_, arguments[name] = _allocate(cs, name, type_, values)
            fields.append(input_)
        try:
            with located(lambda: ""):
                result = self.function(cs, **arguments, **values)
                outputs = tuple(_outputs(cs, "out", result))
        except CircuitError as error:
            path = "/".join(filter(None, (self.name, error.gadget)))
            raise CircuitError(path, error.detail, error.line) from error.__cause__
        except SystemExit:
            raise CircuitError(self.name, "it ends the program (sys.exit) while it is recorded") from None
        compiled = CompiledCircuit(self.name, cs.finish(), Schema(curve, tuple(fields)), outputs, cs.lines)
        _warn_of_unused(compiled)
        return compiled

    def _parameter_values(self, sizes: Mapping[str, int]) -> dict[str, int]:
        for name, size in sizes.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise CircuitError(self.name, f"it has no parameter {name} (its parameters: {known})")
            if not isinstance(size, int) or isinstance(size, bool):
                raise CircuitError(self.name, f"parameter {name} is a whole number; found {type(size).__name__}")
        values = {name: sizes.get(name, default) for name, default in self.parameters.items()}
        for name, value in values.items():
            if value is None:
                raise CircuitError(self.name, f"parameter {name} has no value")
        return {name: value for name, value in values.items() if value is not None}


def _warn_of_unused(compiled: CompiledCircuit) -> None:
    """Warns of private numbers that no constraint reads: provers may give them any value.

    Bits and words are not looked at, since the constraints that keep them in range read them.
    """
    given, start = compiled.r1cs.given, 0
    unused: list[str] = []
    for one in compiled.schema.fields:
        wires, start = given[start : start + one.n_wires], start + one.n_wires
        if not one.public and not one.bits:
            is_read = compiled.r1cs.reads(int(wires[0]), int(wires[-1]) + 1)
            unused += [name for name, read in zip(one.wire_names(), is_read.tolist(), strict=True) if not read]
    if unused:
        more = f" and {len(unused) - MAX_SHOWN} more" if len(unused) > MAX_SHOWN else ""
        names = ", ".join(unused[:MAX_SHOWN]) + more
        detail = f"{compiled.name}: the private input {names} is in no constraint: a proof says nothing about it"
        warnings.warn(detail, CircuitWarning, stacklevel=4)


def circuit(function: Callable[..., Any]) -> Circuit:
    """Decorator: makes a circuit of a function. Raises CircuitError for a signature that is none."""
    return Circuit(function)


def _curve(curve: Curve | str) -> Curve:
    if isinstance(curve, Curve):
        return curve
    if curve not in CURVES:
        raise CircuitError("", f"a curve is one of {', '.join(CURVES)}; found {curve!r}")
    return CURVES[curve]


def _read_signature(function: Callable[..., Any]) -> tuple[dict[str, Input], dict[str, int | None]]:
    """Inputs with their types, and parameters with their defaults."""
    try:
        _, *arguments = inspect.signature(function, eval_str=True).parameters.values()
    except ValueError:
        raise CircuitError(function.__name__, "its first argument is the constraint system; it takes none") from None
    except NameError as error:
        raise CircuitError(function.__name__, f"its annotations cannot be evaluated: {error}") from None
    inputs: dict[str, Input] = {}
    parameters: dict[str, int | None] = {}
    for argument in arguments:
        if isinstance(argument.annotation, Input):
            inputs[argument.name] = argument.annotation
        elif argument.annotation in (int, argument.empty) and argument.kind is not argument.VAR_POSITIONAL:
            parameters[argument.name] = None if argument.default is argument.empty else argument.default
        else:
            detail = f"argument {argument.name} is neither Public[...], Private[...] nor an int"
            raise CircuitError(function.__name__, detail)
    return inputs, parameters


@gadget
def boolean(cs: Builder, bit: Bit) -> None:
    """The constraint that makes a given wire a bit."""
    logic.constrain_bit(cs, bit.literal >> 1)


@gadget
def unpack_word(cs: Builder, number: Num, name: str) -> Word:
    """The bits of a public number that is a machine word."""
    return unpack(cs, number, WORDS[name])


def _allocate(cs: ConstraintSystem, name: str, type_: Input, sizes: dict[str, int]) -> tuple[Field, Any]:
    """An input's wires, with the constraints that keep them in range: its field, and its value for the circuit."""
    shape, inner = resolve(name, type_.item, sizes)
    count = 1 if type_.size is None else resolve_size(name, type_.size, sizes)
    kind = element(type_.item)
    width = kind.WIDTH if issubclass(kind, Word) else 0
    outer = () if type_.size is None else (count,)
    bytes_are = "bits" if kind is Bit else "bytes" if kind is UInt8 else ""
    bits = width or (1 if kind is Bit else 0)
    wires = width if width and not type_.public else 1
    input_ = Field(name, type_.public, (*outer, *inner), bits, wires, bytes_are if inner else "")
    with cs.scope(name):
        if type_.public and width:
            first = cs.new_public(input_.n_values)
            numbers = _stretch(cs, ("Num",), input_.n_values, first)
            words = cs.map(unpack_word, numbers, kind.__name__)
            batch = Batch(cs, shape, words.wiring.grouped(input_.n_values // count))
        else:
            is_bits = bits > 0
            n = input_.n_wires
            first = cs.new_public(n, bits=is_bits) if type_.public else cs.new_given(n, bit=is_bits)
            if is_bits:
                cs.map(boolean, _stretch(cs, ("Bit",), input_.n_wires, first))
            batch = _stretch(cs, shape, count, first)
    return input_, batch if type_.size is not None else batch[0]


def _stretch(cs: ConstraintSystem, shape: Shape, count: int, first: int) -> Batch:
    """`count` values of a shape whose wires follow one another from `first` on."""
    width = n_slots(shape)
    base = 2 * (first + np.arange(width, dtype=np.int64))
    return Batch(cs, shape, Wiring(count, base, np.full(width, width, dtype=np.int64), None, {}))


def _outputs(cs: ConstraintSystem, name: str, value: Any) -> Iterator[str]:
    """Makes outputs of what a circuit returns; their names."""
    if value is None:
        return
    if isinstance(value, Word):
        value = value.num()
    if isinstance(value, Num | Bit):
        cs.output(value)
        yield name
    elif isinstance(value, Bits | Batch | list | tuple):
        for i, item in enumerate(value):
            yield from _outputs(cs, f"{name}[{i}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _outputs(cs, str(key), item)
    else:
        raise CircuitError("", f"a circuit returns values of a circuit; found {type(value).__name__}")
