"""Membership in a Merkle tree, with Poseidon: the prover knows a secret whose hash is a leaf under a public root.

    snarkline setup merkle_poseidon.py:membership -o membership.zkey --vk vk.json
    snarkline prove merkle_poseidon.py:membership --key membership.zkey --input merkle_poseidon.json
    snarkline verify vk.json public.json proof.json

`--sizes depth=20` makes a tree of a million leaves; give it to setup and prove alike.
"""

from __future__ import annotations

from snarkline.circuit import Bit, Builder, Num, Private, Public, Size, circuit
from snarkline.circuit.gadgets.merkle import merkle_root, poseidon_level
from snarkline.circuit.gadgets.poseidon import poseidon

DEPTH = Size("depth")


@circuit
def membership(
    cs: Builder,
    root: Public[Num],
    secret: Private[Num],
    siblings: Private[Num, DEPTH],
    index: Private[Bit, DEPTH],
    depth: int = 4,
) -> None:
    """The root of the tree that has the hash of `secret` at `index` (least significant bit first)."""
    leaf = cs.call(poseidon, [secret])
    cs.equal(merkle_root(cs, poseidon_level, leaf, siblings, index), root)
