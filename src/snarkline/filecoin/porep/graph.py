"""The stacked depth-robust graph: base parents (DRSample with buckets) and expander parents (a Feistel permutation)."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from functools import cached_property

from snarkline.filecoin.registry import BASE_DEGREE, EXPANSION_DEGREE, PorepVersion

# DRSample draws from a graph in which each node stands for so many of degree 1 (its parent before it comes for free).
METANODES = BASE_DEGREE - 1
FEISTEL_ROUNDS = 3


@dataclass(frozen=True)
class StackedGraph:
    """The parents of `n_nodes` nodes. Both kinds are functions of the node, the size and the porep id alone."""

    n_nodes: int
    porep_id: bytes
    version: PorepVersion

    def parents(self, node: int) -> tuple[list[int], list[int]]:
        """Base parents (of the layer itself) and expander parents (of the layer before), in order."""
        return self.base_parents(node), self.expander_parents(node)

    def base_parents(self, node: int) -> list[int]:
        """Six nodes below `node`; nodes 0 and 1 have six times node 0.

        Alwen, Blocki, Harsha, "Practical Graphs for Optimal Side-Channel Resistant Memory-Hard Functions", CCS 2017,
        algorithm 1, with a bucket of distances drawn first.
        """
        if node < 2:
            return [0] * BASE_DEGREE
        random = ChaCha8(self._drg_seed + struct.pack("<I", node))
        meta = METANODES * node
        n_buckets = math.ceil(math.log2(meta))
        drawn = []
        for _ in range(METANODES):
            largest = min(meta, 1 << (random.u64() % n_buckets + 1))
            smallest = max(2, largest // 2)
            distance = smallest + random.u64() % (largest - smallest + 1)
            parent = (meta - distance) // METANODES
            drawn.append(node - 1 if parent == node else parent)
        return [*drawn, node - 1] if self.version is PorepVersion.V1_0 else [node - 1, *drawn]

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


class ChaCha8:
    """The stream of ChaCha with 8 rounds, 64-bit counter 0 and nonce 0, as 64-bit words.

    Bernstein, "ChaCha, a variant of Salsa20", 2008.
    """

    def __init__(self, key: bytes) -> None:
        self._state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), 0, 0, 0, 0]
        self._words: list[int] = []

    def u64(self) -> int:
        if not self._words:
            self._words = self._block()
            self._state[12] += 1
        low, high = self._words[:2]
        del self._words[:2]
        return high << 32 | low

    def _block(self) -> list[int]:
        x = list(self._state)
        for _ in range(4):
            for a, b, c, d in _QUARTERS:
                for shift_d, shift_b in ((16, 12), (8, 7)):
                    x[a] = (x[a] + x[b]) & 0xFFFFFFFF
                    x[d] = _rotate(x[d] ^ x[a], shift_d)
                    x[c] = (x[c] + x[d]) & 0xFFFFFFFF
                    x[b] = _rotate(x[b] ^ x[c], shift_b)
        return [(a + b) & 0xFFFFFFFF for a, b in zip(x, self._state, strict=True)]


_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def _rotate(word: int, n: int) -> int:
    return (word << n | word >> (32 - n)) & 0xFFFFFFFF
