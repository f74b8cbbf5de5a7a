"""circom's witness calculators: their witnesses are circom's byte for byte, and everything wrong has a name."""

from __future__ import annotations

import io
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from raw_files import VECTORS, R, Raw, witness_values

from snarkline.errors import FormatError, InputError
from snarkline.formats.circom import WitnessCalculator, calculate_witness, save_symbols, write_witness
from snarkline.formats.circom.inputs import read_inputs

COMPARE = VECTORS / "edge" / "compare_bn128"
PUBLIC20 = VECTORS / "edge" / "public20_bls12381"


def _calculator(folder: Path) -> WitnessCalculator:
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    return WitnessCalculator(folder / "circuit.wasm")


@pytest.fixture(scope="module")
def compare() -> WitnessCalculator:
    return _calculator(COMPARE)


@pytest.fixture(scope="module")
def public20() -> WitnessCalculator:
    return _calculator(PUBLIC20)


def _inputs(folder: Path, **changed: Any) -> dict[str, Any]:
    return {**json.loads((folder / "input.json").read_text()), **changed}


def _file(calculator: WitnessCalculator, inputs: Any) -> bytes:
    stream = io.BytesIO()
    write_witness(calculator.witness(inputs), stream)
    return stream.getvalue()


def _wire(calculator: WitnessCalculator, inputs: Any, wire: int) -> int:
    return calculator.witness(inputs).values.to_ints()[wire]


@pytest.mark.parametrize("folder", [COMPARE, PUBLIC20], ids=lambda f: f.name)
def test_the_witness_is_circoms(folder: Path) -> None:
    calculator, expected = _calculator(folder), (folder / "circuit.wtns").read_bytes()
    text = (folder / "input.json").read_text()
    for source in (folder / "input.json", text, text.encode(), json.loads(text)):
        assert _file(calculator, source) == expected


def test_values_may_be_written_in_several_ways(compare: WitnessCalculator) -> None:
    r = R["bn254"]
    expected = _file(compare, _inputs(COMPARE))
    x = [0, 1, r - 1]
    for written in (
        x,
        [0, "1", -1],
        [["0"], [[1], str(-1)]],
        [r, 1 + r, "-" + str(r + 1)],
        ["0x0", "0x01", hex(r - 1)],
    ):
        assert _file(compare, _inputs(COMPARE, x=written)) == expected
        assert _file(compare, json.dumps(_inputs(COMPARE, x=written))) == expected


def test_outputs_follow_the_inputs(compare: WitnessCalculator) -> None:
    """Wires 1 to 3 are x[i] == 0, wire 4 is a < b; of 16 bits."""
    raw = witness_values(Raw.split((COMPARE / "circuit.wtns").read_bytes()))
    assert raw[1:5] == [1, 0, 0, 1]
    got = compare.witness(_inputs(COMPARE, x=[5, 0, 0], a=7, b=7)).values.to_ints()
    assert got[1:6] == [0, 1, 1, 0, 7]


