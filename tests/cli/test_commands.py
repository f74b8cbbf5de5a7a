"""The commands as a person uses them: what they print, what they write, how they exit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run


def test_prove_and_verify(run: Run, circuit: Path, tmp_path: Path) -> None:
    proved = run("prove", circuit / "circuit.zkey", circuit / "circuit.wtns")
    assert proved.code == 0, proved.err
    assert "proof written to proof.json" in proved.out
    assert json.loads((tmp_path / "public.json").read_text()) == json.loads((circuit / "public.json").read_text())
    verified = run("verify", circuit / "verification_key.json", "public.json", "proof.json")
    assert (verified.code, verified.out) == (0, "proof.json: valid\n")


def test_prove_says_where_the_timeline_is(run: Run, circuit: Path) -> None:
    outcome = run("prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--trace", "t.html")
    assert outcome.code == 0 and outcome.out.splitlines()[-1] == "timeline written to t.html"


def test_what_is_no_json_is_told_in_a_sentence(run: Run, circuit: Path, tmp_path: Path) -> None:
    (tmp_path / "proof.json").write_text("proof")
    (tmp_path / "empty.json").write_text("")
    vk, public = circuit / "verification_key.json", circuit / "public.json"
    outcome = run("verify", vk, public, "proof.json")
    expected = "proof.json: document: expected JSON, found other text at line 1, column 1 (expecting value)"
    assert (outcome.code, outcome.err) == (2, f"error: {expected}\n")
    assert "empty.json: document: expected JSON, found no text" in run("verify", vk, public, "empty.json").err


def test_prove_with_the_circuit_and_json(run: Run, circuit: Path) -> None:
    outcome = run(
        "prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--r1cs", circuit / "circuit.r1cs",
        "-o", "p.json", "--public", "q.json", "--threads", "1", "--trace", "t.json", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    facts = json.loads(outcome.out)
    assert (facts["proof"], facts["public"], facts["trace"]) == ("p.json", "q.json", "t.json")
    names = {span["name"] for span in json.loads(Path("t.json").read_text())["spans"]}
    assert {"load", "evaluate", "quotient", "commit", "assemble", "self-check", "write"} <= names


def test_quiet_prints_nothing(run: Run, circuit: Path) -> None:
    outcome = run("prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_verify_names_the_proof_that_does_not_hold(run: Run, circuit: Path, tmp_path: Path) -> None:
    public = json.loads((circuit / "public.json").read_text())
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([str(int(public[0]) + 1), *public[1:]]))
    vk, proof = circuit / "verification_key.json", circuit / "proof.json"
    outcome = run("verify", vk, circuit / "public.json", proof, wrong, proof, "--json")
    assert outcome.code == 1
    assert [entry["valid"] for entry in json.loads(outcome.out)["proofs"]] == [True, False]


def test_verify_takes_pairs(run: Run, circuit: Path) -> None:
    outcome = run("verify", circuit / "verification_key.json", circuit / "public.json")
    assert outcome.code == 2
    assert "pairs" in outcome.err


def test_setup_prove_export_verify(run: Run, circuit: Path, tmp_path: Path) -> None:
    made = run("setup", circuit / "circuit.r1cs", "-o", "dev.zkey", "--vk", "vk.json")
    assert made.code == 0, made.err
    assert "development" in made.err.lower()
    assert run("prove", "dev.zkey", circuit / "circuit.wtns").code == 0
    assert run("verify", "vk.json", "public.json", "proof.json").code == 0
    assert run("export", "dev.zkey", "--vk", "exported.json").code == 0
    assert json.loads((tmp_path / "exported.json").read_text()) == json.loads((tmp_path / "vk.json").read_text())
    # A proof under one key is no proof under another.
    assert run("verify", circuit / "verification_key.json", "public.json", "proof.json").code == 1


def test_solidity_is_for_bn254(run: Run, vectors: Path) -> None:
    good = run("export", vectors / "circom/multiplier_bn128/circuit.zkey", "--solidity", "V.sol")
    assert good.code == 0
    assert "pragma solidity" in Path("V.sol").read_text()
    bad = run("export", vectors / "circom/multiplier_bls12381/circuit.zkey", "--solidity", "W.sol")
    assert bad.code == 2
    assert not Path("W.sol").exists()


def test_export_needs_a_target(run: Run, circuit: Path) -> None:
    outcome = run("export", circuit / "circuit.zkey")
    assert outcome.code == 2
    assert "--vk" in outcome.err


def test_check(run: Run, circuit: Path) -> None:
    outcome = run("check", circuit / "circuit.r1cs", circuit / "circuit.wtns")
    assert (outcome.code, outcome.out) == (0, "all 2 constraints hold\n")


def test_check_names_the_constraint_and_its_wires(run: Run, vectors: Path, tmp_path: Path) -> None:
    folder = vectors / "circom/multiplier_bn128"
    data = bytearray((folder / "circuit.wtns").read_bytes())
    data[-32] ^= 1
    (tmp_path / "bad.wtns").write_bytes(data)
    outcome = run("check", folder / "circuit.r1cs", "bad.wtns", "--sym", folder / "circuit.sym")
    assert outcome.code == 2
    assert "constraint" in outcome.err
    assert "main." in outcome.err


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("circuit.r1cs", "circuit"),
        ("circuit.wtns", "witness"),
        ("circuit.zkey", "proving key"),
        ("verification_key.json", "verifying key"),
        ("proof.json", "proof"),
        ("public.json", "public inputs"),
    ],
)
def test_info_recognises_every_file(run: Run, circuit: Path, file: str, kind: str) -> None:
    outcome = run("info", circuit / file, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["kind"] == kind
    text = run("info", circuit / file).out.splitlines()
    assert text[0].split(maxsplit=1) == ["kind", kind] and len(text) == len(json.loads(outcome.out))


def test_info_cuts_nothing_on_a_terminal(circuit: Path) -> None:
    """The circuit's hash is longer than a line."""
    shown = "import sys; sys.stdout.isatty = lambda: True; from snarkline.cli import main; main()"
    command = [sys.executable, "-c", shown, "info", str(circuit / "circuit.zkey")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"})
    facts = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert facts["circuit hash"] in "".join(done.stdout.split()) and len(facts["circuit hash"]) == 128


def test_help_and_version(run: Run) -> None:
    assert "prove" in run("--help").out
    assert run("--version").out.startswith("snarkline 0.")
    assert run("prove", "--nonsense").code == 2


def test_demo(run: Run, tmp_path: Path) -> None:
    outcome = run("demo", "-o", "out")
    assert outcome.code == 0, outcome.err
    assert "verified" in outcome.out
    assert re.search(r"second proof: took \S+ MiB from the pool, no fresh memory", outcome.out)
    assert "MiB of it fresh, first touched in" in outcome.out
    assert re.search(r"^    write key ", outcome.out, re.MULTILINE)
    (sums,) = (line for line in outcome.out.splitlines() if line.startswith("spans add up: "))
    total, whole = re.fullmatch(r".* = (.*) \(demo: (.*)\)", sums).groups()  # type: ignore[union-attr]
    assert total == whole
    wrote = outcome.out.partition("wrote to out:\n")[2].replace(",", " ").split()
    assert sorted(wrote) == sorted(path.name for path in (tmp_path / "out").iterdir())


def test_bench_prove(run: Run, circuit: Path) -> None:
    outcome = run("bench", "prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--runs", "2", "--json")
    facts = json.loads(outcome.out)
    assert facts["runs"] == len(facts["samples"]) == 2
    assert facts["median_s"]["proof"] > 0
