"""The two hashes of Filecoin's trees, over rows of 32-byte elements."""

from __future__ import annotations

import hashlib
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from snarkline.circuit.gadgets.poseidon import native_parameters
from snarkline.circuit.gadgets.poseidon_parameters import neptune_parameters
from snarkline.curves.curve import BLS12_381
from snarkline.curves.vector import FrVector
from snarkline.native import core
from snarkline.threads import usable_threads

Elements = npt.NDArray[np.uint8]


def truncated_sha256(data: bytes) -> bytes:
    """SHA-256 with its two highest bits (of byte 31) cleared, so that it is a field element."""
    digest = hashlib.sha256(data).digest()
    return digest[:31] + bytes([digest[31] & 0x3F])


def sha256_rows(rows: Elements) -> Elements:
    """The truncated SHA-256 of each row of elements, shape (n, arity, 32)."""
    return np.frombuffer(b"".join(truncated_sha256(row.tobytes()) for row in rows), np.uint8).reshape(-1, 32)


def poseidon_rows(arity: int, rows: Elements) -> Elements:
    """Poseidon of each row of `arity` field elements, shape (n, arity, 32)."""
    flat = np.ascontiguousarray(rows).reshape(-1, 32).view("<u8")
    out = np.empty((len(flat) // arity, 4), np.uint64)
    core.poseidon_rows(BLS12_381.name, usable_threads(), _parameters(arity).limbs, flat, out)
    return out.view(np.uint8)


@cache
def _parameters(arity: int) -> FrVector:
    return native_parameters(neptune_parameters(arity))


def poseidon(arity: int) -> partial[Elements]:
    """The function that hashes rows of `arity` elements."""
    return partial(poseidon_rows, arity)
