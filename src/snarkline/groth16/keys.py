"""Groth16 keys and proofs as data. Notation: Groth, "On the Size of Pairing-based Non-interactive Arguments",
EUROCRYPT 2016 (eprint 2016/260), section 3.2."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from snarkline.backend.base import Domain
from snarkline.curves.curve import Curve
from snarkline.curves.point import Point, PointTable
from snarkline.errors import MismatchError
from snarkline.r1cs.matrices import R1CS, Matrices, bind_public
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices


class HBasis(Enum):
    """The basis in which the H query takes the quotient h = (a * b - c) / Z.

    ODD_COSET: n evaluations of a * b - c on the odd coset (the domain times a 2n-th root of unity); Z is constant
    there and the key has it divided out. COEFFICIENTS: the n - 1 coefficients of h.
    """

    ODD_COSET = "odd coset"
    COEFFICIENTS = "coefficients"


def odd_coset_domain(curve: Curve, log_size: int) -> tuple[Domain, int]:
    """The domain and the shift of circom's keys, in which H is an ODD_COSET query: shift^2 is the domain's root.

    Both are powers of the smallest quadratic non-residue of Fr, as in ffjavascript, not of the curve's own generator.
    Raises MismatchError where Fr has no root of order 2 * 2^log_size.
    """
    if not 0 <= log_size < curve.two_adicity:
        raise MismatchError(
            f"a domain of 2^{log_size} elements: {curve.name} has domains up to 2^{curve.two_adicity - 1}"
        )
    non_residue = next(g for g in range(2, curve.r) if pow(g, (curve.r - 1) // 2, curve.r) != 1)
    shift = pow(non_residue, (curve.r - 1) >> (log_size + 1), curve.r)
    return Domain(curve, log_size, shift * shift % curve.r), shift


@dataclass(frozen=True, eq=False)
class Query:
    """The bases of one MSM and the wires that they belong to; `wires` None means wires first, first + 1, ..."""

    points: PointTable
    first: int = 0
    wires: npt.NDArray[np.uint32] | None = None


@dataclass(frozen=True, eq=False)
class VerifyingKey:
    """alpha in G1; beta, gamma, delta in G2; ic: n_public + 1 points of G1."""

    curve: Curve
    alpha1: Point
    beta2: Point
    gamma2: Point
    delta2: Point
    ic: tuple[Point, ...]

    @property
    def n_public(self) -> int:
        return len(self.ic) - 1


@dataclass(frozen=True, eq=False)
class ProvingKey:
    """Everything that a proof needs besides the witness. What differs between key formats is data here.

    `matrices` is None for formats that carry none. `shift` is the coset generator that goes with `h_basis`. With
    `filtered` the queries A and B have points only for the wires that a row of A (of B) reads; which ones these are the
    circuit tells (`attach`).
    """

    curve: Curve
    n_wires: int
    domain: Domain
    h_basis: HBasis
    shift: int
    matrices: Matrices | StructuredMatrices | None
    verifying_key: VerifyingKey
    beta1: Point
    delta1: Point
    a: Query
    b1: Query
    b2: Query
    l: Query  # noqa: E741
    h: PointTable
    filtered: bool = field(default=False, kw_only=True)

    @property
    def n_public(self) -> int:
        return self.verifying_key.n_public

    def attach(self, r1cs: R1CS | StructuredR1CS) -> ProvingKey:
        """The key with the matrices of its circuit, and with the wires of its queries where they are filtered.

        Raises MismatchError where a query's length is not what the circuit says.
        """
        matrices: Matrices | StructuredMatrices
        if isinstance(r1cs, StructuredR1CS):
            matrices = StructuredMatrices(r1cs)
        else:
            bound = bind_public(r1cs)
            matrices = Matrices(bound.a, bound.b, None)
        key = replace(self, matrices=matrices)
        if not self.filtered:
            return key
        wires_a, wires_b = matrices.wires_read()
        for name, query, wires in (("A", self.a, wires_a), ("B1", self.b1, wires_b), ("B2", self.b2, wires_b)):
            if len(query.points) != len(wires):
                found = f"the circuit's rows read {len(wires)} wires there"
                raise MismatchError(f"the key's query {name} has {len(query.points)} points, {found}")
        a, b1, b2 = (
            Query(self.a.points, 0, wires_a),
            Query(self.b1.points, 0, wires_b),
            Query(self.b2.points, 0, wires_b),
        )
        return replace(key, a=a, b1=b1, b2=b2)

    @property
    def path(self) -> str | None:
        """The file that the key comes from, for messages."""
        return None

    def check_source(self) -> None:
        """Raises InputError if the file that the key is mapped from has changed under it."""

    def release_pages(self) -> None:
        """Take the key's pages out of resident memory, if it is mapped from a file: they come back when read."""


@dataclass(frozen=True)
class Proof:
    """A proof (A in G1, B in G2, C in G1) and the public inputs that it is for."""

    curve: Curve
    a: Point
    b: Point
    c: Point
    public: tuple[int, ...]
