"""Which nodes of a replica are opened."""

from __future__ import annotations

import hashlib

from snarkline.filecoin.registry import SectorSize


def interactive_challenges(size: SectorSize, replica_id: bytes, seed: bytes, partition: int) -> list[int]:
    """The nodes that a partition opens, derived from the chain's randomness `seed`. Never node 0."""
    first = size.challenges * partition
    return [_node(size, replica_id + seed + j.to_bytes(4, "little")) for j in range(first, first + size.challenges)]


def _node(size: SectorSize, preimage: bytes) -> int:
    digest = hashlib.sha256(preimage).digest()
    return int.from_bytes(digest, "little") % (size.n_nodes - 1) + 1
