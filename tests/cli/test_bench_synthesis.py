"""`snarkline bench synthesis`: every way comes to the same a, b and c, and its rows say what they should."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from snarkline.cli.bench import synthesis_proof, synthesis_run
from snarkline.cli.bench.synthesis_run import CLASSES, CURES, CURVE, PUBLISHED, RECORDED, TEMPLATES, SynthesisRun
from snarkline.curves.vector import FrVector
from snarkline.memory import Arena
from snarkline.native import core
from snarkline.r1cs.structured_witness import StructuredWitness, run_program

BLOCKS = 3


@pytest.fixture(scope="module")
def witness() -> StructuredWitness:
    system = synthesis_run.sha256_chain(BLOCKS)
    bits = synthesis_run.message_bits(BLOCKS)
    return run_program(system, FrVector.from_ints(CURVE, bits.tolist()), threads=1)


@pytest.fixture(scope="module")
def expected(witness: StructuredWitness) -> np.ndarray:
    """a, b, c from the flat matrices by the prover's own product."""
    flat, executor = witness.system.flatten().matrices, core.Executor(2)
    assert flat.c is not None
    w, out = witness.expand().values.limbs, np.zeros((3, witness.system.n_constraints, 4), np.uint64)
    for to, m in zip(out, (flat.a, flat.b, flat.c), strict=True):
        executor.spmv(CURVE.name, to, m.row_start, m.column, m.value, m.coefficients.limbs, w, "canonical")
    return out


@pytest.mark.parametrize("cures", CURES.values(), ids=CURES)
def test_constraint_by_constraint(
    witness: StructuredWitness, expected: np.ndarray, cures: tuple[bool, bool, bool]
) -> None:
    """A circuit written apart from the recorded one: the same constraints in the same order, the same wires."""
    made = core.synthesize_sha256_chain(CURVE.name, synthesis_run.message_bits(BLOCKS), *cures)
    for ours, theirs in zip((made.a, made.b, made.c), expected, strict=True):
        assert np.array_equal(ours, theirs)
    w = witness.expand().values.limbs.copy()
    core.Executor(1).from_canonical(CURVE.name, "fr", w, w)
    assert np.array_equal(np.concatenate([made.inputs, made.aux]), w)
    _, recycled, _ = cures
    assert (made.allocations < 1000) == recycled
    if not recycled:
        assert made.allocations > 3 * len(made.a)
        assert made.bytes_freed > 40 * made.allocations
    made.close()
    with pytest.raises(ValueError, match="closed"):
        _ = made.a


@pytest.mark.parametrize("path", RECORDED[:3])
@pytest.mark.parametrize("threads", [1, 2])
def test_recorded_paths(witness: StructuredWitness, expected: np.ndarray, path: str, threads: int) -> None:
    out = np.zeros_like(expected)
    run = SynthesisRun(path, "sha256", 16, threads)
    evaluate, n_bytes = synthesis_run._evaluation(run, witness.system, witness, out, Arena())
    evaluate()
    assert np.array_equal(out, expected)
    entries = sum(m.n_entries for m in (witness.system.flatten().matrices.a, witness.system.flatten().matrices.b))
    if path == PUBLISHED:
        assert n_bytes > 36 * entries
    elif path == CLASSES:
        assert 5 * entries < n_bytes < 20 * entries
    else:
        assert n_bytes < 1 << 23


def test_rows_of_fresh_processes() -> None:
    for path in ("classic, all cures", TEMPLATES):
        row = synthesis_run.measure(SynthesisRun(path, "sha256", 16, 2, 1))
        assert row["path"] == path and row["abc_s"] > 0 and row["total_s"] >= row["abc_s"]
        assert abs(row["n_constraints"] - 2**16) < 2**15
        assert row["vector_bytes"] > 32 * 4 * 0.99 * row["n_constraints"]
    row = synthesis_run.measure(SynthesisRun(PUBLISHED, "poseidon", 11, 1, 1))
    assert 2**10 < row["n_constraints"] < 2**12


def test_whole_proofs() -> None:
    """Proofs from a, b and c of both kinds are the same bytes, with the blinding fixed."""
    system, bits = synthesis_run.sha256_chain(2), synthesis_run.message_bits(2)
    with pytest.warns(UserWarning):
        key = synthesis_proof.setup(system, backend="cpu", threads=2)
    proofs = []
    for path in synthesis_proof.PROOFS:
        made = synthesis_proof._by_templates if path == TEMPLATES else synthesis_proof._classic
        row, proof = made(SynthesisRun(path, "sha256", 15, 2), system, key, bits)
        assert list(row) == ["synthesis_s", "wrapper_s", "teardown_s"]
        proofs.append(proof)
    assert proofs[0] == proofs[1] == proofs[2]
    assert synthesis_proof.verify(key.verifying_key, proofs[0])


@pytest.mark.slow
def test_command() -> None:
    options = ["--sizes", "14", "--poseidon", "10", "--proof", "0", "--runs", "1", "--threads", "1", "--json"]
    command = [sys.executable, "-m", "snarkline", "bench", "synthesis", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    paths = [row["path"] for row in result["rows"]]
    assert paths == [*CURES, *RECORDED, PUBLISHED, TEMPLATES]
    assert result["proofs"] == []


@pytest.mark.parametrize("sizes", ["13", "28", "18,", "x", "-1"])
def test_bad_sizes(sizes: str) -> None:
    command = [sys.executable, "-m", "snarkline", "bench", "synthesis", "--sizes", sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "--sizes" in done.stderr


def test_arrays_are_checked() -> None:
    ones = np.zeros((3, 4), np.uint64)
    starts, columns = np.array([0, 1, 3], np.uint64), np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match="values"):
        core.flat_published(CURVE.name, 1, ones[:2].copy(), starts, columns, ones[:2].copy(), ones)
    with pytest.raises(ValueError, match="row_start"):
        core.flat_published(CURVE.name, 1, ones[:2].copy(), starts[:2].copy(), columns, ones, ones)
    with pytest.raises(ValueError, match="bits"):
        core.synthesize_sha256_chain(CURVE.name, np.zeros(100, np.uint8), False, False, False)
