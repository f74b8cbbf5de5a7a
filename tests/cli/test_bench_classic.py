"""`snarkline bench prove --release`: a real proof in the classic layout, under every release policy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from snarkline import Prover, load_proving_key, load_r1cs, load_witness, save_proving_key, setup
from snarkline.cli.bench import classic
from snarkline.cli.demo import unpack_circuit
from snarkline.errors import InternalError, SecurityWarning
from snarkline.memory import Release

VECTOR = 32 << 16  # of the bundled circuit's domain


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("bundled")
    r1cs_path, witness_path = unpack_circuit(folder)
    with pytest.warns(SecurityWarning):
        save_proving_key(setup(load_r1cs(r1cs_path)), folder / "circuit.zkey")
    return str(folder / "circuit.zkey"), str(witness_path)


@pytest.fixture(scope="module")
def runs(files: tuple[str, str]) -> dict[str, classic.ClassicRun]:
    base = classic.ClassicRun("sync", *files, circuits=2, threads=2, window_s=0.05)
    return {run.policy: run for run in classic.plan([policy.value for policy in Release], base)}


@pytest.fixture(scope="module")
def rows(runs: dict[str, classic.ClassicRun]) -> dict[str, classic.Row]:
    return {policy: classic.measure_fresh(run) for policy, run in runs.items()}


def test_proofs_are_the_same_bytes_under_every_policy(rows: dict[str, classic.Row]) -> None:
    assert len(rows) == len(Release) + 2
    assert {row["verified"] for row in rows.values()} == {2}
    assert len({row["proofs_sha256"] for row in rows.values()}) == 1
    classic.require_equal_proofs(list(rows.values()))


def test_rows_are_consistent(rows: dict[str, classic.Row]) -> None:
    for policy, row in rows.items():
        assert 0 < row["inner_s"] <= row["wrapper_s"]
        assert row["inner_s"] + row["teardown_s"] <= row["wrapper_s"] + 0.001
        classic_layout = policy != classic.PRODUCT
        assert row["layout"] == ("classic" if classic_layout else "product")
        assert row["bytes"] == (2 * 2 * 3 * VECTOR if classic_layout else 3 * VECTOR)


def test_the_caller_waits_under_sync_alone(runs: dict[str, classic.ClassicRun], rows: dict[str, classic.Row]) -> None:
    """12 vectors of 2 MiB are wiped and unmapped: some milliseconds, or none to speak of. A call that had to wait for a
    processor is made again."""
    under_sync = rows["sync"]["teardown_s"]
    assert under_sync > 0.002
    for policy in ("detached", "recycle", "product", "control"):
        again = (classic.measure_fresh(runs[policy]) for _ in range(4))
        assert any(row["teardown_s"] < under_sync / 4 for row in chain([rows[policy]], again)), policy


def test_proofs_that_differ_are_an_error() -> None:
    rows = [{"policy": "sync", "proofs_sha256": "a"}, {"policy": "recycle", "proofs_sha256": "b"}]
    with pytest.raises(InternalError, match="under recycle differ from those under sync"):
        classic.require_equal_proofs(rows)


def test_what_runs_is_the_real_prover(files: tuple[str, str], rows: dict[str, classic.Row]) -> None:
    """The proof of the layout is the one that `Prover` makes with the same blinding."""
    key = load_proving_key(files[0])
    with Prover(key) as prover:
        proof = prover.prove(load_witness(Path(files[1]), curve=key.curve), blinding_for_tests=classic.BLINDING)
    assert rows["sync"]["proofs_sha256"] == classic.digest([proof, proof])


def test_the_command_prints_rows(files: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "snarkline", "bench", "prove", *files, "--release", "recycle", "--circuits", "1"]
    options = ["--runs", "1", "--window", "0.05", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert (result["curve"], result["domain"]) == ("bn254", 1 << 16)
    assert [row["policy"] for row in result["rows"]] == ["control", "recycle", "product"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--release", "later"], "--release: expected all or sync"),
        (["--release", "all", "--circuits", "999999"], "GiB of memory; .* GiB are free"),
    ],
)
def test_the_command_refuses(files: tuple[str, str], options: list[str], message: str) -> None:
    command = [sys.executable, "-m", "snarkline", "bench", "prove", *files, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr
