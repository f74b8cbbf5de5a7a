"""A cap on memory: the same proofs from slices, plans that keep within it, refusals that say what is needed."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key

from snarkline import load_proving_key, save_proving_key, setup
from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import BudgetError, SecurityWarning
from snarkline.formats.circom import save_witness
from snarkline.groth16 import prover as prover_module
from snarkline.groth16.footprint import LEAST_SLICE, POINTS_AT_ONCE, SLACK_BYTES, Sizes, resident_bytes
from snarkline.groth16.layout import bellperson_layout
from snarkline.groth16.prover import Prover
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix
from snarkline.r1cs.structured_witness import run_program
from snarkline.r1cs.witness import Witness

LADDER = EDGE_CIRCUITS["17 constraints"]()
MIB = 1 << 20
EXAMPLES = Path(__file__).parents[2] / "examples" / "circuits"


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("points_at_once", [1, 2, 3, 16, 31, 32, 33, 1000])
def test_slices_give_the_same_proof(curve: Curve, points_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = development_key("17 constraints", curve), LADDER.witness(curve)
    with Prover(key, threads=1) as prover:
        whole = prover.prove(witness, blinding_for_tests=(5, 6))
        monkeypatch.setattr(prover, "_points_at_once", lambda *_, **__: points_at_once)
        assert prover.prove(witness, blinding_for_tests=(5, 6)) == whole


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("log_size", [10, 14, 18, 22])
def test_the_plan_fills_the_cap_and_keeps_within_it(curve: Curve, log_size: int) -> None:
    sizes = Sizes(curve, n_wires=3 << (log_size - 1), domain_size=1 << log_size, threads=2)
    held = 50 * MIB
    least = held + sizes.least_bytes()
    slices = []
    for cap in (least, least + 10 * MIB, 2 * least, 10 * least, 1000 * least):
        n = sizes.slice_within(cap, held)
        assert held + max(sizes.quotient_bytes, sizes.commit_bytes(n)) + SLACK_BYTES <= cap
        assert n == POINTS_AT_ONCE or held + sizes.commit_bytes(2 * n) + SLACK_BYTES > cap
        slices.append(n)
    assert slices == sorted(slices) and slices[0] >= LEAST_SLICE and slices[-1] == POINTS_AT_ONCE
    with pytest.raises(BudgetError) as caught:
        sizes.slice_within(least - 1, held)
    assert (caught.value.asked_bytes, caught.value.budget_bytes) == (least, least - 1)


def test_a_proof_beyond_the_cap_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover_module.prove, "begin", lambda *_, **__: pytest.fail("work began"))
    capped = Prover(development_key("17 constraints", BN254), threads=1, max_memory=MIB)
    with capped as prover, pytest.raises(BudgetError) as caught:
        prover.prove(LADDER.witness(BN254))
    assert caught.value.budget_bytes == MIB
    assert caught.value.asked_bytes > resident_bytes() // 2


@pytest.mark.slow
def test_a_process_stays_within_its_cap(tmp_path: Path) -> None:
    key, witness = _dense_files(tmp_path, log_size=16)
    peaks = {}
    for cap in ("1G", "120M", "80M"):
        child = subprocess.run(
            [sys.executable, "-c", CHILD, "prove", key, witness, "--quiet", "--threads", "2", "--max-memory", cap],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        peaks[cap] = int(child.stdout)
    assert peaks["80M"] < 80 * MIB < peaks["1G"] and peaks["120M"] < 120 * MIB
    needed = subprocess.run(
        [sys.executable, "-m", "snarkline", "prove", key, witness, "--max-memory", "40M"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert needed.returncode == 2 and "bytes were asked for within a budget of 41943040 bytes" in needed.stderr


# VmHWM: what getrusage tells begins with the parent's peak.
CHILD = """
import re, sys
from pathlib import Path
from snarkline.cli import main
try:
    main()
