"""A proof against its discrete logarithms, computed by hand from eprint 2016/260 and multiplied out by py_ecc."""

from __future__ import annotations

from typing import Any

import py_ecc.optimized_bls12_381
import py_ecc.optimized_bn128
import pytest
from tiny_circuits import EDGE_CIRCUITS, WASTE, Circuit, development_key

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.prover import Prover

R, S = 0xABCDEF0123456789, 0x1122334455667788
ORACLES: dict[str, Any] = {"bn254": py_ecc.optimized_bn128, "bls12_381": py_ecc.optimized_bls12_381}


class ByHand:
    """The polynomials of a circuit at tau, from the definition of Lagrange interpolation."""

    def __init__(self, circuit: Circuit, key: ProvingKey) -> None:
        self.r, self.n, self.n_public = key.curve.r, key.domain.size, circuit.n_public
        self.tau, self.alpha, self.beta, self.gamma, self.delta = WASTE
        self.w = [v % self.r for v in circuit.values]
        self.roots = [pow(key.domain.root, i, self.r) for i in range(self.n)]
        rows = [list(row) for row in circuit.constraints]
        bound = [[[(i, 1)], [], []] for i in range(circuit.n_public + 1)]
        self.rows = rows + bound

    def lagrange(self, j: int) -> int:
        value = 1
        for i, root in enumerate(self.roots):
            if i != j:
                value = value * (self.tau - root) * pow(self.roots[j] - root, -1, self.r) % self.r
        return value

    def wire(self, matrix: int, i: int) -> int:
        """A_i(tau), B_i(tau) or C_i(tau)."""
        basis = [self.lagrange(j) for j in range(len(self.rows))]
        return sum(c * basis[j] for j, row in enumerate(self.rows) for wire, c in row[matrix] if wire == i) % self.r

    def proof(self, blind_r: int, blind_s: int) -> tuple[int, int, int]:
        """The discrete logarithms of A, B and C."""
        r, z = self.r, pow(self.tau, self.n, self.r) - 1
        a, b, c = ([self.wire(k, i) for i in range(len(self.w))] for k in range(3))
        at, bt, ct = (sum(x * w for x, w in zip(column, self.w, strict=True)) for column in (a, b, c))
        h = (at * bt - ct) * pow(z, -1, r)
        private = range(self.n_public + 1, len(self.w))
        k = sum(self.w[i] * (self.beta * a[i] + self.alpha * b[i] + c[i]) for i in private)
        log_a = self.alpha + at + blind_r * self.delta
        log_b = self.beta + bt + blind_s * self.delta
        log_c = (k + h * z) * pow(self.delta, -1, r) + blind_s * log_a + blind_r * log_b
        log_c -= blind_r * blind_s * self.delta
        return log_a % r, log_b % r, log_c % r


def multiple(curve: Curve, g2: bool, k: int) -> tuple[int, ...]:
    """The coordinates of k times the generator, by py_ecc; zeros for infinity."""
    oracle = ORACLES[curve.name]
    point = oracle.multiply(oracle.G2 if g2 else oracle.G1, k)
    if oracle.is_inf(point):
        return (0,) * (4 if g2 else 2)
    return tuple(int(c) for x in oracle.normalize(point) for c in (x.coeffs if g2 else (x,)))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize(
    "name", ["multiplier", "no public signal", "only public signals", "no constraint", "unused wires"]
)
def test_proof_has_the_logarithms_of_the_paper(curve: Curve, name: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    with Prover(key, threads=1) as prover:
        proof = prover.prove(circuit.witness(curve), blinding_for_tests=(R, S))
    a, b, c = ByHand(circuit, key).proof(R, S)
    assert proof.a.coordinates() == multiple(curve, False, a)
    assert proof.b.coordinates() == multiple(curve, True, b)
    assert proof.c.coordinates() == multiple(curve, False, c)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_key_has_the_logarithms_of_the_paper(curve: Curve) -> None:
    circuit, key = EDGE_CIRCUITS["multiplier"](), development_key("multiplier", curve)
    hand = ByHand(circuit, key)
    r = curve.r
    for i in range(key.n_wires):
        a, b, c = (hand.wire(k, i) for k in range(3))
        assert key.a.points.point(i).coordinates() == multiple(curve, False, a)
        assert key.b1.points.point(i).coordinates() == multiple(curve, False, b)
        assert key.b2.points.point(i).coordinates() == multiple(curve, True, b)
        k = hand.beta * a + hand.alpha * b + c
        if i <= key.n_public:
            expected = multiple(curve, False, k * pow(hand.gamma, -1, r) % r)
            assert key.verifying_key.ic[i].coordinates() == expected
        else:
            expected = multiple(curve, False, k * pow(hand.delta, -1, r) % r)
            assert key.l.points.point(i - key.l.first).coordinates() == expected
    # The H query: the odd Lagrange polynomials of the doubled domain, whose root is the shift, over delta.
    doubled = [pow(key.shift, i, r) for i in range(2 * hand.n)]
    for j in range(hand.n):
        value = pow(hand.delta, -1, r)
        for i, root in enumerate(doubled):
            if i != 2 * j + 1:
                value = value * (hand.tau - root) * pow(doubled[2 * j + 1] - root, -1, r) % r
        assert key.h.point(j).coordinates() == multiple(curve, False, value)
    vk = key.verifying_key
    assert vk.alpha1.coordinates() == multiple(curve, False, hand.alpha)
    assert vk.beta2.coordinates() == multiple(curve, True, hand.beta)
    assert vk.gamma2.coordinates() == multiple(curve, True, hand.gamma)
    assert vk.delta2.coordinates() == multiple(curve, True, hand.delta)
    assert key.beta1.coordinates() == multiple(curve, False, hand.beta)
    assert key.delta1.coordinates() == multiple(curve, False, hand.delta)
