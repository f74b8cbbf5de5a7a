"""Circuit files taken apart and put together with nothing of the package, to build and break them in tests."""

from __future__ import annotations

import lzma
import struct
from dataclasses import dataclass, replace
from pathlib import Path

VECTORS = Path(__file__).parent.parent / "vectors" / "circom"
MULTIPLIERS = ("multiplier_bn128", "multiplier_bls12381")
NAMES = ("multiplier_bn128", "multiplier_bls12381", "merkle20_bn128", "square12_bls12381")

R = {
    "bn254": 21888242871839275222246405745257275088548364400416034343698204186575808495617,
    "bls12_381": 52435875175126190479447740508185965837690552500527637822603658699938581184513,
}
Q = {
    "bn254": 21888242871839275222246405745257275088696311157297823662689037894645226208583,
    "bls12_381": 4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787,  # noqa: E501
}


def vector(name: str, file: str) -> bytes:
    path = VECTORS / name / file
    return path.read_bytes() if path.exists() else lzma.decompress(path.with_name(file + ".xz").read_bytes())


@dataclass(frozen=True)
class Raw:
    """A container: sections as (id, content), in the order of the file."""

    magic: bytes
    version: int
    sections: tuple[tuple[int, bytes], ...]

    @classmethod
    def split(cls, data: bytes) -> Raw:
        magic, version, count = struct.unpack_from("<4sII", data)
        sections, at = [], 12
        for _ in range(count):
            section_id, size = struct.unpack_from("<IQ", data, at)
            sections.append((section_id, data[at + 12 : at + 12 + size]))
            at += 12 + size
        assert at == len(data)
        return cls(magic, version, tuple(sections))

    def join(self) -> bytes:
        parts = [struct.pack("<4sII", self.magic, self.version, len(self.sections))]
        for section_id, content in self.sections:
            parts += [struct.pack("<IQ", section_id, len(content)), content]
        return b"".join(parts)

    def __getitem__(self, section_id: int) -> bytes:
        return dict(self.sections)[section_id]

    def offset(self, section_id: int) -> int:
        at = 12
        for i, content in self.sections:
            if i == section_id:
                return at + 12
            at += 12 + len(content)
        raise KeyError(section_id)

    def with_section(self, section_id: int, content: bytes) -> Raw:
        """With another content for a section, which is added if it is not there."""
        ids = [i for i, _ in self.sections]
        changed = tuple((i, content if i == section_id else c) for i, c in self.sections)
        return replace(self, sections=changed if section_id in ids else (*changed, (section_id, content)))

    def without(self, section_id: int) -> Raw:
        return replace(self, sections=tuple(s for s in self.sections if s[0] != section_id))

    def reordered(self, order: list[int]) -> Raw:
        return replace(self, sections=tuple((i, self[i]) for i in order))


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


Row = list[tuple[int, int]]


def r1cs_rows(raw: Raw) -> list[tuple[Row, Row, Row]]:
    """The constraints of a .r1cs, term by term."""
    data, (n_constraints,) = raw[2], struct.unpack_from("<I", raw[1], 60)
    at, rows = 0, []
    for _ in range(n_constraints):
        combinations = []
        for _ in range(3):
            (count,) = struct.unpack_from("<I", data, at)
            at += 4
            terms = []
            for _ in range(count):
                (wire,) = struct.unpack_from("<I", data, at)
                terms.append((wire, int.from_bytes(data[at + 4 : at + 36], "little")))
                at += 36
            combinations.append(terms)
        rows.append(tuple(combinations))
    assert at == len(data)
    return rows


def r1cs_file(
    curve: str, n_wires: int, n_outputs: int, n_public: int, rows: list[tuple[Row, Row, Row]], labels: bool = True
) -> Raw:
    """A .r1cs with these constraints."""
    header = struct.pack("<I", 32) + R[curve].to_bytes(32, "little")
    header += struct.pack("<IIIIQI", n_wires, n_outputs, n_public, 0, n_wires, len(rows))
    content = b"".join(
        struct.pack("<I", len(terms))
        + b"".join(struct.pack("<I", wire) + value.to_bytes(32, "little") for wire, value in terms)
        for row in rows
        for terms in row
    )
    sections = [(1, header), (2, content)]
    if labels:
        sections.append((3, struct.pack(f"<{n_wires}Q", *range(n_wires))))
    return Raw(b"r1cs", 1, tuple(sections))


def witness_file(curve: str, values: list[int]) -> Raw:
    header = struct.pack("<I", 32) + R[curve].to_bytes(32, "little") + struct.pack("<I", len(values))
    return Raw(b"wtns", 2, ((1, header), (2, b"".join(v.to_bytes(32, "little") for v in values))))


def witness_values(raw: Raw) -> list[int]:
    return [int.from_bytes(raw[2][i : i + 32], "little") for i in range(0, len(raw[2]), 32)]


Coefficient = tuple[int, int, int, int]


def coefficients(raw: Raw) -> list[Coefficient]:
    """Section 4 of a .zkey: (matrix, constraint, wire, value as stored)."""
    data = raw[4]
    (count,) = struct.unpack_from("<I", data)
    assert len(data) == 4 + 44 * count
    return [
        (*struct.unpack_from("<III", data, at), int.from_bytes(data[at + 12 : at + 44], "little"))
        for at in range(4, len(data), 44)
    ]


def coefficient_section(records: list[Coefficient]) -> bytes:
    body = [struct.pack("<III", *record[:3]) + record[3].to_bytes(32, "little") for record in records]
    return struct.pack("<I", len(records)) + b"".join(body)