def test_threads_and_calls_do_not_see_one_another(compare: WitnessCalculator) -> None:
    """users.md A11: the calculator is not re-entrant; every call has an instance of its own."""
    cases = [(a, b) for a in range(4) for b in range(4)]

    def run(case: tuple[int, int]) -> int:
        if case[0] == 3:
            with pytest.raises(FormatError):
                compare.witness(_inputs(COMPARE, x=[1]))
        return _wire(compare, _inputs(COMPARE, a=case[0], b=case[1]), 4)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, cases)) == [int(a < b) for a, b in cases]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nope": 1}, "signal nope: expected an input signal of"),
        ({"x": {"y": 1}}, "signal x.y: expected an input signal of"),
        ({"x": [1, 2]}, "signal x: expected an array of 3, found one of 2"),
        ({"x": [1, [2, 3], 4]}, "signal x: expected an array of 3, found one of 4"),
        ({"a": []}, "signal a: expected an array of 1, found one of 0"),
        ({"x": [1, None, 3]}, r"\$\.x\[1\]: expected a whole number.*null"),
        ({"x": [1, 2, "seven"]}, r"\$\.x\[2\]: expected a whole number"),
        ({"a": ""}, r"\$\.a: expected a whole number"),
        ({"a": " 1"}, r"\$\.a: expected a whole number"),
        ({"a": True}, r"\$\.a: expected a whole number.*true or false"),
        ({"a": "1" * 5000}, r"\$\.a: expected a whole number"),
        ({"a.b": 1, "a": {"b": 2}}, r"signal a\.b once"),
    ],
)
def test_inputs_that_are_not_the_circuits(compare: WitnessCalculator, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        compare.witness(json.dumps(_inputs(COMPARE, **changed)))


def test_a_missing_signal(compare: WitnessCalculator) -> None:
    inputs = _inputs(COMPARE)
    del inputs["b"]
    with pytest.raises(FormatError, match="input signals: expected 5 values in all, found 4, in x, a"):
        compare.witness(inputs)


def test_missing_signals_are_named_where_a_sym_tells(tmp_path: Path) -> None:
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    shutil.copytree(COMPARE, tmp_path / "circuit_js")
    wasm = tmp_path / "circuit_js" / "circuit.wasm"
    names = ["out", "x[0]", "x[1]", "x[2]", "a", "b", "less.in[0]"]
    save_symbols(enumerate(names, 1), tmp_path / "circuit.sym")
    calculator = WitnessCalculator(wasm)
    with pytest.raises(FormatError, match="signals x, b: expected values for each, found none"):
        calculator.witness({"a": 1})
    with pytest.raises(FormatError, match="signal b: expected values, found none"):
        calculator.witness({"a": 1, "x": [1, 2, 3]})


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '{"a": 1, "a": 1}', '{"a": 1.5}', "[" * 5000, '{"a": NaN}'])
def test_what_is_no_input(text: str) -> None:
    with pytest.raises(FormatError):
        read_inputs(text)


def test_names_of_buses() -> None:
    signals = read_inputs('{"p": [{"x": 1, "y": [2, 3]}, {"x": 4}], "q": {"r": {"s": 5}}, "t": [[6], [7, [8]]]}')
    values = {name: [int(node.value) for node in nodes] for name, nodes in signals.items()}
    assert values == {"p[0].x": [1], "p[0].y": [2, 3], "p[1].x": [4], "q.r.s": [5], "t": [6, 7, 8]}


def test_an_assertion_has_the_circuits_message_and_no_value(public20: WitnessCalculator) -> None:
    with pytest.raises(InputError, match="an assertion of the circuit failed: Error in template T_0 line: ") as raised:
        public20.witness(_inputs(PUBLIC20, s="1234567890123456789"))
    assert "1234567890123456789" not in str(raised.value)
    assert _file(public20, _inputs(PUBLIC20)) == (PUBLIC20 / "circuit.wtns").read_bytes()


def test_values_do_not_show_in_errors(compare: WitnessCalculator) -> None:
    for bad in ("12345x", 12345.5, [12345]):
        with pytest.raises(FormatError) as raised:
            compare.witness(json.dumps(_inputs(COMPARE, x=[1, 2, bad, 3])))
        assert "12345" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"", "no bytes"),
        (b"{}", "magic"),
        (b"\0asm", "valid WebAssembly"),
        (b"\0asm\1\0\0\0", "an export getFieldNumLen32, as in modules of circom 2"),
    ],
)
def test_what_is_no_calculator(tmp_path: Path, code: bytes, message: str) -> None:
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    (tmp_path / "c.wasm").write_bytes(code)
    with pytest.raises(FormatError, match=message):
        calculate_witness(tmp_path / "c.wasm", "{}")


def test_a_module_cut_short(tmp_path: Path) -> None:
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    (tmp_path / "c.wasm").write_bytes((COMPARE / "circuit.wasm").read_bytes()[:-100])
    with pytest.raises(FormatError, match="valid WebAssembly"):
        WitnessCalculator(tmp_path / "c.wasm")


def test_without_wasmtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(InputError, match=r"pip install 'snarkline\[wasm\]'"):
        WitnessCalculator(COMPARE / "circuit.wasm")


