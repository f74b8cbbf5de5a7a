"""Merkle trees over domain elements, and inclusion proofs. An element is 32 bytes, a little-endian integer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.filecoin.registry import TreeShape

Elements = npt.NDArray[np.uint8]
"""Shape (n, 32)."""
RowHash = Callable[[Elements], Elements]
"""Hashes rows of elements, shape (n, arity, 32), each to one element."""


def level_arities(shape: TreeShape, n_leaves: int) -> list[int]:
    """The arity of each level from the leaves up: those of the base trees, then one of `sub` and one of `top`.

    Base trees lie next to each other in the order of their leaves, so a whole level is hashed at once.
    """
    arities = []
    width = n_leaves // shape.n_base_trees
    while width > 1:
        arities.append(shape.base)
        width //= shape.base
    return arities + [arity for arity in (shape.sub, shape.top) if arity]


@dataclass(frozen=True)
class PathElement:
    """One level of a path: the siblings in order, and the position of the running hash among them."""

    hashes: tuple[bytes, ...]
    index: int


@dataclass(frozen=True)
class MerkleProof:
    """That `leaf` is in the tree with this root; the path runs from the leaf up."""

    root: bytes
    leaf: bytes
    path: tuple[PathElement, ...]

    @property
    def position(self) -> int:
        """The number of the leaf."""
        position, weight = 0, 1
        for element in self.path:
            position += weight * element.index
            weight *= len(element.hashes) + 1
        return position


class MerkleTree:
    """All levels of a tree, in memory: 32 bytes a node."""

    def __init__(self, leaves: Elements, arities: Sequence[int], hash_of: Callable[[int], RowHash]) -> None:
        self.arities = list(arities)
        self.levels = [leaves]
        for arity in self.arities:
            self.levels.append(hash_of(arity)(self.levels[-1].reshape(-1, arity, 32)))

    @property
    def root(self) -> bytes:
        return bytes(self.levels[-1][0])

    def proof(self, leaf: int) -> MerkleProof:
        path, position = [], leaf
        for level, arity in zip(self.levels, self.arities, strict=False):
            first, index = position // arity * arity, position % arity
            siblings = [level[i].tobytes() for i in range(first, first + arity) if i != position]
            path.append(PathElement(tuple(siblings), index))
            position //= arity
        return MerkleProof(self.root, self.levels[0][leaf].tobytes(), tuple(path))


def computed_roots(proofs: Sequence[MerkleProof], hash_of: Callable[[int], RowHash]) -> list[bytes]:
    """The roots that leaves and paths lead to. All paths have the same arities, and each level is hashed together;
    `hash_of(arity)` hashes rows of that arity."""
    running = [proof.leaf for proof in proofs]
    for elements in zip(*(proof.path for proof in proofs), strict=True):
        rows = [(*e.hashes[: e.index], own, *e.hashes[e.index :]) for e, own in zip(elements, running, strict=True)]
        running = [bytes(digest) for digest in hash_of(len(rows[0]))(rows_of(rows))]
    return running


def rows_of(rows: Sequence[Sequence[bytes]]) -> Elements:
    """Rows of elements as an array of shape (n, arity, 32)."""
    return np.frombuffer(b"".join(b"".join(row) for row in rows), np.uint8).reshape(len(rows), -1, 32)
