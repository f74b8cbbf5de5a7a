"""Circuits as functions: what inputs become, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from evaluation import satisfied

from snarkline.backend.naive_program import evaluate_naively
from snarkline.circuit import (
    Array,
    Batch,
    Bit,
    Bits,
    Builder,
    CompiledCircuit,
    Num,
    Private,
    Public,
    Size,
    UInt8,
    UInt32,
    UInt64,
    circuit,
    gadget,
)
from snarkline.circuit.gadgets import enforce_nonzero, less_than, poseidon, range_check
from snarkline.circuit.gadgets.sha256 import initial_state, sha256_compress
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.curves.vector import FrVector
from snarkline.errors import CircuitError, CircuitWarning, FormatError, UnsatisfiedError
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.witness import Witness

N = Size("n")


@circuit
def sums(
    cs: Builder,
    scale: Public[Num],
    flags: Public[Bits[3]],
    words: Public[UInt8, N],
    x: Private[Num],
    table: Private[Array[Array[UInt32, 2], 2]],
    bits: Private[Bits[16]],
    wide: Private[UInt64],
    bit: Private[Bit],
    n: int = 2,
) -> dict[str, Any]:
    total = x * scale + flags.num() + wide.num() * bit
    for word in words:
        total = total + word.num()
    for row in table:
        total = total + row[0].num() + 2 * row[1].num()
    return {"total": total, "bytes": [bits[:8], bits[8:].num()], "inverted": ~bit}


INPUTS: dict[str, Any] = {
    "scale": BN254.r - 1,
    "flags": [1, 0, 1],
    "words": [255, 0],
    "x": "0x10",
    "table": [[1, 2], [2**32 - 1, "3"]],
    "bits": b"\x81\x03",
    "wide": str(2**64 - 1),
    "bit": True,
}


def test_every_kind_of_input() -> None:
    compiled = sums.compile()
    r1cs = compiled.r1cs
    wires = satisfied(r1cs, compiled.given(INPUTS).to_ints())
    expected = (-16 + 5 + 255 + 2**64 - 1 + 1 + 4 + 2**32 - 1 + 6) % BN254.r
    low = [1, 0, 0, 0, 0, 0, 0, 1]
    assert wires[1 : 1 + r1cs.n_outputs] == [expected, *low, 0b11000000, 0]
    assert wires[1 + r1cs.n_outputs :][:6] == [BN254.r - 1, 1, 0, 1, 255, 0]
    assert r1cs.n_public == r1cs.n_outputs + 6
    assert compiled.outputs == ("total", *(f"bytes[0][{i}]" for i in range(8)), "bytes[1]", "inverted")


def test_names_of_wires() -> None:
    compiled = sums.compile()
    names = dict(compiled.symbols())
    assert list(names) == list(range(1, compiled.r1cs.n_wires))
    assert names[1] == "total" and names[compiled.r1cs.n_outputs + 1] == "scale"
    assert {"flags[2]", "words[1]", "table[1][0].31", "wide.63", "bit"} <= set(names.values())
    assert len(set(names.values())) == len(names)


@circuit
def named(cs: Builder, x: Private[Num, 3]) -> None:
    cs.map(doubled, x)
    cs.name_wire(x[0] * x[1], "product")


@gadget
def doubled(cs: Builder, x: Num) -> Num:
    square = x * x
    cs.name_wire(square, "square")
    with pytest.raises(CircuitError, match="'x' is none"):
        cs.name_wire(x, "x")
    return square + 1


def test_names_that_a_circuit_gives() -> None:
    compiled = named.compile()
    names = [name for _, name in compiled.symbols()]
    assert names[3:] == [f"doubled[{i}].{own}" for i in range(3) for own in ("square", "aux[1]")] + ["product"]


def test_arrays_are_taken_as_arrays_too() -> None:
    compiled = sums.compile()
    arrays = INPUTS | {
        "table": np.array([[1, 2], [2**32 - 1, 3]]),
        "bits": np.unpackbits(np.frombuffer(b"\x81\x03", dtype=np.uint8)).astype(bool),
        "words": np.array([255, 0], dtype=np.uint8),
    }
    assert compiled.given(arrays).to_ints() == compiled.given(INPUTS).to_ints()
    assert compiled.given(INPUTS | {"bits": "0x8103"}).to_ints() == compiled.given(INPUTS).to_ints()


SECRET = 123456789


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": BN254.r}, "x: expected a whole number below the scalar field's modulus, found one out of range"),
        ({"x": -SECRET}, "x: expected a whole number below"),
        ({"x": 0.5}, "found a fraction"),
        ({"x": None}, "found a value of type NoneType"),
        ({"x": [SECRET]}, "x: expected a whole number below the scalar field's modulus, found an array"),
        ({"x": f"{SECRET}x"}, "found a string that is none"),
        ({"flags": [0, 1, SECRET]}, r"flags\[2\]: expected a bit, 0 or 1, found one out of range"),
        ({"flags": [0, 1]}, "flags: expected an array of 3, found one of 2"),
        ({"flags": 5}, "flags: expected an array of 3, found a value of type int"),
        ({"words": [256, 0]}, r"words\[0\]: expected a whole number below 2\^8, found one out of range"),
        ({"words": np.array([0, 256])}, r"words\[1\]: expected a whole number below 2\^8"),
        ({"words": np.array([0, -1])}, "a negative number"),
        ({"words": np.array([0.0, 1.0])}, r"words: expected an array of integers of shape \(2,\), found float64"),
        ({"table": [[1, 2], [2**32, 3]]}, r"table\[1\]\[0\]: expected a whole number below 2\^32"),
        ({"table": [[1, 2], 3]}, r"table\[1\]: expected an array of 2"),
        ({"bits": b"\0"}, "bits: expected an array of 16, found one of 8"),
        ({"bits": "0x123"}, "bits: expected an array of 16, or 0x and pairs of hexadecimal digits, found a string"),
        ({"wide": 2**64}, r"wide: expected a whole number below 2\^64"),
        ({"bit": 2}, "bit: expected a bit, 0 or 1"),
        ({"other": SECRET}, "input other: expected one of .*, found another name"),
    ],
)
def test_values_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        sums.compile().given(INPUTS | change, "input.json")
    assert str(SECRET) not in str(caught.value) and str(caught.value).startswith("input.json: ")


def test_missing_values() -> None:
    with pytest.raises(FormatError, match="input bit: expected a value, found none"):
        sums.compile().given({name: value for name, value in INPUTS.items() if name != "bit"})
    with pytest.raises(FormatError, match="inputs x, bit: expected a value for each, found none"):
        sums.compile().given({name: value for name, value in INPUTS.items() if name not in ("bit", "x")})


def test_public_words_are_kept_in_range() -> None:
    """A public word is one wire: its bits are constrained, so that 256 does not pass for 0."""
    compiled = sums.compile()
    given = compiled.given(INPUTS).to_ints()
    for word, holds in ((255, True), (256, False), (BN254.r - 1, False)):
        given[4] = word
        wires = evaluate_naively(compiled.r1cs, given)
        witness = Witness(FrVector.from_ints(BN254, wires))
        assert (first_violation(compiled.r1cs.flatten(), witness, threads=1) is None) == holds


@circuit
def rooted(cs: Builder, square: Public[Num], root: Private[Num]) -> None:
    with cs.scope("check"):
        cs.equal(root * root, square)


def violation(compiled: CompiledCircuit, inputs: dict[str, Any], **options: Any) -> UnsatisfiedError:
    witness = compiled.witness(inputs)
    found = first_violation(compiled.r1cs.flatten(), witness, threads=1)
    assert found is not None
    return compiled.explain(found, **options)


def test_a_violated_constraint_is_explained() -> None:
    error = violation(rooted.compile(), {"square": 10, "root": 3})
    assert error.constraint == 1 and "in check (row 1, instance 0)" in str(error) and "square" in str(error)
    assert "10" not in error.detail and "9" not in error.detail
    line = rooted.function.__code__.co_firstlineno + 3
    assert f"test_compiling.py, line {line}: two values that must be equal differ" in str(error)
    error = violation(rooted.compile(), {"square": 10, "root": 3}, values={1: 10, 2: 3, 3: 9})
    assert "square = 10" in str(error) and "; -1 * 1 is not 0" in str(error)


@circuit
def checked(cs: Builder, x: Private[Num], y: Private[Num]) -> None:
    range_check(cs, x, 8)
    cs.equal(less_than(cs, y, cs.constant(200), 16), 1)
    enforce_nonzero(cs, y)


@pytest.mark.parametrize(
    ("inputs", "below", "message"),
    [
        ({"x": 256, "y": 1}, 2, r"in num2bits .*: the value is not below 2\^8"),
        ({"x": 1, "y": BN254.r - 70_000}, 3, r"a value that is compared is not below 2\^16"),
        ({"x": 1, "y": 200}, 3, "two values that must be equal differ"),
        ({"x": 1, "y": 0}, 4, "a value that must not be 0 is 0"),
    ],
)
def test_what_is_violated_is_said(inputs: dict[str, int], below: int, message: str) -> None:
    error = violation(checked.compile(), inputs)
    line = checked.function.__code__.co_firstlineno + below
    assert re.search(message, str(error)) and f"test_compiling.py, line {line}: " in str(error)


@circuit
def partly_read(cs: Builder, x: Private[Num], y: Private[Num, 3], z: Public[Num], bit: Private[Bit]) -> Num:
    return cs.call(doubled, y[1])


def test_a_private_input_that_nothing_reads_is_warned_of() -> None:
    message = r"^partly_read: the private input x, y\[0\], y\[2\] is in no constraint: a proof says nothing about it$"
    with pytest.warns(CircuitWarning, match=message):
        partly_read.compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rooted.compile()


@circuit
def misused(cs: Builder, x: Private[Num], case: int) -> object:
    with cs.scope("inside"):
        return MISUSES[case](cs, x)


@gadget
def fails(cs: Builder, x: Num) -> Num:
    return x * [1][len("too far")]


MISUSES: list[Callable[[Any, Any], object]] = [
    lambda cs, x: x == 1,
    lambda cs, x: cs.call(fails, x),
    lambda cs, x: range_check(x, 8),  # type: ignore[call-arg,arg-type]
    lambda cs, x: poseidon([x]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    ("case", "path", "message"),
    [
        (0, "misused/inside", "a comparison by == or !="),
        (1, "misused/inside/fails", "IndexError: list index out of range"),
        (2, "misused", r"TypeError: .*'n' \(the first argument of a gadget is cs\)"),
        (3, "misused/poseidon", "its first argument is the circuit's cs; found a list"),
    ],
)
def test_errors_name_the_line(case: int, path: str, message: str) -> None:
    with pytest.raises(CircuitError, match=message) as caught:
        misused.compile(case=case)
    line = fails.function.__code__.co_firstlineno + 2 if case == 1 else MISUSES[case].__code__.co_firstlineno
    assert caught.value.gadget == path and caught.value.line.endswith(f"test_compiling.py, line {line}")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.line) == (str(caught.value), caught.value.line)


def bad_annotation(cs: Builder, x: str) -> None: ...
def no_arguments() -> None: ...
def unknown_size(cs: Builder, x: Private[Num, Size("m")], n: int = 1) -> None: ...
def no_type(cs: Builder, x: Private[Array[str, 2]]) -> None: ...
def returns_nonsense(cs: Builder, x: Private[Num]) -> object:
    return object()


@pytest.mark.parametrize(
    ("function", "sizes", "message"),
    [
        (bad_annotation, {}, "bad_annotation: argument x is neither Public"),
        (no_arguments, {}, "no_arguments: its first argument is the constraint system"),
        (unknown_size, {}, "input x: its size 'm' is no parameter"),
        (no_type, {}, "input x: Num, Bit"),
        (returns_nonsense, {}, "a circuit returns values of a circuit; found object"),
        (sums.function, {"m": 1}, "it has no parameter m"),
        (sums.function, {"n": 0}, "input words: a size from 1 on is needed; found 0"),
        (sums.function, {"n": "2"}, "parameter n is a whole number; found str"),
    ],
)
def test_circuits_that_are_none(function: Callable[..., Any], sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        circuit(function).compile(**sizes)


def test_curves() -> None:
    assert rooted.compile("bls12_381").curve is BLS12_381
    with pytest.raises(CircuitError, match="one of bn254, bls12_381; found 'bls'"):
        rooted.compile("bls")


@circuit
def chain(cs: Builder, blocks: Private[Bits[512], N], n: int) -> list[Any]:
    return cs.scan(sha256_compress, initial_state(cs), blocks)


def test_structure_of_sixteen_million_constraints() -> None:
    begin = time.process_time()
    compiled = chain.compile(BLS12_381, n=640)
    seconds = time.process_time() - begin
    r1cs = compiled.r1cs
    assert r1cs.n_constraints == 25_840 + 639 * 26_192 + 640 * 512 + 8 > 1 << 24
    assert r1cs.nbytes < 8 << 20
    assert seconds < 5, "recording two patterns of SHA-256 takes 0.6 s"
    assert sum(run.nbytes for run in r1cs.runs) < 1 << 16


def test_schema_tells_public_from_private() -> None:
    fields = {field.name: (field.public, field.n_values, field.n_wires) for field in sums.compile(n=3).schema.fields}
    assert fields == {
        "scale": (True, 1, 1),
        "flags": (True, 3, 3),
        "words": (True, 3, 3),
        "x": (False, 1, 1),
        "table": (False, 4, 128),
        "bits": (False, 16, 16),
        "wide": (False, 1, 64),
        "bit": (False, 1, 1),
    }


@pytest.mark.filterwarnings("ignore::snarkline.errors.CircuitWarning")
def test_a_size_makes_a_batch() -> None:
    seen: list[Any] = []

    @circuit
    def look(cs: Builder, xs: Private[Array[Num, 2], 3], y: Private[Array[Num, 1]]) -> None:
        seen.extend([xs, y])

    look.compile()
    assert isinstance(seen[0], Batch) and len(seen[0]) == 3 and len(seen[0][0]) == 2 and isinstance(seen[1], list)


def test_inputs_survive_json() -> None:
    text = json.dumps(INPUTS | {"bits": "0x8103"})
    compiled = sums.compile()
    assert compiled.given(json.loads(text)).to_ints() == compiled.given(INPUTS).to_ints()