FAKE = """(module
  (import "runtime" "exceptionHandler" (func $fail (param i32)))
  (import "runtime" "writeBufferMessage" (func $message))
  (import "runtime" "showSharedRWMemory" (func $show))
  (memory (export "memory") 1)
  (data (i32.const 64) "{prime}")
  (data (i32.const 128) "caf\\c3\\a9\\00\\0a\\00")
  (global $at (mut i32) (i32.const 128))
  (func (export "getFieldNumLen32") (result i32) (i32.const {words}))
  (func (export "getRawPrime") (memory.copy (i32.const 0) (i32.const 64) (i32.const 32)))
  (func (export "init") (param i32) {init})
  (func (export "getInputSize") (result i32) (i32.const 0))
  (func (export "getInputSignalSize") (param i32 i32) (result i32) (i32.const -1))
  (func (export "writeSharedRWMemory") (param i32 i32)
    (i32.store (i32.shl (local.get 0) (i32.const 2)) (local.get 1)))
  (func (export "readSharedRWMemory") (param i32) (result i32) (i32.load (i32.shl (local.get 0) (i32.const 2))))
  (func (export "setInputSignal") (param i32 i32 i32))
  (func (export "getWitnessSize") (result i32) (i32.const {size}))
  (func (export "getWitness") (param i32)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 32))
    (i32.store (i32.const 0) (i32.add (local.get 0) (i32.const {wire0}))))
  (func (export "getMessageChar") (result i32)
    (global.set $at (i32.add (global.get $at) (i32.const 1)))
    (i32.load8_u (i32.sub (global.get $at) (i32.const 1)))))"""


def _fake(folder: Path, **parts: Any) -> WitnessCalculator:
    """A hand-written module: `init` runs the given code, wire i has the value i + wire0."""
    wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    prime = "".join(f"\\{byte:02x}" for byte in R["bn254"].to_bytes(32, "little"))
    text = FAKE.format(**{"prime": prime, "words": 8, "init": "", "size": 3, "wire0": 1, **parts})
    (folder / "fake.wasm").write_bytes(wasmtime.wat2wasm(text))
    return WitnessCalculator(folder / "fake.wasm")


def test_blocks_of_the_witness(tmp_path: Path) -> None:
    for size in (1, 2047, 2048, 2049, 5000):
        assert _fake(tmp_path, size=size).witness({}).values.to_ints() == list(range(1, size + 1))


def test_what_the_circuit_logs(tmp_path: Path) -> None:
    """Words and numbers of one log() are a line."""
    lines: list[str] = []
    seven = "(memory.fill (i32.const 0) (i32.const 0) (i32.const 32)) (i32.store (i32.const 0) (i32.const 7))"
    code = f"(call $message) {seven} (call $show) (call $message)"
    _fake(tmp_path, init=code).witness({}, log=lines.append)
    assert lines == ["café 7"]


def test_what_a_log_raises_comes_through(tmp_path: Path) -> None:
    def broken(_: str) -> None:
        raise BrokenPipeError

    calculator = _fake(tmp_path, init="(call $message) (call $message)")
    with pytest.raises(BrokenPipeError):
        calculator.witness({}, log=broken)
    assert len(calculator.witness({})) == 3


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"prime": "\\07"}, "the scalar field of bn254 or bls12_381, found 0x7"),
        ({"words": 12}, "a field of 12 words"),
        ({"size": -1}, "getWitnessSize: expected a size that fits its memory, found 4294967295"),
        ({"size": 0}, "no wires"),
        ({"wire0": 2}, "wire 0: expected 1"),
        ({"init": "unreachable"}, "unreachable"),
        ({"init": "(call $fail (i32.const 5))"}, "it has not enough memory"),
        ({"init": "(call $fail (i32.const 77))"}, "fault 77"),
        ({"init": "(i32.store (i32.const -4) (i32.const 1))"}, "out of bounds"),
    ],
)
def test_modules_that_misbehave(tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _fake(tmp_path, **parts).witness({})
