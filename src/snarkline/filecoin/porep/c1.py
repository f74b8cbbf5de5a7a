"""The output of commit phase 1 as JSON, as the reference implementation and sealing nodes write it.

The object of filecoin-proofs; or that of filecoin-proofs-api, which names the registered proof and tags the vanilla
proofs; or the wrapper of Lotus and Curio around the latter, in base64. Elements are arrays of 32 integers.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from snarkline.curves.curve import BLS12_381
from snarkline.errors import FormatError, printable
from snarkline.filecoin.porep.merkle import MerkleProof, PathElement, level_arities
from snarkline.filecoin.porep.vanilla import ChallengeProof, ColumnProof, Commitments, LabelProof, Phase1Output
from snarkline.filecoin.registry import NODE_BYTES, SECTOR_SIZES, SectorSize, TreeShape
from snarkline.formats.binary import read_at_most
from snarkline.formats.facts import Fact
from snarkline.text import json_fault, parse_json, shorten

MAX_BYTES = 1 << 30
"""A 32 GiB sector's file has 50 MB."""
MAX_DEPTH = 32
"""Brackets in one another: a document has 14."""
MAX_LEVELS = 64
"""Of tree d: a 64 GiB sector's has 31."""
PARTS = {
    "Single": ("path",),
    "Sub": ("base_proof", "sub_proof"),
    "Top": ("base_proof", "sub_proof", "top_proof"),
}
"""The members of a Merkle proof that hold its path, from the leaf up."""
COMMITMENTS = ("comm_r", "comm_d", "replica_id", "seed", "ticket")


def load_phase1(path: str | os.PathLike[str], size: SectorSize) -> Phase1Output:
    """Reads a C1 file for a sector size. Raises OSError, and FormatError naming the place in the document.

    Only the shape is checked here; `check_phase1` checks the openings.
    """
    return parse_phase1(read_at_most(path, MAX_BYTES), size, path=os.fspath(path))


def parse_phase1(data: bytes, size: SectorSize, *, path: str | None = None) -> Phase1Output:
    document, wrapper = _documents(path, data)
    if wrapper is not None:
        wrapper.member("SectorSize").equal(size.n_bytes)
    registered = document.find("registered_proof")
    if registered is not None and not str(registered.value).startswith(f"StackedDrg{size.name}V1"):
        raise registered.error(f"a registered proof for {size.name}", registered.value)
    proofs = document.member("vanilla_proofs")
    if isinstance(proofs.value, dict):
        proofs = proofs.member(f"StackedDrg{size.name}V1")
    read = _Reader(size)
    partitions = tuple(tuple(read.challenge(p) for p in k.items()) for k in proofs.items(size.n_partitions))
    commitments = Commitments(**{name: document.member(name).element(canonical=False) for name in COMMITMENTS})
    return Phase1Output(size, commitments, partitions)


def phase1_facts(path: str | os.PathLike[str]) -> dict[str, Fact]:
    """What a C1 file, of any sector size, says of itself: from its counts and its first opening.

    Raises OSError, and FormatError naming the place in the document.
    """
    document, wrapper = _documents(os.fspath(path), read_at_most(path, MAX_BYTES))
    proofs, registered = document.member("vanilla_proofs"), document.find("registered_proof")
    if isinstance(proofs.value, dict) and len(proofs.value) == 1:
        proofs = proofs.member(next(iter(proofs.value)))
    partitions = proofs.items(at_least=1)
    challenges = [partition.items(at_least=1) for partition in partitions]
    opening = challenges[0][0]
    levels = opening.member("comm_d_proofs").member("data").member("Single").member("path").member("path").items()
    n_bytes = NODE_BYTES << min(len(levels), MAX_LEVELS)  # tree d is binary
    name = next((size.name for size in SECTOR_SIZES.values() if size.n_bytes == n_bytes), f"{n_bytes} bytes")
    writer = "filecoin-proofs" if registered is None else "filecoin-proofs-api"
    return {
        "form": writer if wrapper is None else f"{writer}, wrapped by a sealing node",
        **({} if registered is None else {"registered proof": registered.text()}),
        "sector size": name,
        "partitions": len(partitions),
        "challenges": sum(map(len, challenges)),
        "layers": len(opening.member("labeling_proofs").items()),
        **{name: document.member(name).element(canonical=False).hex() for name in COMMITMENTS},
    }


