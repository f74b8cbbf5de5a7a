"""The circuit of one partition of the Proof-of-Replication, wire for wire as storage-proofs-porep synthesises it.

`porep_circuit` records it; `assignment` gives the values of its given wires, in the order in which they are allocated,
from a partition's vanilla proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.circuit.library import Library
from snarkline.circuit.logic import constant
from snarkline.circuit.recording import gadget
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.values import Bits, Num
from snarkline.circuit.words import UInt64
from snarkline.curves.curve import BLS12_381
from snarkline.curves.vector import FrVector
from snarkline.filecoin.gadgets import (
    allocate,
    equal,
    insert,
    pack_bits,
    reverse_within_bytes,
    sha256_pair,
    to_bits_le,
)
from snarkline.filecoin.porep.merkle import MerkleProof, level_arities
from snarkline.filecoin.porep.vanilla import ChallengeProof, Phase1Output
from snarkline.filecoin.registry import BASE_DEGREE, EXPANSION_DEGREE, SectorSize, TreeShape
from snarkline.r1cs.structured import StructuredR1CS


def porep_circuit(size: SectorSize, *, library: Library | None = None) -> StructuredR1CS:
    """The constraint system of a partition. All partitions of a sector size have the same."""
    cs = ConstraintSystem(BLS12_381, library=library)
    replica_id = cs.alloc()
    cs.inputize(replica_id)
    replica_bits = reverse_within_bytes(to_bits_le(cs, replica_id))
    comm_d = cs.alloc()
    cs.inputize(comm_d)
    comm_r = cs.alloc()
    cs.inputize(comm_r)
    comm_r_last, comm_c = cs.alloc(), cs.alloc()
    equal(cs, comm_r, cs.call(neptune_poseidon, [comm_c, comm_r_last]))
    for i in range(size.challenges):
        with cs.scope(f"challenge {i}"):
            _Challenge(cs, size, replica_bits).synthesize(comm_d, comm_c, comm_r_last)
    return cs.finish()


class _Challenge:
    """One challenge of a partition."""

    def __init__(self, cs: ConstraintSystem, size: SectorSize, replica_bits: Bits) -> None:
        self.cs, self.size, self.replica_bits = cs, size, replica_bits

    def synthesize(self, comm_d: Num, comm_c: Num, comm_r_last: Num) -> None:
        cs, size = self.cs, self.size
        data = cs.alloc()
        inclusion(cs, data, comm_d, level_arities(TreeShape(2), size.n_nodes), binary=True)
        base = [self._column(comm_c) for _ in range(BASE_DEGREE)]
        expander = [self._column(comm_c) for _ in range(EXPANSION_DEGREE)]
        node = UInt64(cs, cs.alloc_bits(64).literals)
        cs.expose(node.num())
        labels: list[Num] = []
        for layer in range(1, size.n_layers + 1):
            parents = [self._bits(column[layer - 1]) for column in base]
            if layer > 1:
                parents += [self._bits(column[layer - 2]) for column in expander]
            labels.append(self._label(layer, node, parents))
        encoded = allocate(cs, (labels[-1] + data).terms)
        arities = level_arities(size.shape, size.n_nodes)
        inclusion(cs, encoded, comm_r_last, arities)
        inclusion(cs, cs.call(neptune_poseidon, labels), comm_c, arities)

    def _column(self, comm_c: Num) -> list[Num]:
        """A parent's labels, and that their hash is in tree c."""
        rows = [self.cs.alloc() for _ in range(self.size.n_layers)]
        leaf = self.cs.call(neptune_poseidon, rows)
        inclusion(self.cs, leaf, comm_c, level_arities(self.size.shape, self.size.n_nodes))
        return rows

    def _bits(self, number: Num) -> Bits:
        return reverse_within_bytes(self.cs.call(number_bits, number))

    def _label(self, layer: int, node: UInt64, parents: Sequence[Bits]) -> Num:
        cs = self.cs
        prefix = self.replica_bits + Bits(cs, constant(layer, 32)[::-1]) + node.bits_be()
        message = prefix + Bits(cs, constant(0, 512 - len(prefix)))
        for i in range(37):
            message += parents[i % len(parents)]
        with cs.scope(f"label {layer}"):
            return pack_bits(cs, reverse_within_bytes(sha256(cs, message)))


@gadget
def number_bits(cs: Builder, number: Num) -> Bits:
    """The 255 bits of a number."""
    return to_bits_le(cs, number)


def inclusion(
    cs: ConstraintSystem, leaf: Num, root: Num | None, arities: Sequence[int], *, binary: bool = False
) -> Num:
    """That a leaf is in the tree of a root: a path of given bits and siblings; the leaf's number becomes an input.

    With `binary` the tree is one of SHA-256. Where `root` is None it is a given wire after the path. The root.
    """
    path: list[int] = []
    running = leaf
    for arity in arities:
        bits = cs.alloc_bits(arity.bit_length() - 1)
        siblings = [cs.alloc() for _ in range(arity - 1)]
        row = insert(cs, running, list(bits), siblings)
        running = cs.call(sha256_pair, *row) if binary else cs.call(neptune_poseidon, row)
        path += bits.literals
    cs.expose(Bits(cs, path).num())
    root = cs.alloc() if root is None else root
    equal(cs, running, root)
    return root


def assignment(output: Phase1Output, partition: int) -> FrVector:
    """The given wires' values of a partition's circuit, canonical."""
    known, proofs = output.commitments, output.partitions[partition]
    comm_c, comm_r_last = proofs[0].column.inclusion.root, proofs[0].comm_r_last.root
    head = [known.replica_id, known.comm_d, known.comm_r, comm_r_last, comm_c]
    values = [int.from_bytes(element, "little") for element in head]
    for proof in proofs:
        values.extend(_challenge_values(output.size, proof))
    return FrVector.from_ints(BLS12_381, values)


def _challenge_values(size: SectorSize, proof: ChallengeProof) -> Iterator[int]:
    yield int.from_bytes(proof.comm_d.leaf, "little")
    yield from _path_values(proof.comm_d)
    for column in (*proof.base_parents, *proof.expander_parents):
        yield from (int.from_bytes(row, "little") for row in column.rows)
        yield from _path_values(column.inclusion)
    yield from (proof.node >> i & 1 for i in range(64))
    yield from _path_values(proof.comm_r_last)
    yield from _path_values(proof.column.inclusion)


def _path_values(proof: MerkleProof) -> Iterator[int]:
    for element in proof.path:
        arity = len(element.hashes) + 1
        yield from (element.index >> i & 1 for i in range(arity.bit_length() - 1))
        yield from (int.from_bytes(sibling, "little") for sibling in element.hashes)
