"""Estimates: sizes from headers, scaling by size, what is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Run

from snarkline import load_proving_key, load_r1cs
from snarkline.curves.curve import BN254
from snarkline.formats.circom.shape import read_shape
from snarkline.groth16.estimate import SAMPLE, Rates, Shape, estimate

RATES = Rates(*(1.0 for _ in range(6)), fixed_g1=1 / SAMPLE, fixed_g2=3 / SAMPLE)
SHAPE = Shape(BN254, n_wires=SAMPLE, n_public=0, n_entries=2 * SAMPLE, log_domain=13)


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_sizes_are_those_of_the_files(circuit: Path) -> None:
    r1cs, key = load_r1cs(circuit / "circuit.r1cs"), load_proving_key(circuit / "circuit.zkey")
    for shape in (read_shape(circuit / "circuit.r1cs"), read_shape(circuit / "circuit.zkey")):
        assert (shape.curve, shape.n_wires, shape.n_public) == (r1cs.curve, r1cs.n_wires, r1cs.n_public)
        assert shape.domain_size == key.domain.size
    m = r1cs.matrices
    assert m.c is not None
    entries = sum(matrix.n_entries for matrix in (m.a, m.b, m.c)) + r1cs.n_public + 1
    assert read_shape(circuit / "circuit.r1cs").n_entries == entries
    assert key.matrices is not None
    assert read_shape(circuit / "circuit.zkey").n_entries == key.matrices.a.n_entries + key.matrices.b.n_entries


def test_at_the_sample_size_the_rates_are_the_times() -> None:
    found = estimate(SHAPE, RATES, 0, 2)
    assert found.proof_s[1] == pytest.approx(3 + 2 + 1 + 1 + 1, rel=1e-3)
    assert found.setup_s == pytest.approx(2 + 4 + 3 + 4, rel=1e-3)


def test_times_grow_with_every_size() -> None:
    least, most = estimate(SHAPE, replace(RATES, wires_bits=0.1, private_bits=0.1), 0, 2).proof_s
    assert least < most
    for larger in (replace(SHAPE, n_wires=2 * SAMPLE), replace(SHAPE, log_domain=14), replace(SHAPE, n_entries=10**6)):
        small, large = estimate(SHAPE, RATES, 0, 2), estimate(larger, RATES, 0, 2)
        assert large.proof_s[1] > small.proof_s[1]
        assert large.setup_s > small.setup_s
        assert large.proof_bytes > small.proof_bytes


def test_estimate(run: Run, circuit: Path) -> None:
    for file in ("circuit.r1cs", "circuit.zkey"):
        facts = json.loads(run("estimate", circuit / file, "--json", "--threads", "1").out)
        assert facts["estimate"] is True
        assert 0 < facts["proof_seconds"]["least"] <= facts["proof_seconds"]["most"]
        assert facts["proof_peak_bytes"] > 1 << 20
    text = run("estimate", circuit / "circuit.r1cs").out
    assert "an estimate" in text and "proof:" in text and "setup:" in text
    assert "under 0.01 s" in text and "0.00 s" not in text  # of a circuit of two constraints


def test_estimate_of_something_else(run: Run, circuit: Path) -> None:
    outcome = run("estimate", circuit / "circuit.wtns")
    assert outcome.code == 2
    assert "expected a circuit (r1cs) or a proving key (zkey), found b'wtns' (a witness)" in outcome.err
