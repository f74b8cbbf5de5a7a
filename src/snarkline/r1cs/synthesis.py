"""Stand-ins for how other provers come from a circuit to a, b and c: `snarkline bench synthesis`, host/synthesis.h."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.native import core
from snarkline.r1cs.matrices import SparseMatrix

Bytes: TypeAlias = npt.NDArray[np.uint8]
ClassicAssignment: TypeAlias = core.ClassicAssignment


def synthesize_sha256_chain(curve: Curve, bits: Bytes, cures: tuple[bool, bool, bool]) -> ClassicAssignment:
    """A circuit run constraint by constraint: one SHA-256 compression for each 512 bits, each bit a byte.

    `cures`: bits straight into linear combinations, recycled vectors, prefetched values.
    """
    return core.synthesize_sha256_chain(curve.name, bits, *cures)


def multiply_published(out: Limbs, matrix: SparseMatrix, values: Limbs, w: Limbs, threads: int) -> None:
    """out = matrix * w, with a value of 32 bytes for each entry and a product each; Montgomery form."""
    curve = matrix.coefficients.curve.name
    core.flat_published(curve, threads, out, matrix.row_start, matrix.column, values, w)


def multiply_classes(out: Limbs, matrix: SparseMatrix, classes: Bytes, integers: Limbs, w: Bytes, threads: int) -> None:
    """out = matrix * w, Montgomery form, for bits w, one a byte.

    Class k up to 252 is the coefficient 2^k, 253 is -1; an entry of class 254 says that the one before it, of class
    253, has the integer whose number is its column.
    """
    curve = matrix.coefficients.curve.name
    core.flat_classes(curve, threads, out, matrix.row_start, matrix.column, classes, integers, w)


def to_montgomery(v: FrVector) -> Limbs:
    """The elements of a canonical vector in Montgomery form, in its place."""
    if v.form is Form.CANONICAL:
        core.Executor(1).from_canonical(v.curve.name, "fr", v.limbs, v.limbs)
    return v.limbs
