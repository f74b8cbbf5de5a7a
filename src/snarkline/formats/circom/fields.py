"""Primes in headers: how a file says which curve it belongs to."""

from __future__ import annotations

from snarkline.curves.curve import CURVES, Curve
from snarkline.formats.binary import Cursor

MAX_FIELD_BYTES = 64


def read_prime(cursor: Cursor, field: str) -> int:
    """A u32 number of bytes, then a prime of that many bytes."""
    n = cursor.u32(f"bytes of {field}")
    if n == 0 or n > MAX_FIELD_BYTES or n % 8:
        raise cursor.error(f"bytes of {field}", 4, f"a multiple of 8 up to {MAX_FIELD_BYTES}", n)
    return cursor.integer(n, field)


def read_scalar_field(cursor: Cursor, curve: Curve | None = None) -> Curve:
    """The curve whose scalar field the next prime is; it must be `curve` if one is given."""
    start = cursor.position
    prime = read_prime(cursor, "prime")
    size = cursor.position - start - 4
    for candidate in CURVES.values():
        if candidate.r == prime and size == 8 * candidate.fr_limbs:
            if curve is not None and candidate is not curve:
                raise cursor.error("prime", size, f"the scalar field of {curve.name}", f"that of {candidate.name}")
            return candidate
    raise cursor.error("prime", size, f"the scalar field of {_names()}", f"{prime:#x} in {size} bytes")


def read_curve_fields(cursor: Cursor) -> Curve:
    """The curve of which the next two primes are the base field and the scalar field."""
    q, q_size = read_prime(cursor, "q"), cursor.position - 4
    for curve in CURVES.values():
        if curve.q == q and q_size == 8 * curve.fp_limbs:
            r = read_prime(cursor, "r")
            size = cursor.position - q_size - 8
            if r != curve.r or size != 8 * curve.fr_limbs:
                raise cursor.error("r", size, f"the scalar field of {curve.name}", f"{r:#x} in {size} bytes")
            return curve
    raise cursor.error("q", q_size, f"the base field of {_names()}", f"{q:#x} in {q_size} bytes")


def write_prime(prime: int, limbs: int) -> bytes:
    return (8 * limbs).to_bytes(4, "little") + prime.to_bytes(8 * limbs, "little")


def _names() -> str:
    return " or ".join(CURVES)