def _documents(path: str | None, data: bytes) -> tuple[_Node, _Node | None]:
    """The object of filecoin-proofs or of its API, and the wrapper around it if there is one."""
    document = _Node(path, "$", _decode(path, data))
    wrapped = document.find("Phase1Out")
    if wrapped is None:
        return document, None
    return _Node(path, "$.Phase1Out", _decode(path, wrapped.base64())), document


def phase1_to_json(output: Phase1Output) -> str:
    """The object of filecoin-proofs, in its order of members and without spaces."""
    write = _Writer(output.size)
    document: dict[str, Any] = {"vanilla_proofs": [[write.challenge(p) for p in k] for k in output.partitions]}
    document |= {name: list(getattr(output.commitments, name)) for name in COMMITMENTS}
    return json.dumps(document, separators=(",", ":"))


class _Reader:
    """Reads the parts of a vanilla proof for one sector size."""

    def __init__(self, size: SectorSize) -> None:
        self.size = size

    def challenge(self, node: _Node) -> ChallengeProof:
        columns = node.member("replica_column_proofs")
        return ChallengeProof(
            comm_d=self.merkle(node.member("comm_d_proofs"), TreeShape(2)),
            comm_r_last=self.merkle(node.member("comm_r_last_proof"), self.size.shape),
            column=self.column(columns.member("c_x")),
            base_parents=tuple(self.column(c) for c in columns.member("drg_parents").items(6)),
            expander_parents=tuple(self.column(c) for c in columns.member("exp_parents").items(8)),
            labels=tuple(self.label(p) for p in node.member("labeling_proofs").items(self.size.n_layers)),
            encoding=self.label(node.member("encoding_proof")),
        )

    def column(self, node: _Node) -> ColumnProof:
        column = node.member("column")
        rows = tuple(row.element() for row in column.member("rows").items(self.size.n_layers))
        return ColumnProof(
            column.member("index").count(), rows, self.merkle(node.member("inclusion_proof"), self.size.shape)
        )

    def label(self, node: _Node) -> LabelProof:
        parents = tuple(p.element() for p in node.member("parents").items())
        return LabelProof(parents, node.member("layer_index").count(), node.member("node").count())

    def merkle(self, node: _Node, shape: TreeShape) -> MerkleProof:
        data = node.member("data")
        kind = next((k for k in ("Single", "Sub", "Top") if data.find(k) is not None), None)
        if kind is None:
            raise data.error("a member Single, Sub or Top", _kind(data.value))
        proof = data.member(kind)
        path = tuple(self.level(e) for part in PARTS[kind] for e in proof.member(part).member("path").items())
        arities, found = level_arities(shape, self.size.n_nodes), [len(e.hashes) + 1 for e in path]
        if found != arities:
            expected = f"{len(arities)} levels of arities {arities}, as in {self.size.name}"
            raise proof.error(expected, f"{len(found)} levels of arities {found}")
        return MerkleProof(proof.member("root").element(), proof.member("leaf").element(), path)

    @staticmethod
    def level(node: _Node) -> PathElement:
        return PathElement(tuple(h.element() for h in node.member("hashes").items()), node.member("index").count())


