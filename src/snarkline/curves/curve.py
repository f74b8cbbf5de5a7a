"""The two curves, with their facts as the compiled core derives them from `csrc/common/curves.h`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from snarkline.native import core


class Group(Enum):
    """The two groups of a pairing: G1 over Fp, G2 over Fp2."""

    G1 = 0
    G2 = 1


@dataclass(frozen=True)
class Curve:
    """A pairing-friendly curve y^2 = x^3 + b with its twist y^2 = x^3 + b2 over Fp2 = Fp[u]/(u^2 + 1).

    `r` is the order of both groups (the scalar field Fr), `q` the modulus of the base field Fp. `generator` generates
    Fr's multiplicative group. Limbs are 64-bit words of an element.
    """

    name: str
    r: int
    q: int
    b: int
    b2: tuple[int, int]
    g1: tuple[int, int]
    g2: tuple[tuple[int, int], tuple[int, int]]
    generator: int
    two_adicity: int
    fp_limbs: int
    fr_limbs: int = 4

    def __repr__(self) -> str:
        return f"<Curve {self.name}>"

    def __reduce__(self) -> tuple[Callable[[str], Curve], tuple[str]]:
        # Curves are told apart by identity: what is copied or comes from another process holds the same objects.
        return curve_by_name, (self.name,)

    def point_limbs(self, group: Group) -> int:
        """64-bit words of an affine point."""
        return 2 * self.fp_limbs * (1 if group is Group.G1 else 2)


BN254 = Curve(**core.curve_facts("bn254"))
BLS12_381 = Curve(**core.curve_facts("bls12_381"))
CURVES = {curve.name: curve for curve in (BN254, BLS12_381)}


def curve_by_name(name: str) -> Curve:
    """The curve of that name. Raises KeyError."""
    return CURVES[name]


def curve_by_scalar_modulus(r: int) -> Curve | None:
    """The curve whose scalar field has modulus `r`, or None."""
    return next((curve for curve in CURVES.values() if curve.r == r), None)
