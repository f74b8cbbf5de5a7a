"""Circuits of any size, made on the spot, for measurements: no downloads and no compiler."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, ints_to_limbs
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix

KINDS = ("random", "bits")


def circuit(curve: Curve, log_n: int, kind: str) -> tuple[R1CS, npt.NDArray[np.uint64]]:
    """A circuit of 2^log_n - 8 constraints, and a witness as canonical limbs.

    "random": w[k] * w[k + 1] = w[k + 2], values of full width. "bits": nine constraints in ten are b * (b - 1) = 0.
    """
    n, r = (1 << log_n) - 8, curve.r
    n_bits = 0 if kind == "random" else n * 9 // 10
    n_chain = n - n_bits
    chain = [1 + secrets.randbelow(r - 1), 1 + secrets.randbelow(r - 1)]
    for _ in range(n_chain):
        chain.append(chain[-1] * chain[-2] % r)
    values = np.zeros((1 + len(chain) + n_bits, curve.fr_limbs), np.uint64)
    values[0, 0] = 1
    values[1 : 1 + len(chain)] = ints_to_limbs(chain, curve.fr_limbs)
    values[1 + len(chain) :, 0] = np.random.default_rng().integers(0, 2, n_bits)
    bits = np.arange(1 + len(chain), len(values), dtype=np.uint32)
    steps = np.arange(1, 1 + n_chain, dtype=np.uint32)
    coefficients = FrVector.from_ints(curve, [1, r - 1], Form.MONTGOMERY)

    def matrix(columns: npt.NDArray[np.uint32], value: npt.NDArray[np.int64], lengths: list[int]) -> SparseMatrix:
        per_row = np.repeat(lengths, [n_chain, n_bits])
        row_start = np.concatenate([[0], np.cumsum(per_row)]).astype(np.uint64)
        return SparseMatrix(len(values), row_start, columns, value.astype(np.uint32), coefficients)

    bit_and_one = np.stack([bits, np.zeros_like(bits)], 1).reshape(-1)  # b - 1: wire 0 is 1, coefficient 1 is -1
    first = np.zeros(n, np.int64)
    a = matrix(np.concatenate([steps, bits]), first, [1, 1])
    signs = np.concatenate([first[:n_chain], np.tile([0, 1], n_bits)])
    b = matrix(np.concatenate([steps + 1, bit_and_one]), signs, [1, 2])
    c = matrix(steps + 2, first[:n_chain], [1, 0])
    return R1CS(curve=curve, n_wires=len(values), n_public=1, n_outputs=0, matrices=Matrices(a, b, c)), values
