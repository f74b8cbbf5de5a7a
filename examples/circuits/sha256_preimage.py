"""Knowledge of a message with a given SHA-256.

snarkline setup sha256_preimage.py:preimage -o preimage.zkey --vk vk.json
snarkline prove sha256_preimage.py:preimage --key preimage.zkey --input sha256_preimage.json
snarkline verify vk.json public.json proof.json
"""

from __future__ import annotations

from snarkline.circuit import Array, Builder, Private, Public, Size, UInt8, UInt32, circuit
from snarkline.circuit.gadgets.sha256 import sha256

LENGTH = Size("length")


@circuit
def preimage(
    cs: Builder,
    digest: Public[Array[UInt32, 8]],
    message: Private[Array[UInt8, LENGTH]],
    length: int = 32,
) -> None:
    """The digest is public as eight words, in the order in which SHA-256 is written down."""
    found = sha256(cs, message)
    for i, word in enumerate(digest):
        cs.equal(found[32 * i : 32 * i + 32], word.bits_be())
