"""Parameters of bellperson (.params): the verifying key, then the arrays h, l, a, b_g1 and b_g2, each with its count.

The queries a, b_g1 and b_g2 are filtered, and the file holds no matrices: which wires they are over, the circuit tells
(`ProvingKey.attach`, which a `Prover` does).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from snarkline.curves.curve import Group
from snarkline.errors import FormatError, MismatchError
from snarkline.formats.atomic import atomic_write
from snarkline.formats.bellperson.encoding import CURVE, point_bytes
from snarkline.formats.bellperson.reader import PointReader
from snarkline.formats.bellperson.vk import counted, read_verifying_key, verifying_key_pieces
from snarkline.formats.binary import OpenFile
from snarkline.groth16.keys import HBasis, ProvingKey, Query
from snarkline.groth16.layout import bellperson_layout
from snarkline.trace import span

ARRAYS = (("h", Group.G1), ("l", Group.G1), ("a", Group.G1), ("b_g1", Group.G1), ("b_g2", Group.G2))


@dataclass(frozen=True, eq=False)
class BellpersonProvingKey(ProvingKey):
    """A proving key from a .params file. Its points were decoded: the file is not looked at again."""

    file: str

    @property
    def path(self) -> str | None:
        return self.file


def load_parameters(path: str | os.PathLike[str], *, check_subgroup: bool = False) -> ProvingKey:
    """The proving key in a .params file, read and decoded to memory.

    Checked: the counts against each other and the file, every point on its curve (with `check_subgroup` also of order
    r; the verifying key's points always), no infinity. Raises OSError and FormatError.
    """
    with span("load parameters"), OpenFile(path) as file:
        reader = PointReader(file)
        vk, points = read_verifying_key(reader)
        tables = {name: reader.table(name, group, subgroup=check_subgroup) for name, group in ARRAYS}
        reader.end()
    n_rows = len(tables["h"]) + 1
    if n_rows & (n_rows - 1):
        raise FormatError(file.path, "h: count", "one below a power of two", len(tables["h"]))
    if len(tables["b_g1"]) != len(tables["b_g2"]):
        raise FormatError(file.path, "b_g2: count", f"that of b_g1, {len(tables['b_g1'])}", len(tables["b_g2"]))
    layout = bellperson_layout(CURVE, n_rows)
    n_bound = len(vk.ic)
    return BellpersonProvingKey(
        curve=CURVE,
        n_wires=n_bound + len(tables["l"]),
        domain=layout.domain,
        h_basis=layout.h_basis,
        shift=layout.shift,
        matrices=None,
        verifying_key=vk,
        beta1=points["beta_g1"],
        delta1=points["delta_g1"],
        a=Query(tables["a"]),
        b1=Query(tables["b_g1"]),
        b2=Query(tables["b_g2"]),
        l=Query(tables["l"], first=n_bound),
        h=tables["h"],
        filtered=True,
        file=file.path,
    )


class ParameterSizes(NamedTuple):
    """The domain's size and the number of wires; the points of the queries A and B, and the bytes of all of a key's,
    which are as many in memory."""

    domain_size: int
    n_wires: int
    n_a: int
    n_b: int
    n_bytes: int


def parameter_sizes(path: str | os.PathLike[str]) -> ParameterSizes:
    """What the counts of a .params file say, without a look at its points. Raises OSError and FormatError."""
    with OpenFile(path) as file:
        reader = PointReader(file)
        vk, _ = read_verifying_key(reader)
        counts = {name: (reader.skip(name, group), point_bytes(group)) for name, group in ARRAYS}
        reader.end()
    n_bytes = sum(n * size for n, size in counts.values())
    n_wires = len(vk.ic) + counts["l"][0]
    return ParameterSizes(counts["h"][0] + 1, n_wires, counts["a"][0], counts["b_g1"][0], n_bytes)


def save_parameters(key: ProvingKey, path: str | os.PathLike[str]) -> None:
    """Writes a .params file.

    Raises OSError, and MismatchError for a key that the format cannot hold (another curve, or circom's layout).
    """
    if not key.filtered or key.h_basis is not HBasis.COEFFICIENTS:
        raise MismatchError(
            "a .params file holds filtered queries and H in coefficients: make the key with bellperson's layout"
        )
    tables = (key.h, key.l.points, key.a.points, key.b1.points, key.b2.points)
    with atomic_write(path) as stream:
        for piece in verifying_key_pieces(key):
            stream.write(piece)
        for table in tables:
            for piece in counted(table):
                stream.write(piece)
