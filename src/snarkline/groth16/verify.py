"""The verifier, for one proof and for many. Groth, eprint 2016/260, section 3.2:

e(A, B) = e(alpha, beta) * e(sum_i public_i ic_i, gamma) * e(C, delta)       with public_0 = 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import mul
from random import SystemRandom

from snarkline.curves.curve import Group
from snarkline.curves.pairing import combine, is_member, negate, pairing_product_is_one
from snarkline.curves.point import Point
from snarkline.errors import FormatError, InputError, MismatchError
from snarkline.groth16.keys import Proof, VerifyingKey

COEFFICIENT_BITS = 128
"""A batch with a false proof passes with probability 2^-128 (Bellare, Garay and Rabin, EUROCRYPT 1998, section 3.3)."""


def verify(vk: VerifyingKey, proof: Proof, public: Sequence[int] | None = None) -> bool:
    """Whether the proof holds for the public inputs (those on the proof if `public` is None).

    Malformed input is an error, not a false proof: MismatchError for another curve, too few or too many public
    inputs; FormatError for a public input outside [0, r) and for a point of the proof that is off its curve, outside
    the subgroup of order r, or at infinity.
    """
    x = combine(vk.ic, [1, *_checked_input(vk, proof, public)])
    return pairing_product_is_one(
        [(negate(proof.a), proof.b), (vk.alpha1, vk.beta2), (x, vk.gamma2), (proof.c, vk.delta2)]
    )


def self_check(vk: VerifyingKey, proof: Proof) -> bool:
    """`verify` for a proof made here: what would be malformed input from a stranger is a false proof."""
    try:
        return verify(vk, proof)
    except InputError:  # a point that is not in its group
        return False


def verify_many(vk: VerifyingKey, proofs: Iterable[tuple[Proof, Sequence[int] | None]]) -> bool:
    """Whether all proofs hold for their public inputs (those on the proof for None). True for no proofs.

    A random linear combination of the n equations: one product of n + 3 pairings with one final exponentiation. It
    does not tell which proof is false. Raises like `verify`.
    """
    checked = [(proof, (1, *_checked_input(vk, proof, public))) for proof, public in proofs]
    if not checked:
        return True
    system = SystemRandom()
    z = [system.getrandbits(COEFFICIENT_BITS) for _ in checked]
    columns = zip(*(public for _, public in checked), strict=True)
    x = combine(vk.ic, [sum(map(mul, z, column)) for column in columns])
    alpha = combine([vk.alpha1], [sum(z)])
    c = combine([proof.c for proof, _ in checked], z)
    pairs = [(negate(combine([proof.a], [k])), proof.b) for (proof, _), k in zip(checked, z, strict=True)]
    return pairing_product_is_one([*pairs, (alpha, vk.beta2), (x, vk.gamma2), (c, vk.delta2)])


def _checked_input(vk: VerifyingKey, proof: Proof, public: Sequence[int] | None) -> Sequence[int]:
    """The public inputs, after everything that a stranger hands in has been checked."""
    if proof.curve is not vk.curve:
        raise MismatchError(f"the proof is over {proof.curve.name}, the verifying key over {vk.curve.name}")
    public = proof.public if public is None else public
    if len(public) != vk.n_public:
        raise MismatchError(f"{len(public)} public inputs, the verifying key is for {vk.n_public}")
    for i, value in enumerate(public):
        if type(value) is not int or not 0 <= value < vk.curve.r:
            raise FormatError(None, f"public input {i}", "an integer in [0, r)", _shown(value))
    for name, point, group in (("A", proof.a, Group.G1), ("B", proof.b, Group.G2), ("C", proof.c, Group.G1)):
        _check_point(vk, f"proof point {name}", point, group)
    return public


def _check_point(vk: VerifyingKey, name: str, point: Point, group: Group) -> None:
    if point.curve is not vk.curve or point.group is not group:
        raise MismatchError(f"{name} is in {point.group.name} of {point.curve.name}, expected {group.name}")
    expected = f"a point of order r on {vk.curve.name}'s {group.name}"
    if point.is_infinity:
        raise FormatError(None, name, expected, "infinity")
    if not is_member(point):
        raise FormatError(None, name, expected, f"({point.x}, {point.y})")


def _shown(value: object) -> str:
    """A public value for an error, cut to what fits a line. Converting a huge integer to decimal could raise."""
    return f"{value:#x}"[:80] if isinstance(value, int) else repr(value)[:80]
