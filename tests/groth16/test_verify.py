"""The verifier: what it accepts, what is false, what it refuses to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import py_ecc.optimized_bls12_381
import py_ecc.optimized_bn128
import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key

from snarkline.backend.reference import multiply_point
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve, Group
from snarkline.curves.pairing import combine, negate
from snarkline.curves.point import Point
from snarkline.errors import FormatError, InputError, MismatchError
from snarkline.groth16.keys import Proof, VerifyingKey
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import self_check, verify, verify_many

NAMES = ("multiplier", "no public signal", "20 public signals")


def proof_of(name: str, curve: Curve) -> tuple[VerifyingKey, Proof]:
    key = development_key(name, curve)
    with Prover(key, threads=1) as prover:
        return key.verifying_key, prover.prove(EDGE_CIRCUITS[name]().witness(curve))


@pytest.fixture(params=CURVES.values(), ids=CURVES)
def curve(request: pytest.FixtureRequest) -> Curve:
    value: Curve = request.param
    return value


def plus_generator(p: Point) -> Point:
    return combine([p, Point.generator(p.curve, p.group)], [1, 1])


@pytest.mark.parametrize("name", ["bn254", "bls12_381"])
def test_the_equation_holds_in_py_ecc(name: str) -> None:
    """The same equation with another implementation's pairing."""
    oracle: Any = {"bn254": py_ecc.optimized_bn128, "bls12_381": py_ecc.optimized_bls12_381}[name]

    def g1(p: Point) -> Any:
        return (*(oracle.FQ(c) for c in p.coordinates()), oracle.FQ(1))

    def g2(p: Point) -> Any:
        c = p.coordinates()
        return oracle.FQ2(c[:2]), oracle.FQ2(c[2:]), oracle.FQ2.one()

    vk, proof = proof_of("multiplier", CURVES[name])
    x = oracle.add(g1(vk.ic[0]), oracle.multiply(g1(vk.ic[1]), proof.public[0]))
    product = oracle.FQ12.one()
    for p, q in (
        (oracle.neg(g1(proof.a)), proof.b),
        (g1(vk.alpha1), vk.beta2),
        (x, vk.gamma2),
        (g1(proof.c), vk.delta2),
    ):
        product *= oracle.pairing(g2(q), p, final_exponentiate=False)
    assert oracle.final_exponentiate(product) == oracle.FQ12.one()
    assert verify(vk, proof)


@pytest.mark.parametrize("change", [plus_generator, negate])
@pytest.mark.parametrize("element", ["a", "b", "c"])
def test_another_valid_point_is_a_false_proof(curve: Curve, element: str, change: Callable[[Point], Point]) -> None:
    vk, proof = proof_of("multiplier", curve)
    other = replace(proof, **{element: change(getattr(proof, element))})
    assert verify(vk, other) is False
    assert verify_many(vk, [(proof, None), (other, None)]) is False


def test_two_negated_points_are_the_same_proof(curve: Curve) -> None:
    """Groth16 proofs are malleable: e(-A, -B) = e(A, B)."""
    vk, proof = proof_of("multiplier", curve)
    assert verify(vk, replace(proof, a=negate(proof.a), b=negate(proof.b)))


def test_proof_for_another_key(curve: Curve) -> None:
    _, proof = proof_of("multiplier", curve)
    vk, _ = proof_of("one constraint", curve)
    assert verify(vk, proof) is False


@pytest.mark.parametrize("n", [0, 19, 21])
def test_number_of_public_inputs(curve: Curve, n: int) -> None:
    vk, proof = proof_of("20 public signals", curve)
    with pytest.raises(MismatchError, match=f"{n} public inputs.*20"):
        verify(vk, proof, (*proof.public, 0)[:n])


@pytest.mark.parametrize("index", [0, 19])
def test_public_input_outside_the_field(curve: Curve, index: int) -> None:
    vk, proof = proof_of("20 public signals", curve)
    for value in (-1, proof.public[index] - curve.r, curve.r, proof.public[index] + curve.r, 1 << 256, 1 << 4096):
        public = [*proof.public]
        public[index] = value
        with pytest.raises(FormatError, match=f"public input {index}"):
            verify(vk, proof, public)


def test_public_input_at_the_edge_of_the_field(curve: Curve) -> None:
    vk, proof = proof_of("multiplier", curve)
    assert verify(vk, proof, [curve.r - 1]) is False
    assert verify(vk, proof, [0]) is False


def test_public_input_that_is_not_an_integer(curve: Curve) -> None:
    vk, proof = proof_of("multiplier", curve)
    for value in (77.0, "77", None, True):
        with pytest.raises(InputError):
            verify(vk, proof, [value])  # type: ignore[list-item]


@pytest.mark.parametrize("element", ["a", "b", "c"])
def test_point_at_infinity(curve: Curve, element: str) -> None:
    vk, proof = proof_of("multiplier", curve)
    infinity = Point.infinity(curve, getattr(proof, element).group)
    with pytest.raises(FormatError, match="infinity"):
        verify(vk, replace(proof, **{element: infinity}))


