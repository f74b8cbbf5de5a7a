"""The stacked depth-robust graph: base parents (DRSample with buckets) and expander parents (a Feistel permutation)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from snarkline.filecoin.registry import BASE_DEGREE, EXPANSION_DEGREE, PorepVersion

# DRSample draws from a graph in which each node stands for so many of degree 1 (its parent before it comes for free).
METANODES = BASE_DEGREE - 1
FEISTEL_ROUNDS = 3

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StackedGraph:
    """The parents of `n_nodes` nodes. Both kinds are functions of the node, the size and the porep id alone."""

    n_nodes: int
    porep_id: bytes
    version: PorepVersion

    def parents(self, nodes: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """For each node its base parents (of the layer itself) and expander parents (of the layer before), in order."""
        base = self.base_parents(np.array(nodes, np.int64)).tolist()
        return [(row, self.expander_parents(node)) for row, node in zip(base, nodes, strict=True)]

    def base_parents(self, nodes: Nodes) -> Nodes:
        """Six nodes below each node, shape (n, 6); nodes 0 and 1 have six times node 0.

        Alwen, Blocki, Harsha, "Practical Graphs for Optimal Side-Channel Resistant Memory-Hard Functions", CCS 2017,
        algorithm 1, with a bucket of distances drawn first.
        """
        meta = METANODES * np.maximum(nodes, 2).astype(np.uint64)
        buckets = np.ceil(np.log2(meta)).astype(np.uint64)
        draws = _chacha8(self._drg_seed, nodes, 2 * METANODES)
        one = np.uint64(1)
        largest = np.minimum(meta[:, None], one << (draws[:, ::2] % buckets[:, None] + one))
        smallest = np.maximum(np.uint64(2), largest // np.uint64(2))
        distance = smallest + draws[:, 1::2] % (largest - smallest + one)
        drawn = ((meta[:, None] - distance) // np.uint64(METANODES)).astype(np.int64)
        before = nodes[:, None] - 1
        drawn = np.where(drawn == nodes[:, None], before, drawn)
        parents = [drawn, before] if self.version is PorepVersion.V1_0 else [before, drawn]
        return np.where(nodes[:, None] < 2, 0, np.concatenate(parents, axis=1))

    def expander_parents(self, node: int) -> list[int]:
        """Eight nodes of the layer before: a permutation of 8 * n_nodes edges (Chung's expander)."""
        n_edges = self.n_nodes * EXPANSION_DEGREE
        parents = []
        for edge in range(node * EXPANSION_DEGREE, (node + 1) * EXPANSION_DEGREE):
            image = self._feistel(edge)
            while image >= n_edges:  # walk along the cycle until it is back in range
                image = self._feistel(image)
            if self.version is PorepVersion.V1_0:
                image &= 0xFFFFFFFF
            parents.append(image // EXPANSION_DEGREE)
        return parents

    @cached_property
    def _drg_seed(self) -> bytes:
        return hashlib.sha256(b"Filecoin_DRSample" + self.porep_id).digest()[:28]

    @cached_property
    def _feistel_keys(self) -> list[bytes]:
        digest = hashlib.sha256(b"Filecoin_Feistel" + self.porep_id).digest()
        return [digest[8 * i : 8 * i + 8][::-1] for i in range(FEISTEL_ROUNDS)]

    @cached_property
    def _half_bits(self) -> int:
        """Bits of a half: 4^bits is the least power of 4 that covers the edges."""
        return ((self.n_nodes * EXPANSION_DEGREE - 1).bit_length() + 1) // 2

    def _feistel(self, value: int) -> int:
        bits = self._half_bits
        mask = (1 << bits) - 1
        left, right = value >> bits, value & mask
        for key in self._feistel_keys:
            digest = hashlib.blake2b(right.to_bytes(8, "big") + key).digest()
            left, right = right, left ^ (int.from_bytes(digest[:8], "big") & mask)
        return left << bits | right


def _chacha8(key: bytes, nodes: Nodes, n_words: int) -> npt.NDArray[np.uint64]:
    """64-bit words of ChaCha, 8 rounds, counter and nonce 0, for the keys `key` + node; shape (n, n_words).

    Bernstein, "ChaCha, a variant of Salsa20", 2008. All nodes go through the rounds together.
    """
    constants = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<7I", key)]
    state = np.zeros((16, len(nodes)), np.uint32)
    state[:11] = np.array(constants, np.uint32)[:, None]
    state[11] = nodes
    blocks = []
    for counter in range(-(-n_words // 8)):
        state[12] = counter
        x = state.copy()
        for _ in range(4):
            for quarter in _QUARTERS:
                _quarter_round(x, *quarter)
        blocks.append(x + state)
    words = np.concatenate(blocks).astype(np.uint64)
    return np.ascontiguousarray((words[1::2] << np.uint64(32) | words[::2])[:n_words].T)


_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def _quarter_round(x: npt.NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    for shift_d, shift_b in ((16, 12), (8, 7)):
        x[a] += x[b]
        x[d] = _rotate(x[d] ^ x[a], shift_d)
        x[c] += x[d]
        x[b] = _rotate(x[b] ^ x[c], shift_b)


def _rotate(words: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint32]:
    return words << np.uint32(n) | words >> np.uint32(32 - n)
