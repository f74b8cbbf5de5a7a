"""What `snarkline bench gpu` needs no GPU for."""

from __future__ import annotations

import numpy as np
import pytest
import typer

from snarkline.cli.bench.gpu import _sizes
from snarkline.cli.bench.gpu_work import weighted_sum
from snarkline.cli.bench.synthetic import KINDS, circuit
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.memory import Arena
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.witness import Witness


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("kind", KINDS)
def test_synthetic_circuits_hold_for_their_witness_and_for_no_other(curve: Curve, kind: str) -> None:
    r1cs, values = circuit(curve, 7, kind)
    assert r1cs.n_constraints == 120
    assert (values[:, 1:] == 0).all(axis=1).mean() > (0.85 if kind == "bits" else 0) - 0.01
    for wire in (None, 3, len(values) - 1):
        changed = values.copy()
        if wire is not None:
            changed[wire, 0] += 2
        witness = Witness(FrVector(curve, changed, Form.CANONICAL))
        with Arena() as arena:
            violation = first_violation(r1cs, witness, threads=1, arena=arena)
        assert (violation is None) == (wire is None)


def test_a_weighted_sum_is_exact_across_its_steps() -> None:
    n = (1 << 18) + 3
    scalars = np.full((n, 4), 2**64 - 1, np.uint64)
    scalar, index = 2**256 - 1, n * (n - 1) // 2 + 5 * n
    assert weighted_sum(scalars, 5, BN254.r) == scalar * index % BN254.r


@pytest.mark.parametrize("text", ["a", "2", "29", "10,x"])
def test_sizes_are_checked(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        _sizes(text)
    assert _sizes("") == [] and _sizes("20,3") == [20, 3]
