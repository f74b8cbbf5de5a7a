"""Phases 0 and 1 of sealing: from a sector's data to a replica, its commitments and the trees that open them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snarkline.curves.curve import BLS12_381
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import InputError
from snarkline.filecoin import fr32
from snarkline.filecoin.hashers import poseidon, sha256_rows, truncated_sha256
from snarkline.filecoin.porep.graph import StackedGraph
from snarkline.filecoin.porep.merkle import Elements, MerkleTree, level_arities
from snarkline.filecoin.registry import LABEL_PARENTS, NODE_BYTES, PorepVersion, SectorSize, TreeShape, porep_id
from snarkline.native import core
from snarkline.threads import usable_threads
from snarkline.trace import span


@dataclass(frozen=True)
class SectorFacts:
    """Who seals what: 32-byte prover id (LEB128 of the actor), sector number, the chain's randomness `ticket`."""

    size: SectorSize
    version: PorepVersion
    prover_id: bytes
    sector_id: int
    ticket: bytes

    def __post_init__(self) -> None:
        for name in ("prover_id", "ticket"):
            if len(getattr(self, name)) != 32:
                raise InputError(f"{name}: expected 32 bytes, found {len(getattr(self, name))}")
        if not 0 <= self.sector_id < 1 << 64:
            raise InputError(f"sector_id: expected an integer in [0, 2^64), found {self.sector_id}")

    @property
    def porep_id(self) -> bytes:
        return porep_id(self.size, self.version)

    def replica_id(self, comm_d: bytes) -> bytes:
        """SHA-256 of what makes this replica unlike any other, below 2^254."""
        sector = self.sector_id.to_bytes(8, "big")
        return truncated_sha256(self.prover_id + sector + self.ticket + comm_d + self.porep_id)


@dataclass(frozen=True, eq=False)
class SealedSector:
    """A replica (bytes of the sector's size) and all that openings are made from."""

    facts: SectorFacts
    graph: StackedGraph
    replica_id: bytes
    labels: tuple[Elements, ...]
    replica: Elements
    tree_d: MerkleTree
    tree_c: MerkleTree
    tree_r_last: MerkleTree

    @property
    def comm_d(self) -> bytes:
        return self.tree_d.root

    @property
    def comm_r(self) -> bytes:
        row = np.stack([self.tree_c.levels[-1][0], self.tree_r_last.levels[-1][0]])
        return bytes(poseidon(2)(row[np.newaxis])[0])


def seal(facts: SectorFacts, data: bytes) -> SealedSector:
    """Seal a sector's unpadded data. All of it is held in memory, which is meant for small sectors.

    Raises InputError for data that does not fill the sector.
    """
    size = facts.size
    if len(data) != size.unpadded_bytes:
        raise InputError(f"a {size.name} sector holds {size.unpadded_bytes} bytes of data, found {len(data)}")
    nodes = np.frombuffer(fr32.pad(data), np.uint8).reshape(-1, NODE_BYTES)
    with span("tree d"):
        tree_d = MerkleTree(nodes, level_arities(TreeShape(2), size.n_nodes), lambda _: sha256_rows)
    replica_id = facts.replica_id(tree_d.root)
    graph = StackedGraph(size.n_nodes, facts.porep_id, facts.version)
    with span("labels"):
        labels = label_layers(graph, replica_id, size.n_layers)
    replica = encode(labels[-1], nodes)
    arities = level_arities(size.shape, size.n_nodes)
    with span("tree c"):
        columns = poseidon(size.n_layers)(np.stack(labels, axis=1))
        tree_c = MerkleTree(columns, arities, poseidon)
    with span("tree r last"):
        tree_r_last = MerkleTree(replica, arities, poseidon)
    return SealedSector(facts, graph, replica_id, labels, replica, tree_d, tree_c, tree_r_last)


def label_layers(graph: StackedGraph, replica_id: bytes, n_layers: int) -> tuple[Elements, ...]:
    """The labels of all nodes, layer after layer. A label needs those of its parents: nothing here is parallel."""
    base = graph.base_parents(np.arange(graph.n_nodes)).tolist()
    expander = [graph.expander_parents(node) for node in range(graph.n_nodes)]
    layers: list[list[bytes]] = []
    for layer in range(1, n_layers + 1):
        labels = [label(replica_id, layer, 0, ())]
        before = layers[-1] if layers else None
        for node in range(1, graph.n_nodes):
            row = [labels[p] for p in base[node]]
            if before is not None:
                row += [before[p] for p in expander[node]]
            labels.append(label(replica_id, layer, node, label_parents(row)))
        layers.append(labels)
    return tuple(np.frombuffer(b"".join(layer), np.uint8).reshape(-1, NODE_BYTES) for layer in layers)


def label(replica_id: bytes, layer: int, node: int, parents: Sequence[bytes]) -> bytes:
    """The label of a node; `parents` are the 37 of its preimage (node 0: none)."""
    head = replica_id + layer.to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
    return truncated_sha256(head + b"".join(parents))


def label_parents(row: Sequence[bytes]) -> list[bytes]:
    """The labels of the parents, repeated until they are 37."""
    return (list(row) * LABEL_PARENTS)[:LABEL_PARENTS]


def encode(labels: Elements, nodes: Elements) -> Elements:
    """labels + nodes in Fr: the replica."""
    key, data = (FrVector(BLS12_381, np.ascontiguousarray(a).view("<u8"), Form.CANONICAL) for a in (labels, nodes))
    out = np.empty_like(key.limbs)
    core.Executor(usable_threads()).pointwise(BLS12_381.name, "fr", "add", out, key.limbs, data.limbs)
    return out.view(np.uint8)
