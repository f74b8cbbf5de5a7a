"""Digests of constraint systems and assignments, in order, as conformance/src/digest.rs makes them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from snarkline.curves.vector import Form, FrVector
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured import Block, StructuredR1CS

AUX = np.uint32(1 << 31)
BLOCK_ROWS = 1 << 16


def constraint_digest(system: StructuredR1CS) -> str:
    """SHA-256 over the rows: three counts (u32), then the terms of A, B, C: wire (u32), coefficient (32 bytes), all
    little-endian. The wire of an input is its number, that of an aux its number among the aux with bit 31 set."""
    digest = hashlib.sha256()
    for start in range(0, system.n_constraints, BLOCK_ROWS):
        digest.update(_rows(system, system.rows(start, min(start + BLOCK_ROWS, system.n_constraints))))
    return digest.hexdigest()


def assignment_digests(system: StructuredR1CS, values: FrVector) -> tuple[str, str]:
    """SHA-256 over the values of the inputs (with the constant 1), and over those of the aux. Canonical form."""
    assert values.form is Form.CANONICAL
    n = system.n_public + 1
    inputs, aux = (hashlib.sha256(np.ascontiguousarray(part)) for part in (values.limbs[:n], values.limbs[n:]))
    return inputs.hexdigest(), aux.hexdigest()


def _rows(system: StructuredR1CS, block: Block) -> bytes:
    sides = [_terms(m) for m in block]
    counts = np.stack([np.diff(m.row_start).astype("<u4") for m in block], axis=1)
    n_rows = len(counts)
    sizes = 36 * counts.sum(axis=1, dtype=np.int64) + 12
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros(int(starts[-1]), np.uint8)
    at = starts[:-1]
    out[at[:, None] + np.arange(12)] = np.ascontiguousarray(counts).view(np.uint8).reshape(n_rows, 12)
    at = at + 12
    for side, matrix in zip(sides, block, strict=True):
        n = np.diff(matrix.row_start).astype(np.int64)
        row = np.repeat(np.arange(n_rows), n)
        inside = np.arange(len(row)) - matrix.row_start[:-1].astype(np.int64)[row]
        wires, coefficients = side
        bound = wires <= system.n_public
        ids = np.where(bound, wires, (wires - system.n_public - 1) | AUX).astype("<u4")
        # Terms of a row come in ascending order of wires: inputs, then aux.
        order = np.lexsort((wires, row))
        record = np.concatenate(
            [ids.view(np.uint8).reshape(-1, 4), coefficients.view(np.uint8).reshape(-1, 32)], axis=1
        )
        out[(at[row] + 36 * inside)[:, None] + np.arange(36)] = record[order]
        at = at + 36 * n
    return out.tobytes()


def _terms(matrix: SparseMatrix) -> tuple[Any, Any]:
    canonical = FrVector.from_ints(matrix.coefficients.curve, matrix.coefficients.to_ints()).limbs
    return matrix.column, canonical[matrix.value]
