"""Registered proofs: what the network fixes for each sector size."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from snarkline.errors import InputError

PARAMETER_FOLDER = Path("/var/tmp/filecoin-proof-parameters")
"""Where the reference implementation keeps parameters unless it is told otherwise."""

NODE_BYTES = 32
BASE_DEGREE, EXPANSION_DEGREE = 6, 8
LABEL_PARENTS = 37
"""Parents in a label's preimage: those of the graph, repeated until they are so many."""


class PorepVersion(Enum):
    """V1_0 draws expander parents from a truncated permutation and lists the previous node last."""

    V1_0 = "1.0.0"
    V1_1 = "1.1.0"
    V1_2 = "1.2.0"


@dataclass(frozen=True)
class TreeShape:
    """Arities of a Merkle tree: of its base trees, and of one level above them each for `sub` and `top` (0: none)."""

    base: int
    sub: int = 0
    top: int = 0

    @property
    def n_base_trees(self) -> int:
        return max(1, self.sub) * max(1, self.top)

    def __str__(self) -> str:
        return f"{self.base}-{self.sub}-{self.top}"


@dataclass(frozen=True)
class SectorSize:
    """A sector size and its Proof-of-Replication: tree shape, layers, partitions and challenges of each."""

    name: str
    n_bytes: int
    shape: TreeShape
    n_layers: int
    n_partitions: int
    challenges: int
    """Challenges of a partition."""

    @property
    def n_nodes(self) -> int:
        return self.n_bytes // NODE_BYTES

    @property
    def unpadded_bytes(self) -> int:
        """Bytes of data in a sector: of every 254 bits 2 are left free (fr32)."""
        return self.n_bytes // 128 * 127

    @property
    def n_public_inputs(self) -> int:
        """Of a partition's circuit, without ONE: three, and 18 for each challenge."""
        return 3 + 18 * self.challenges

    def parameter_stem(self) -> str:
        """The name of the parameter files, without the suffix, as the reference's parameter cache derives it."""
        tree = f"merkletree-poseidon_hasher-{self.shape}"
        graph = (
            f"stacked_graph::StackedGraph{{expansion_degree: {EXPANSION_DEGREE} base_graph: "
            f"drgraph::BucketGraph{{size: {self.n_nodes}; degree: {BASE_DEGREE}; hasher: poseidon_hasher}} }}"
        )
        challenges = f"LayerChallenges {{ layers: {self.n_layers}, max_count: {self.challenges} }}"
        identifier = f"layered_drgporep::PublicParams{{ graph: {graph}, challenges: {challenges}, tree: {tree} }}"
        digest = hashlib.sha256(identifier.encode()).hexdigest()
        return f"v28-stacked-proof-of-replication-{tree}-sha256_hasher-{digest}"


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
SECTOR_SIZES = {
    size.name: size
    for size in (
        SectorSize("2KiB", 2 * _KIB, TreeShape(8), 2, 1, 2),
        SectorSize("4KiB", 4 * _KIB, TreeShape(8, 2), 2, 1, 2),
        SectorSize("16KiB", 16 * _KIB, TreeShape(8, 8), 2, 1, 2),
        SectorSize("32KiB", 32 * _KIB, TreeShape(8, 8, 2), 2, 1, 2),
        SectorSize("8MiB", 8 * _MIB, TreeShape(8), 2, 1, 2),
        SectorSize("16MiB", 16 * _MIB, TreeShape(8, 2), 2, 1, 2),
        SectorSize("512MiB", 512 * _MIB, TreeShape(8), 2, 1, 2),
        SectorSize("1GiB", _GIB, TreeShape(8, 2), 2, 1, 2),
        SectorSize("32GiB", 32 * _GIB, TreeShape(8, 8), 11, 10, 18),
        SectorSize("64GiB", 64 * _GIB, TreeShape(8, 8, 2), 11, 10, 18),
    )
}

# Registered seal proof numbers, for the sizes that have one: V1_0, V1_1.
_REGISTERED = {"2KiB": (0, 5), "8MiB": (1, 6), "512MiB": (2, 7), "32GiB": (3, 8), "64GiB": (4, 9)}


def sector_size(name: str) -> SectorSize:
    """The sector size of that name ("2KiB"). Raises InputError, which lists the known ones."""
    found = SECTOR_SIZES.get(name)
    if found is None:
        raise InputError(f"sector size {name!r}: expected one of {', '.join(SECTOR_SIZES)}")
    return found


def porep_id(size: SectorSize, version: PorepVersion) -> bytes:
    """32 bytes: the registered proof's number, little-endian in 8 bytes, and the nonce 0.

    Raises InputError for a size without a registered proof.
    """
    numbers = _REGISTERED.get(size.name)
    if numbers is None:
        raise InputError(f"sector size {size.name}: no registered proof; known are {', '.join(_REGISTERED)}")
    number = numbers[0 if version is PorepVersion.V1_0 else 1]
    return number.to_bytes(8, "little") + bytes(24)