finally:
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10)
"""


def _dense_files(folder: Path, log_size: int) -> tuple[Path, Path]:
    """A key and a witness of a chain of squares, as files."""
    circuit, values = _squares(BN254, (1 << log_size) - 2)
    with pytest.warns(SecurityWarning):
        save_proving_key(setup(circuit), folder / "key.zkey")
        load_proving_key(folder / "key.zkey")
    save_witness(Witness(FrVector.from_ints(BN254, values)), folder / "witness.wtns")
    return folder / "key.zkey", folder / "witness.wtns"


def _squares(curve: Curve, n: int) -> tuple[R1CS, list[int]]:
    """w_(i + 1) = w_i^2 from w_1 = 3, none of them public."""
    values = [1, 3]
    for _ in range(n):
        values.append(values[-1] ** 2 % curve.r)
    ones = FrVector.from_ints(curve, [1], Form.MONTGOMERY)

    def select(first: int) -> SparseMatrix:
        columns = np.arange(first, first + n, dtype=np.uint32)
        return SparseMatrix(n + 2, np.arange(n + 1, dtype=np.uint64), columns, np.zeros_like(columns), ones)

    return R1CS(curve, n + 2, 0, 0, Matrices(select(1), select(1), select(2))), values


def test_curves_differ_in_what_they_need() -> None:
    sizes = [Sizes(curve, 1 << 18, 1 << 18, 2) for curve in (BN254, BLS12_381)]
    assert sizes[0].proof_bytes() < sizes[1].proof_bytes()


def test_a_packed_witness_and_gathered_scalars_count() -> None:
    """They are there beside what a plan is made of: values of all wires, scalars of the wires of filtered queries."""
    plain = Sizes(BLS12_381, 1 << 18, 1 << 18, 2)
    packed, gathered = replace(plain, packed=True), replace(plain, n_gathered=1 << 17)
    for larger, n_bytes in ((packed, 32 << 18), (gathered, 32 << 17)):
        assert larger.commit_bytes() - plain.commit_bytes() == n_bytes
        assert larger.commit_bytes(LEAST_SLICE) - plain.commit_bytes(LEAST_SLICE) == n_bytes
    assert packed.quotient_bytes - plain.quotient_bytes == 32 << 18
    assert gathered.quotient_bytes == plain.quotient_bytes


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_the_plan_is_for_the_key_and_the_witness_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    cs = ConstraintSystem(BN254)
    x = cs.alloc()
    for _ in range(20):
        x = x * x
    cs.output(x)
    system = cs.finish()
    key = setup(system, layout=bellperson_layout)
    seen: list[Sizes] = []
    plan = Sizes.slice_within
    monkeypatch.setattr(Sizes, "slice_within", lambda self, *rest: (seen.append(self), plan(self, *rest))[1])
    packed = run_program(system, FrVector.from_ints(BN254, [3]))
    with Prover(key, r1cs=system, backend="cpu", threads=1, max_memory=1 << 40) as prover:
        proofs = [prover.prove(w, blinding_for_tests=(5, 6)) for w in (packed, packed.expand())]
    assert proofs[0] == proofs[1]
    n_gathered = len(key.a.points) + len(key.b1.points)
    sizes = Sizes(BN254, key.n_wires, key.domain.size, 1, n_gathered=n_gathered)
    assert seen == [replace(sizes, packed=True), sizes]


@pytest.mark.slow
def test_a_circuit_in_python_stays_within_its_cap(tmp_path: Path) -> None:
    """Its witness is packed, and written out for the sums."""
    message = bytes(i % 251 for i in range(600))
    digest = struct.unpack(">8I", hashlib.sha256(message).digest())
    (tmp_path / "input.json").write_text(json.dumps({"digest": digest, "message": list(message)}))
    circuit = (f"{EXAMPLES / 'sha256_preimage.py'}:preimage", "--sizes", "length=600")
    assert peak(tmp_path, "setup", *circuit, "-o", "key.zkey", "--quiet") is not None
    prove = ("prove", *circuit, "--key", "key.zkey", "--input", "input.json", "--quiet", "--threads", "2")
    cap = peak(tmp_path, *prove)
    assert cap is not None
    held = []
    while (found := peak(tmp_path, *prove, "--max-memory", cap := cap * 15 // 16)) is not None:
        held.append(found <= cap)
    assert len(held) > 1 and all(held)


def peak(folder: Path, *words: object) -> int | None:
    """The most resident memory of a command, in bytes; None if it was refused for its cap."""
    command = [sys.executable, "-c", CHILD, *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "bytes were asked for within a budget" in done.stderr, done.stderr
    return int(done.stdout) if done.returncode == 0 else None
