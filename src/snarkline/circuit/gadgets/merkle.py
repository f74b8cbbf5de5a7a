"""Merkle trees with two children a node: the root that a leaf and its path lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snarkline.circuit.batch import Batch
from snarkline.circuit.builder import Builder, Gadget
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.select import select, swap
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bit, Bits, Num


@gadget
def poseidon_pair(cs: Builder, pair: Sequence[Num]) -> Num:
    """The parent of two children: their Poseidon hash. For `map` over the groups of a level."""
    return poseidon(cs, [pair[0], pair[1]])


@gadget
def poseidon_level(cs: Builder, node: Num, sibling: Num, is_right: Bit) -> Num:
    """The parent of a node and its sibling; `is_right` says that the node is the right one. For `scan`."""
    left, right = swap(cs, is_right, node, sibling)
    return poseidon(cs, [left, right])


@gadget
def sha256_pair(cs: Builder, pair: Sequence[Bits]) -> Bits:
    """The parent of two children of 256 bits: the SHA-256 of both."""
    return sha256(cs, pair[0] + pair[1])


@gadget
def sha256_level(cs: Builder, node: Bits, sibling: Bits, is_right: Bit) -> Bits:
    """The parent of a node and its sibling of 256 bits; `is_right` says that the node is the right one."""
    left, right = select(cs, is_right, sibling, node), select(cs, is_right, node, sibling)
    return sha256(cs, left + right)


def merkle_root(cs: Builder, level: Gadget[Any], leaf: Any, siblings: Any, index: Any) -> Any:
    """The root above a leaf, one instance of `level` for each step.

    `siblings` go from the leaf's to the one below the root, `index` has the bits of the leaf's number, least
    significant first: batches or sequences of the same length.
    """
    batches = [value if isinstance(value, Batch) else cs.batch(list(value)) for value in (siblings, index)]
    return cs.scan(level, leaf, *batches)


def merkle_tree(cs: Builder, pair: Gadget[Any], leaves: Batch) -> Any:
    """The root of a tree over 2^k leaves, one run of instances for each level."""
    if len(leaves) & (len(leaves) - 1):
        raise cs.error(f"a tree of two children a node has 2^k leaves; found {len(leaves)}")
    while len(leaves) > 1:
        leaves = cs.map(pair, leaves.groups(2))
    return leaves[0]
