"""Witnesses from calculators, and `-` for standard input and output."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import Run


@pytest.fixture
def compare(vectors: Path) -> Path:
    """A circuit with its calculator; skips without wasmtime."""
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    return vectors / "circom/edge/compare_bn128"


def _feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))


def test_witness(run: Run, compare: Path, tmp_path: Path) -> None:
    outcome = run("witness", compare / "circuit.wasm", compare / "input.json", "-o", "w.wtns")
    assert outcome.code == 0, outcome.err
    assert "witness of 31 wires written to w.wtns" in outcome.out
    assert (tmp_path / "w.wtns").read_bytes() == (compare / "circuit.wtns").read_bytes()


def test_prove_with_a_calculator(run: Run, compare: Path, tmp_path: Path) -> None:
    proved = run(
        "prove", compare / "circuit.zkey", "--wasm", compare / "circuit.wasm", "--input", compare / "input.json"
    )
    assert proved.code == 0, proved.err
    assert json.loads((tmp_path / "public.json").read_text()) == json.loads((compare / "public.json").read_text())
    assert run("verify", compare / "verification_key.json", "public.json", "proof.json").code == 0


def test_inputs_from_standard_input(run: Run, compare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _feed(monkeypatch, (compare / "input.json").read_bytes())
    assert run("witness", compare / "circuit.wasm", "-", "--quiet").code == 0
    assert Path("witness.wtns").read_bytes() == (compare / "circuit.wtns").read_bytes()
    _feed(monkeypatch, (compare / "input.json").read_bytes())
    assert run("prove", compare / "circuit.zkey", "--wasm", compare / "circuit.wasm", "--input", "-").code == 0


def test_refused_inputs_leave_no_file(run: Run, compare: Path, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"x": [1, 2]}')
    outcome = run("witness", compare / "circuit.wasm", "in.json")
    assert outcome.code == 2
    assert outcome.err == "error: in.json: signal x: expected an array of 3, found one of 2\n"
    assert not Path("witness.wtns").exists()


def test_a_key_of_the_other_curve(run: Run, compare: Path, vectors: Path) -> None:
    key = vectors / "circom/edge/compare_bls12381/circuit.zkey"
    outcome = run("prove", key, "--wasm", compare / "circuit.wasm", "--input", compare / "input.json")
    assert outcome.code == 2
    assert "bls12_381" in outcome.err and "bn254" in outcome.err


@pytest.mark.parametrize("given", [[], ["--wasm", "c.wasm"], ["--input", "i.json"], ["w.wtns", "--wasm", "c.wasm"],
                                   ["w.wtns", "--wasm", "c.wasm", "--input", "i.json"]])  # fmt: skip
def test_one_source_of_the_witness(run: Run, circuit: Path, given: list[str]) -> None:
    outcome = run("prove", circuit / "circuit.zkey", *given)
    assert outcome.code == 2
    assert "give a WITNESS.wtns, or both --wasm CIRCUIT.wasm and --input INPUT.json" in outcome.err


def test_witness_in_proof_out(run: Run, circuit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _feed(monkeypatch, (circuit / "circuit.wtns").read_bytes())
    outcome = run("prove", circuit / "circuit.zkey", "-", "-o", "-")
    assert outcome.code == 0, outcome.err
    assert "proof written to standard output" in outcome.err
    (tmp_path / "p.json").write_text(outcome.out)
    assert run("verify", circuit / "verification_key.json", "public.json", "p.json").code == 0


def test_public_inputs_out_and_facts_on_standard_error(run: Run, circuit: Path) -> None:
    outcome = run("prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--public", "-", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out) == json.loads((circuit / "public.json").read_text())
    assert json.loads(outcome.err.splitlines()[-1])["public"] == "-"


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_texts_go_to_standard_output_and_messages_beside_it(run: Run, circuit: Path) -> None:
    made = run("setup", circuit / "circuit.r1cs", "-o", "k.zkey", "--vk", "-", "--json")
    assert json.loads(made.out)["protocol"] == "groth16" and json.loads(made.err.splitlines()[-1])["vk"] == "-"
    taken = run("export", circuit / "circuit.zkey", "--vk", "-")
    assert json.loads(taken.out) == json.loads((circuit / "verification_key.json").read_text())
    assert taken.err == "verifying key written to standard output\n"
    page = run("profile", circuit / "circuit.r1cs", "--html", "-")
    assert page.out.startswith("<!doctype html>") and page.err.endswith("profile written to standard output\n")


def test_keys_are_files(run: Run, circuit: Path) -> None:
    outcome = run("setup", circuit / "circuit.r1cs", "-o", "-")
    assert (outcome.code, outcome.out) == (2, "") and not Path("-").exists()
    assert outcome.err == "error: standard output: output path: expected the path of a file, found -\n"


def test_not_two_outputs_on_standard_output(run: Run, circuit: Path) -> None:
    outcome = run("prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "-o", "-", "--public", "-")
    assert (outcome.code, outcome.out) == (2, "")
    assert "standard output" in outcome.err


def test_a_witness_that_is_none_on_standard_input(run: Run, circuit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"", b"{}", (circuit / "circuit.wtns").read_bytes()[:-1]):
        _feed(monkeypatch, data)
        outcome = run("prove", circuit / "circuit.zkey", "-", "-o", "-")
        assert (outcome.code, outcome.out) == (2, "")
