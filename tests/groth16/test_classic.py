"""The classic layout: the proofs of `Prover`, made from vectors that are held on both sides of a call."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key, witness

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.errors import InternalError, MismatchError, UnsatisfiedError
from snarkline.groth16 import classic
from snarkline.groth16.classic import ClassicProver
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify
from snarkline.memory import Release
from snarkline.memory.moments import Moments
from snarkline.trace import Timeline

NAME = "17 constraints"
LADDER = EDGE_CIRCUITS[NAME]()
VECTOR = 32 * 32
"""Bytes of one of its vectors: a domain of 32."""


def classic_prover(curve: Curve = BN254, **options: object) -> ClassicProver:
    key = development_key(NAME, curve)
    return ClassicProver(key, r1cs=LADDER.r1cs(curve), backend="cpu", threads=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("release", Release)
def test_proofs_are_those_of_the_prover(curve: Curve, release: Release) -> None:
    values = witness(curve, LADDER.values)
    with Prover(development_key(NAME, curve), threads=1) as prover:
        expected = prover.prove(values, blinding_for_tests=(3, 5))
    with classic_prover(curve, release=release) as layout:
        assert layout.prove([values] * 3, blinding_for_tests=(3, 5)) == [expected] * 3


def test_blinding_is_drawn_for_each_proof() -> None:
    with classic_prover() as layout:
        proofs = layout.prove([witness(BN254, LADDER.values)] * 3)
        assert len({proof.a for proof in proofs}) == len({proof.b for proof in proofs}) == 3
        assert all(verify(layout.key.verifying_key, proof) for proof in proofs)


def test_no_proofs_of_no_witnesses() -> None:
    with classic_prover() as layout:
        assert layout.prove([]) == []


def test_a_bad_witness_is_refused_before_any_curve_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snarkline.groth16.prove.commit", lambda *_: pytest.fail("curve work"))
    good, bad = (witness(BN254, [*LADDER.values[:-1], LADDER.values[-1] + extra]) for extra in (0, 1))
    with classic_prover() as layout, pytest.raises(UnsatisfiedError):
        layout.prove([good, bad])


def test_a_proof_that_does_not_verify_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    assemble = classic.prove.assemble
    monkeypatch.setattr(
        "snarkline.groth16.prove.assemble",
        lambda backend, key, sums, public, r, s: assemble(backend, key, sums, [public[0] + 1, *public[1:]], r, s),
    )
    with classic_prover() as layout, pytest.raises(InternalError, match="nothing was handed out"):
        layout.prove([witness(BN254, LADDER.values)])


def test_a_key_without_matrices_needs_the_circuit() -> None:
    key = replace(development_key(NAME, BN254), matrices=None)
    with pytest.raises(MismatchError, match="the key carries no matrices"):
        ClassicProver(key)


def test_the_circuit_is_held_against_the_key() -> None:
    """Also against a key that has matrices, and needs no circuit."""
    key = development_key(NAME, BN254)
    other = EDGE_CIRCUITS["16 constraints"]()
    with pytest.raises(MismatchError, match=r"is for \d+ wires"):
        ClassicProver(key, r1cs=other.r1cs(BN254))
    with pytest.raises(MismatchError, match="is over bn254, the circuit over bls12_381"):
        ClassicProver(key, r1cs=LADDER.r1cs(BLS12_381))


def held_bytes(layout: ClassicProver) -> int:
    return layout.arena.stats().lent_bytes


@pytest.mark.parametrize("keep", [False, True])
def test_the_callers_vectors_and_the_copies_go_when_the_call_returns(keep: bool) -> None:
    """The box is emptied by the call; with `keep` both sides are still there afterwards."""
    with classic_prover(keep=keep, release=Release.DETACHED) as layout:
        statements = [layout.state(witness(BN254, LADDER.values))] * 4
        before = held_bytes(layout)
        box = [[layout.evaluate(statement) for statement in statements]]
        evaluated = held_bytes(layout) - before
        assert evaluated >= 4 * 3 * VECTOR
        layout.call(box, statements, lambda: (3, 5))
        assert box == []
        assert held_bytes(layout) - before == (2 * evaluated if keep else 0)


def test_moments_are_in_order() -> None:
    moments = Moments()
    with classic_prover() as layout:
        statement = layout.state(witness(BN254, LADDER.values))
        layout.call([[layout.evaluate(statement)]], [statement], lambda: (3, 5), moments)
    passed = [moments.entered, moments.work_done, moments.native_last, moments.native_back, moments.last]
    assert passed == sorted(passed) and moments.entered > 0


def test_spans_are_called_as_the_columns_of_the_report() -> None:
    """`bench porep` prints the seconds of the wrapper and of the inner function, and the timeline of the same call."""
    with classic_prover() as layout:
        statement = layout.state(witness(BN254, LADDER.values))
        with Timeline() as timeline:
            layout.call([[layout.evaluate(statement)]], [statement], lambda: (3, 5))
    spans = {span.name: span for span in timeline.spans}
    assert spans["inner"].parent == spans["wrapper"].id and "kernels" not in spans