class _Writer:
    def __init__(self, size: SectorSize) -> None:
        self.size = size

    def challenge(self, proof: ChallengeProof) -> dict[str, Any]:
        return {
            "comm_d_proofs": self.merkle(proof.comm_d, 0),
            "comm_r_last_proof": self.merkle(proof.comm_r_last, self._levels_above),
            "replica_column_proofs": {
                "c_x": self.column(proof.column),
                "drg_parents": [self.column(c) for c in proof.base_parents],
                "exp_parents": [self.column(c) for c in proof.expander_parents],
            },
            "labeling_proofs": [self.label(p) for p in proof.labels],
            "encoding_proof": self.label(proof.encoding),
        }

    @property
    def _levels_above(self) -> int:
        return sum(1 for arity in (self.size.shape.sub, self.size.shape.top) if arity)

    def column(self, proof: ColumnProof) -> dict[str, Any]:
        column = {"index": proof.node, "rows": [list(row) for row in proof.rows], "_h": None}
        return {"column": column, "inclusion_proof": self.merkle(proof.inclusion, self._levels_above)}

    @staticmethod
    def label(proof: LabelProof) -> dict[str, Any]:
        return {"parents": [list(p) for p in proof.parents], "layer_index": proof.layer, "node": proof.node}

    @staticmethod
    def merkle(proof: MerkleProof, above: int) -> dict[str, Any]:
        levels = [{"hashes": [list(h) for h in e.hashes], "index": e.index} for e in proof.path]
        base, upper = {"path": levels[: len(levels) - above]}, [{"path": [e]} for e in levels[len(levels) - above :]]
        ends = {"root": list(proof.root), "leaf": list(proof.leaf)}
        if above == 0:
            return {"data": {"Single": ends | {"path": base}}}
        if above == 1:
            return {"data": {"Sub": {"base_proof": base, "sub_proof": upper[0]} | ends}}
        return {"data": {"Top": {"base_proof": base, "sub_proof": upper[0], "top_proof": upper[1]} | ends}}


class _Node:
    """A value of the document and its place; every reader raises FormatError for another kind of value."""

    def __init__(self, path: str | None, place: str, value: Any) -> None:
        self.path, self.place, self.value = path, place, value

    def error(self, expected: object, found: object) -> FormatError:
        return FormatError(self.path, self.place, expected, found)

    def find(self, name: str) -> _Node | None:
        if not isinstance(self.value, dict) or name not in self.value:
            return None
        return _Node(self.path, f"{self.place}.{name}", self.value[name])

    def member(self, name: str) -> _Node:
        found = self.find(name)
        if found is None:
            raise self.error(f"an object with {name}", _kind(self.value))
        return found

    def items(self, n: int | None = None, *, at_least: int = 0) -> list[_Node]:
        size = len(self.value) if isinstance(self.value, list) else None
        if size is None or size < at_least or (n is not None and size != n):
            expected = f"an array of {n} items" if n is not None else "an array with items" if at_least else "an array"
            raise self.error(expected, _kind(self.value) if size is None else f"{size} items")
        return [_Node(self.path, f"{self.place}[{i}]", v) for i, v in enumerate(self.value)]

    def count(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not 0 <= self.value < 1 << 63:
            raise self.error("a non-negative integer", _kind(self.value))
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("text", _kind(self.value))
        return printable(shorten(self.value))

    def equal(self, expected: int) -> None:
        if self.count() != expected:
            raise self.error(expected, self.value)

    def element(self, *, canonical: bool = True) -> bytes:
        """32 bytes; with `canonical`, of an integer below r."""
        value = self.value
        if not isinstance(value, list) or len(value) != 32:
            raise self.error("an array of 32 bytes", _kind(value))
        if not all(isinstance(b, int) and not isinstance(b, bool) and 0 <= b < 256 for b in value):
            raise self.error("integers in [0, 256)", "another value")
        data = bytes(value)
        if canonical and int.from_bytes(data, "little") >= BLS12_381.r:
            raise self.error("a field element below r", "a larger one")
        return data

    def base64(self) -> bytes:
        if not isinstance(self.value, str):
            raise self.error("base64 text", _kind(self.value))
        try:
            return base64.b64decode(self.value, validate=True)
        except ValueError as error:  # binascii.Error is one; text beyond ASCII is another
            raise self.error("base64 text", str(error)) from None


def _kind(value: Any) -> str:
    if not isinstance(value, dict):
        return type(value).__name__
    return printable(f"an object with {', '.join(name[:40] for name in list(value)[:6]) or 'nothing'}")


def _decode(path: str | None, data: bytes) -> Any:
    try:
        return parse_json(data.decode(), MAX_DEPTH)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "document", "JSON", json_fault(error)) from None
