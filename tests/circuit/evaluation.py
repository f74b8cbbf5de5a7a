"""Recorded circuits evaluated from their definition."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.backend.naive_program import evaluate_naively
from snarkline.curves.vector import FrVector
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import run_program
from snarkline.r1cs.witness import Witness


def satisfied(r1cs: StructuredR1CS, given: Sequence[int]) -> list[int]:
    """The values of all wires; every constraint must hold for them, and the compiled core must find the same ones."""
    r1cs.check()
    wires = evaluate_naively(r1cs, given)
    compiled = run_program(r1cs, FrVector.from_ints(r1cs.curve, given), threads=1).expand(threads=1)
    assert compiled.values.to_ints() == wires
    violation = first_violation(r1cs.flatten(), Witness(FrVector.from_ints(r1cs.curve, wires)), threads=1)
    assert violation is None, r1cs.find(violation.constraint)
    return wires
