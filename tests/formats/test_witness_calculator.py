"""circom's witness calculators: their witnesses are circom's byte for byte, and everything wrong has a name."""

from __future__ import annotations

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from raw_files import VECTORS, R, Raw, witness_values

from snarkline.errors import FormatError, InputError
from snarkline.formats.circom import WitnessCalculator, calculate_witness, write_witness
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
