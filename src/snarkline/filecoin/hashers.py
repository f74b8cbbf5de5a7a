"""The two hashes of Filecoin's trees, over rows of 32-byte elements."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
import numpy.typing as npt

from snarkline.circuit.gadgets.poseidon_parameters import neptune_parameters

Elements = npt.NDArray[np.uint8]


def sha256_rows(rows: Elements) -> Elements:
    """SHA-256 of each row of elements, shape (n, arity, 32), with its two highest bits cleared."""
    digests = b"".join(hashlib.sha256(row.tobytes()).digest() for row in rows)
    out = np.frombuffer(bytearray(digests), np.uint8).reshape(-1, 32)
    out[:, 31] &= 0x3F
    return out


def poseidon_rows(arity: int, rows: Elements) -> Elements:
    """Poseidon of each row of `arity` field elements, shape (n, arity, 32)."""
    parameters, out = neptune_parameters(arity), bytearray()
    for row in rows.reshape(-1, arity, 32):
        out += parameters.hash([int.from_bytes(e.tobytes(), "little") for e in row]).to_bytes(32, "little")
    return np.frombuffer(out, np.uint8).reshape(-1, 32)


def poseidon(arity: int) -> partial[Elements]:
    """The function that hashes rows of `arity` elements."""
    return partial(poseidon_rows, arity)
