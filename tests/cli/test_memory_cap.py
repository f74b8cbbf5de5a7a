"""--max-memory: sizes, and what does not fit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Run

from snarkline import load_r1cs, save_proving_key, setup
from snarkline.cli.size import parse_size
from snarkline.errors import InputError
from snarkline.groth16.layout import bellperson_layout


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("0", 0), ("1", 1), ("2K", 2048), ("512M", 512 << 20), ("1.5g", 3 << 29), ("2GiB", 2 << 30), ("1 TB", 1 << 40)],
)
def test_sizes(text: str, n_bytes: int) -> None:
    assert parse_size(text, "--max-memory") == n_bytes


@pytest.mark.parametrize("text", ["", "M", "-1M", "1e9", "1X", "1MM", "0x10", "9" * 40, "\u0663M"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError, match="--max-memory: expected a size like 512M"):
        parse_size(text, "--max-memory")


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_the_least_cap_of_an_estimate_is_taken(circuit: Path, tmp_path: Path) -> None:
    def snarkline(*words: object) -> str:
        command = [sys.executable, "-m", "snarkline", *map(str, words), "--threads", "1"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout

    least = {}
    for name in ("circuit.zkey", "circuit.r1cs"):
        text = snarkline("estimate", circuit / name)
        least[name] = int(re.search(r"with --max-memory, (\d+) MiB at least", text)[1])  # type: ignore[index]
    assert abs(least["circuit.zkey"] - least["circuit.r1cs"]) <= 1
    cap = f"{min(least.values())}M"
    shown = snarkline("prove", circuit / "circuit.zkey", circuit / "circuit.wtns", "--max-memory", cap)
    assert "proof written to proof.json" in shown


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_prove_within_a_cap(run: Run, circuit: Path, tmp_path: Path) -> None:
    files = circuit / "circuit.zkey", circuit / "circuit.wtns"
    assert run("prove", *files, "--max-memory", "2G", "--quiet").code == 0
    assert (tmp_path / "proof.json").exists()
    (tmp_path / "proof.json").unlink()
    refused = run("prove", *files, "--max-memory", "1M", "--quiet")
    assert refused.code == 2 and "within a budget of 1048576 bytes" in refused.err
    assert f"MiB in 1.0 MiB): --max-memory is below what a proof with {files[0]} holds at least" in refused.err
    assert run("prove", *files, "--max-memory", "much").code == 2
    assert not (tmp_path / "proof.json").exists()


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_parameters_of_bellperson_within_a_cap(run: Run, vectors: Path) -> None:
    folder = vectors / "circom" / "multiplier_bls12381"
    save_proving_key(setup(load_r1cs(folder / "circuit.r1cs"), layout=bellperson_layout), "k.params")
    files = "k.params", folder / "circuit.wtns", "--r1cs", folder / "circuit.r1cs"
    assert run("prove", *files, "--max-memory", "2G", "--quiet").code == 0
    refused = run("prove", *files, "--max-memory", "1M", "--quiet")
    assert refused.code == 2 and "--max-memory is below what a proof with k.params holds at least" in refused.err
