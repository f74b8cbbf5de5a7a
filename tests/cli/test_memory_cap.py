"""--max-memory: sizes, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Run

from snarkline.cli.size import parse_size
from snarkline.errors import InputError


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
def test_prove_within_a_cap(run: Run, circuit: Path, tmp_path: Path) -> None:
    files = circuit / "circuit.zkey", circuit / "circuit.wtns"
    assert run("prove", *files, "--max-memory", "2G", "--quiet").code == 0
    assert (tmp_path / "proof.json").exists()
    (tmp_path / "proof.json").unlink()
    refused = run("prove", *files, "--max-memory", "1M", "--quiet")
    assert refused.code == 2 and "within a budget of 1048576 bytes" in refused.err
    assert run("prove", *files, "--max-memory", "much").code == 2
    assert not (tmp_path / "proof.json").exists()
