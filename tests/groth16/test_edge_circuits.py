"""Circuits at the edges of what is legal: they prove, on both curves, with every backend to the same bytes."""

from __future__ import annotations

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key, quiet_setup

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

BLINDING = (5, 1 << 200)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("name", EDGE_CIRCUITS)
def test_proves_and_verifies(curve: Curve, name: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    rows = len(circuit.constraints) + circuit.n_public + 1
    assert rows <= key.domain.size < max(2 * rows, 3)
    public = tuple(v % curve.r for v in circuit.values[1 : circuit.n_public + 1])
    with Prover(key, r1cs=circuit.r1cs(curve), threads=1) as prover:
        proof = prover.prove(circuit.witness(curve))
        again = prover.prove(circuit.witness(curve))
    assert proof.public == public
    assert verify(key.verifying_key, proof)
    assert proof.a != again.a and proof.b != again.b and proof.c != again.c
    for i in range(circuit.n_public):
        other = [*public[:i], (public[i] + 1) % curve.r, *public[i + 1 :]]
        assert not verify(key.verifying_key, proof, other)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("name", ["one constraint", "no constraint", "only public signals", "B all at infinity"])
def test_backends_agree_to_the_byte(curve: Curve, name: str) -> None:
    circuit = EDGE_CIRCUITS[name]()
    proofs = []
    for backend in ("cpu", "reference"):
        key = quiet_setup(circuit.r1cs(curve), backend)
        with Prover(key, backend=backend, threads=2) as prover:
            proofs.append(prover.prove(circuit.witness(curve), blinding_for_tests=BLINDING))
    assert proofs[0] == proofs[1]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_thread_count_does_not_change_the_proof(threads: int) -> None:
    circuit, key = EDGE_CIRCUITS["17 constraints"](), development_key("17 constraints", BN254)
    with Prover(key, threads=1) as alone, Prover(key, threads=threads) as prover:
        expected = alone.prove(circuit.witness(BN254), blinding_for_tests=BLINDING)
        assert prover.prove(circuit.witness(BN254), blinding_for_tests=BLINDING) == expected
