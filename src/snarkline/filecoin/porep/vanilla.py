"""Vanilla proofs: for every challenged node, the openings from which the circuit's witness is made; and their check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from snarkline.curves.curve import BLS12_381
from snarkline.errors import InputError
from snarkline.filecoin.hashers import poseidon, sha256_rows
from snarkline.filecoin.porep.challenges import interactive_challenges
from snarkline.filecoin.porep.graph import StackedGraph
from snarkline.filecoin.porep.merkle import MerkleProof, RowHash, computed_roots, level_arities, rows_of
from snarkline.filecoin.porep.seal import SealedSector, label, label_parents
from snarkline.filecoin.registry import PorepVersion, SectorSize, TreeShape, porep_id
from snarkline.trace import span


@dataclass(frozen=True)
class ColumnProof:
    """The labels of a node over all layers, and that their hash is a leaf of tree c."""

    node: int
    rows: tuple[bytes, ...]
    inclusion: MerkleProof


@dataclass(frozen=True)
class LabelProof:
    """The 37 labels that a label (or the key of the encoding) was made from."""

    parents: tuple[bytes, ...]
    layer: int
    node: int


@dataclass(frozen=True)
class ChallengeProof:
    """Everything that opens one node of a replica."""

    comm_d: MerkleProof
    comm_r_last: MerkleProof
    column: ColumnProof
    base_parents: tuple[ColumnProof, ...]
    expander_parents: tuple[ColumnProof, ...]
    labels: tuple[LabelProof, ...]
    encoding: LabelProof

    @property
    def node(self) -> int:
        return self.column.node


@dataclass(frozen=True)
class Commitments:
    """What the chain knows of a replica, and the seed that chooses the challenges."""

    comm_d: bytes
    comm_r: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes


@dataclass(frozen=True)
class Phase1Output:
    """The output of commit phase 1: the proofs of every partition."""

    size: SectorSize
    commitments: Commitments
    partitions: tuple[tuple[ChallengeProof, ...], ...]


def prove_partitions(sector: SealedSector, seed: bytes) -> Phase1Output:
    """Open the challenges of all partitions (interactive challenges, from the chain's randomness `seed`)."""
    size = sector.facts.size
    if len(seed) != 32:
        raise InputError(f"seed: expected 32 bytes, found {len(seed)}")
    partitions = tuple(
        tuple(_open(sector, node) for node in interactive_challenges(size, sector.replica_id, seed, k))
        for k in range(size.n_partitions)
    )
    commitments = Commitments(sector.comm_d, sector.comm_r, sector.replica_id, seed, sector.facts.ticket)
    return Phase1Output(size, commitments, partitions)


def _open(sector: SealedSector, node: int) -> ChallengeProof:
    ((base, expander),) = sector.graph.parents([node])
    labels = []
    for layer, current in enumerate(sector.labels, start=1):
        row = [current[p].tobytes() for p in base]
        if layer > 1:
            row += [sector.labels[layer - 2][p].tobytes() for p in expander]
        labels.append(LabelProof(tuple(label_parents(row)), layer, node))
    return ChallengeProof(
        comm_d=sector.tree_d.proof(node),
        comm_r_last=sector.tree_r_last.proof(node),
        column=_column(sector, node),
        base_parents=tuple(_column(sector, p) for p in base),
        expander_parents=tuple(_column(sector, p) for p in expander),
        labels=tuple(labels),
        encoding=labels[-1],
    )


def _column(sector: SealedSector, node: int) -> ColumnProof:
    return ColumnProof(node, tuple(layer[node].tobytes() for layer in sector.labels), sector.tree_c.proof(node))


@span("check vanilla proofs")
def check_phase1(output: Phase1Output, graph: StackedGraph) -> None:
    """Check every opening against the commitments and the graph.

    Raises InputError that names the partition, the challenge and what does not hold.
    """
    size, known = output.size, output.commitments
    if len(output.partitions) != size.n_partitions:
        raise InputError(f"{size.name} has {size.n_partitions} partitions, found {len(output.partitions)}")
    for k, proofs in enumerate(output.partitions):
        expected = interactive_challenges(size, known.replica_id, known.seed, k)
        if len(proofs) != len(expected):
            raise InputError(f"partition {k}: expected {len(expected)} challenges, found {len(proofs)}")
        hashed, all_parents = _Hashed(size, proofs), graph.parents(expected)
        for i, (proof, node, parents) in enumerate(zip(proofs, expected, all_parents, strict=True)):
            for claim, holds in _claims(output, parents, hashed, proof, node):
                if not holds:
                    hint = _version_hint(size, graph, proofs, expected)
                    raise InputError(f"partition {k}, challenge {i} (node {node}): {claim} does not hold{hint}")


def _version_hint(size: SectorSize, graph: StackedGraph, proofs: Sequence[ChallengeProof], nodes: Sequence[int]) -> str:
    """That the openings are those of another version, if their parents are."""

    def are_of(version: PorepVersion) -> bool:
        parents = StackedGraph(graph.n_nodes, porep_id(size, version), version).parents(nodes)
        opened = [([c.node for c in p.base_parents], [c.node for c in p.expander_parents]) for p in proofs]
        return opened == parents

    if are_of(graph.version):
        return ""
    found = next((version.value for version in PorepVersion if are_of(version)), None)
    return f": the openings are of version {found}, expected {graph.version.value}" if found else ""


class _Hashed:
    """All hashes of a partition's openings. They are made together: one after another they would keep one processor
    busy, for seconds at 32 GiB."""

    def __init__(self, size: SectorSize, proofs: Sequence[ChallengeProof]) -> None:
        self._size = size
        columns = [c for p in proofs for c in (p.column, *p.base_parents, *p.expander_parents)]
        whole = [c for c in columns if len(c.rows) == size.n_layers]
        leaves = poseidon(size.n_layers)(rows_of([c.rows for c in whole])) if whole else ()
        self._leaves = {id(column): bytes(leaf) for column, leaf in zip(whole, leaves, strict=True)}
        in_replica = [*(c.inclusion for c in columns), *(p.comm_r_last for p in proofs)]
        in_data = [p.comm_d for p in proofs]
        self._roots = self._paths(in_replica, size.shape, poseidon)
        self._roots |= self._paths(in_data, TreeShape(2), lambda _: sha256_rows)

    def leaf(self, column: ColumnProof) -> bytes | None:
        """The hash of a column; None for one of another number of rows."""
        return self._leaves.get(id(column))

    def includes(self, proof: MerkleProof, root: bytes, node: int) -> bool:
        """Whether a proof shows a node's leaf to be in the tree of a root."""
        return proof.root == root == self._roots.get(id(proof)) and proof.position == node

    def _paths(
        self, proofs: Sequence[MerkleProof], shape: TreeShape, hash_of: Callable[[int], RowHash]
    ) -> dict[int, bytes]:
        """The roots that the paths of this shape lead to."""
        arities = level_arities(shape, self._size.n_nodes)
        formed = [p for p in proofs if _is_formed(p, arities)]
        return {id(p): root for p, root in zip(formed, computed_roots(formed, hash_of), strict=True)}


def _is_formed(proof: MerkleProof, arities: list[int]) -> bool:
    """Whether a path has these arities."""
    return [len(e.hashes) + 1 for e in proof.path] == arities and all(
        0 <= e.index < arity for e, arity in zip(proof.path, arities, strict=True)
    )


def _claims(
    output: Phase1Output, parents: tuple[list[int], list[int]], hashed: _Hashed, proof: ChallengeProof, node: int
) -> Iterator[tuple[str, bool]]:
    size, known = output.size, output.commitments
    base, expander = parents
    comm_c, comm_r_last = proof.column.inclusion.root, proof.comm_r_last.root
    comm_r = poseidon(2)(rows_of([(comm_c, comm_r_last)]))[0].tobytes()
    yield "comm_r = H(comm_c, comm_r_last)", comm_r == known.comm_r
    yield "the inclusion of the data in comm_d", hashed.includes(proof.comm_d, known.comm_d, node)
    yield "the inclusion of the replica in comm_r_last", hashed.includes(proof.comm_r_last, comm_r_last, node)
    groups = (
        ("the node's column", (proof.column,), [node]),
        ("base parent", proof.base_parents, base),
        ("expander parent", proof.expander_parents, expander),
    )
    for name, columns, nodes in groups:
        yield f"the number of {name}s, {len(nodes)}", len(columns) == len(nodes)
        for j, (column, expected) in enumerate(zip(columns, nodes, strict=False)):
            where = name if len(nodes) == 1 else f"{name} {j} (node {expected})"
            yield f"{where}: its {size.n_layers} rows", len(column.rows) == size.n_layers
            hashes = hashed.leaf(column) == column.inclusion.leaf
            yield f"{where}: the hash of its column", column.node == expected and hashes
            yield f"{where}: its inclusion in comm_c", hashed.includes(column.inclusion, comm_c, expected)
    yield from _label_claims(output, proof, node)


def _label_claims(output: Phase1Output, proof: ChallengeProof, node: int) -> Iterator[tuple[str, bool]]:
    size, known = output.size, output.commitments
    yield f"the number of labels, {size.n_layers}", len(proof.labels) == size.n_layers
    for layer, opened in enumerate(proof.labels, start=1):
        row = [column.rows[layer - 1] for column in proof.base_parents]
        if layer > 1:
            row += [column.rows[layer - 2] for column in proof.expander_parents]
        parents = tuple(label_parents(row))
        same = (opened.layer, opened.node, opened.parents) == (layer, node, parents)
        yield f"layer {layer}: the parents of its label", same
        expected = label(known.replica_id, layer, node, parents)
        yield f"layer {layer}: the label", expected == proof.column.rows[layer - 1]
    key = int.from_bytes(proof.column.rows[-1], "little")
    encoded = (key + int.from_bytes(proof.comm_d.leaf, "little")) % BLS12_381.r
    yield "the encoding of the data", encoded == int.from_bytes(proof.comm_r_last.leaf, "little")
    yield "the encoding's key", proof.encoding == proof.labels[-1]