@pytest.mark.parametrize("element", ["a", "b", "c"])
def test_point_off_the_curve(curve: Curve, element: str) -> None:
    vk, proof = proof_of("multiplier", curve)
    p = getattr(proof, element)
    zero = 0 if p.group is Group.G1 else (0, 0)
    for wrong in (replace(p, x=p.y, y=p.x), replace(p, x=zero, y=zero), replace(p, y=zero)):
        with pytest.raises(FormatError, match=f"proof point {element.upper()}"):
            verify(vk, replace(proof, **{element: wrong}))


@pytest.mark.parametrize("element", ["a", "b", "c"])
def test_coordinate_not_below_the_modulus(curve: Curve, element: str) -> None:
    """x + q names the same element, so it would be a second encoding of the same proof."""
    vk, proof = proof_of("multiplier", curve)
    p = getattr(proof, element)
    for excess in (curve.q, -curve.q):
        x = p.x + excess if isinstance(p.x, int) else (p.x[0], p.x[1] + excess)
        with pytest.raises(FormatError, match=f"proof point {element.upper()}"):
            verify(vk, replace(proof, **{element: replace(p, x=x)}))


@pytest.mark.parametrize(("curve", "element"), [(BN254, "b"), (BLS12_381, "a"), (BLS12_381, "b"), (BLS12_381, "c")])
def test_point_outside_the_subgroup(curve: Curve, element: str) -> None:
    """In G1 of BN254 there is none: the curve has r points."""
    vk, proof = proof_of("multiplier", curve)
    outside = curve_point_outside_subgroup(curve, getattr(proof, element).group)
    stranger = replace(proof, **{element: outside})
    with pytest.raises(FormatError, match=f"proof point {element.upper()}"):
        verify(vk, stranger)
    assert self_check(vk, proof) and not self_check(vk, stranger)


def test_point_of_the_other_group_or_curve(curve: Curve) -> None:
    vk, proof = proof_of("multiplier", curve)
    with pytest.raises(MismatchError):
        verify(vk, replace(proof, a=proof.b))
    other = BN254 if curve is BLS12_381 else BLS12_381
    with pytest.raises(MismatchError):
        verify(vk, replace(proof, c=Point.generator(other, Group.G1)))
    with pytest.raises(MismatchError):
        verify(vk, replace(proof, curve=other))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_many(curve: Curve, n: int) -> None:
    key = development_key("multiplier", curve)
    with Prover(key, threads=1) as prover:
        proofs = [prover.prove(EDGE_CIRCUITS["multiplier"]().witness(curve)) for _ in range(n)]
    vk = key.verifying_key
    assert verify_many(vk, [(proof, proof.public) for proof in proofs])
    for i in range(n):
        wrong = [(p, [(p.public[0] + (i == k)) % curve.r]) for k, p in enumerate(proofs)]
        assert not verify_many(vk, wrong)


def test_many_is_not_fooled_by_errors_that_cancel(curve: Curve) -> None:
    """C + G and C - G: a sum without random coefficients would accept the pair."""
    vk, proof = proof_of("multiplier", curve)
    g = Point.generator(curve, Group.G1)
    up = replace(proof, c=combine([proof.c, g], [1, 1]))
    down = replace(proof, c=combine([proof.c, g], [1, curve.r - 1]))
    assert not verify_many(vk, [(up, None), (down, None)])


def test_many_refuses_malformed_members(curve: Curve) -> None:
    vk, proof = proof_of("multiplier", curve)
    with pytest.raises(MismatchError):
        verify_many(vk, [(proof, None), (proof, [])])
    with pytest.raises(FormatError):
        verify_many(vk, [(proof, None), (replace(proof, c=Point.infinity(curve, Group.G1)), None)])


@pytest.mark.parametrize("name", NAMES)
def test_public_inputs_travel_on_the_proof(curve: Curve, name: str) -> None:
    vk, proof = proof_of(name, curve)
    assert verify(vk, proof) and verify(vk, proof, list(proof.public))


def curve_point_outside_subgroup(curve: Curve, group: Group) -> Point:
    """The first point by its x coordinate whose multiple by r is not infinity."""
    b = (curve.b, 0) if group is Group.G1 else curve.b2
    for x in range(1, 100):
        y = fp2_square_root((pow(x, 3, curve.q) + b[0], b[1]), curve.q)
        if y is not None and (group is Group.G2 or y[1] == 0):
            on_g1 = group is Group.G1
            point = Point(curve, group, x, y[0]) if on_g1 else Point(curve, group, (x, 0), y)
            if not multiply_point(point, curve.r).is_infinity:
                return point
    raise AssertionError("no such point")


def fp2_square_root(a: tuple[int, int], q: int) -> tuple[int, int] | None:
    """A square root in Fp2 = Fp[u]/(u^2 + 1) by the norm, for q = 3 mod 4; None where there is none."""

    def root(v: int) -> int | None:
        s = pow(v, (q + 1) // 4, q)
        return s if s * s % q == v % q else None

    norm = root(a[0] * a[0] + a[1] * a[1])
    for sign in (1, -1):
        if norm is not None and (c0 := root((a[0] + sign * norm) * pow(2, -1, q))):
            c1 = a[1] * pow(2 * c0, -1, q) % q
            if ((c0 * c0 - c1 * c1 - a[0]) % q, (2 * c0 * c1 - a[1]) % q) == (0, 0):
                return c0, c1
    return None
