"""Proofs as bellperson writes them: A, B and C compressed, 48 + 96 + 48 bytes; several proofs one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.curves.curve import Group
from snarkline.errors import FormatError, MismatchError
from snarkline.formats.bellperson.encoding import CURVE, compress, decompress
from snarkline.groth16.keys import Proof

PROOF_BYTES = 192
_PARTS = (("A", Group.G1, 0, 48), ("B", Group.G2, 48, 144), ("C", Group.G1, 144, 192))


def proof_to_bytes(proof: Proof) -> bytes:
    """192 bytes; the public inputs are not part of them. Raises MismatchError for a proof over another curve."""
    if proof.curve is not CURVE:
        raise MismatchError(f"bellperson's proofs are over {CURVE.name}; this one is over {proof.curve.name}")
    return compress(proof.a) + compress(proof.b) + compress(proof.c)


def proof_from_bytes(data: bytes, public: Sequence[int], *, path: str | None = None) -> Proof:
    """A proof from its 192 bytes. Every point must be of order r and none infinity. Raises FormatError."""
    if len(data) != PROOF_BYTES:
        raise FormatError(path, "proof", f"{PROOF_BYTES} bytes", f"{len(data)} bytes")
    a, b, c = (
        decompress(path, f"offset {begin} ({name})", data[begin:end], group) for name, group, begin, end in _PARTS
    )
    return Proof(CURVE, a, b, c, tuple(public))
