"""Running commands in this process, as the installed program does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Outcome, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`run("prove", KEY, WITNESS, ...)` in an empty folder: exit code, standard output, standard error."""
    from snarkline.cli import main

    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str | Path) -> Outcome:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["snarkline", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capfd.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    return invoke


@pytest.fixture(params=["multiplier_bn128", "multiplier_bls12381"])
def circuit(request: pytest.FixtureRequest, vectors: Path) -> Path:
    """The folder of a circuit compiled by circom, its key and proof by snarkjs."""
    return vectors / "circom" / str(request.param)
