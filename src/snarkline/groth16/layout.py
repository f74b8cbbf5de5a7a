"""How kinds of keys differ, as data: the domain, the coset, the basis of H, and which wires a query has points for."""

from __future__ import annotations

from dataclasses import dataclass

from snarkline.backend.base import Domain
from snarkline.curves.curve import Curve
from snarkline.errors import MismatchError
from snarkline.groth16.keys import HBasis, odd_coset_domain


@dataclass(frozen=True)
class KeyLayout:
    """The domain of a key for a number of rows, and how its queries are laid out.

    `filtered`: the queries A and B have points only for wires that a row of A (of B) reads.
    """

    domain: Domain
    shift: int
    h_basis: HBasis
    filtered: bool


def circom_layout(curve: Curve, n_rows: int) -> KeyLayout:
    """The layout of circom's keys for a circuit whose matrices have `n_rows` rows, those of the public wires included.

    Raises MismatchError where the curve has no domain for so many.
    """
    domain, shift = odd_coset_domain(curve, max(1, (n_rows - 1).bit_length()))
    return KeyLayout(domain, shift, HBasis.ODD_COSET, filtered=False)


def bellperson_layout(curve: Curve, n_rows: int) -> KeyLayout:
    """The layout of bellman's and bellperson's keys: H in coefficients, over the coset of the field's generator.

    Raises MismatchError where the curve has no domain for so many rows.
    """
    log_size = (n_rows - 1).bit_length()
    if log_size >= curve.two_adicity:
        raise MismatchError(f"{n_rows} rows: {curve.name} has domains up to 2^{curve.two_adicity - 1} here")
    root = pow(curve.generator, (curve.r - 1) >> log_size, curve.r)
    return KeyLayout(Domain(curve, log_size, root), curve.generator, HBasis.COEFFICIENTS, filtered=True)
