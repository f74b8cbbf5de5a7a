"""What differs between keys is data: the same circuit and secrets laid out as bellperson does give the same proof."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_circuits import EDGE_CIRCUITS, WASTE, development_key

from snarkline.curves.curve import BLS12_381, CURVES, Curve, Group
from snarkline.curves.pairing import combine
from snarkline.curves.point import Point, PointTable
from snarkline.groth16.keys import HBasis, ProvingKey, Query
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

BLINDING = (1 << 100, 1 << 99)


def with_coefficients(key: ProvingKey) -> ProvingKey:
    """H over the coefficients of h: tau^i Z(tau) / delta for i < n - 1, and the curve's own generator as shift."""
    tau, delta, r, n = WASTE[0], WASTE[4], key.curve.r, key.domain.size
    factor = (pow(tau, n, r) - 1) * pow(delta, -1, r)
    generator = Point.generator(key.curve, Group.G1)
    h = [combine([generator], [factor * pow(tau, i, r)]) for i in range(n - 1)]
    table = PointTable.from_points(key.curve, Group.G1, h)
    return replace(key, h_basis=HBasis.COEFFICIENTS, shift=key.curve.generator, h=table)


def sparse(query: Query) -> Query:
    """Without its points at infinity, and with the wires of the others."""
    wires = np.flatnonzero(query.points.limbs.any(axis=1)).astype(np.uint32)
    points = PointTable(query.points.curve, query.points.group, query.points.limbs[wires])
    return Query(points, wires=wires)


def with_sparse_queries(key: ProvingKey) -> ProvingKey:
    b1 = sparse(key.b1)
    return replace(key, a=sparse(key.a), b1=b1, b2=replace(sparse(key.b2), wires=b1.wires))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("name", ["multiplier", "unused wires", "B all at infinity", "no constraint"])
def test_layout_does_not_change_the_proof(name: str, curve: Curve, backend: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    proofs = []
    for other in (key, with_coefficients(key), with_sparse_queries(key), with_sparse_queries(with_coefficients(key))):
        with Prover(other, backend=backend, threads=1) as prover:
            proofs.append(prover.prove(circuit.witness(curve), blinding_for_tests=BLINDING))
    assert proofs[1:] == proofs[:1] * 3
    assert verify(key.verifying_key, proofs[0])


def test_all_at_once_without_matrices() -> None:
    """As a bellperson key comes: sparse queries, coefficients, no matrices."""
    circuit = EDGE_CIRCUITS["17 constraints"]()
    key = development_key("17 constraints", BLS12_381)
    bellperson = replace(with_sparse_queries(with_coefficients(key)), matrices=None)
    with Prover(bellperson, r1cs=circuit.r1cs(BLS12_381), threads=2) as prover:
        assert verify(key.verifying_key, prover.prove(circuit.witness(BLS12_381)))
