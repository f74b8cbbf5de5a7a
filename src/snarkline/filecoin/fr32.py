"""fr32 padding: 254 bits of data and two zero bits for each 32 bytes, so that each is below the scalar modulus.

127 bytes become 128. Bits are taken least significant first.
"""

from __future__ import annotations

import numpy as np

from snarkline.errors import InputError

UNPADDED, PADDED = 127, 128


def pad(data: bytes) -> bytes:
    """The padded form of a whole number of 127-byte units. Raises InputError for another length."""
    if len(data) % UNPADDED:
        raise InputError(f"sector data: expected a multiple of {UNPADDED} bytes, found {len(data)}")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(-1, 254)
    out = np.zeros((len(bits), 256), np.uint8)
    out[:, :254] = bits
    return np.packbits(out.reshape(-1), bitorder="little").tobytes()


def unpad(data: bytes) -> bytes:
    """The inverse of `pad`, for a whole number of 128-byte units whose free bits are 0. Raises InputError."""
    if len(data) % PADDED:
        raise InputError(f"padded data: expected a multiple of {PADDED} bytes, found {len(data)}")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(-1, 256)
    if bits[:, 254:].any():
        unit = int(np.flatnonzero(bits[:, 254:].any(axis=1))[0])
        raise InputError(f"padded data, 32-byte unit {unit}: expected two zero bits at its end")
    return np.packbits(np.ascontiguousarray(bits[:, :254]).reshape(-1), bitorder="little").tobytes()
