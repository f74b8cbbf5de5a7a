"""Verifying keys of bellperson (.vk, and the head of .params).

alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, then the IC points with their count; all uncompressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from snarkline.curves.curve import Group
from snarkline.curves.point import Point, PointTable
from snarkline.errors import FormatError, MismatchError
from snarkline.formats.atomic import atomic_write
from snarkline.formats.bellperson.encoding import CURVE, encode_points
from snarkline.formats.bellperson.reader import HEAD, PointReader
from snarkline.formats.binary import Bytes, OpenFile
from snarkline.groth16.keys import ProvingKey, VerifyingKey


def load_verifying_key(path: str | os.PathLike[str]) -> VerifyingKey:
    """The verifying key of a .vk file. Every point must be of order r and none infinity.

    Raises OSError and FormatError.
    """
    with OpenFile(path) as file:
        reader = PointReader(file)
        key, _ = read_verifying_key(reader)
        reader.end()
    return key


def read_verifying_key(reader: PointReader) -> tuple[VerifyingKey, dict[str, Point]]:
    """The key, and all of its single points by name (beta_g1 and delta_g1 serve the prover)."""
    points = {name: reader.point(name, group) for name, group in HEAD}
    ic = reader.table("ic", Group.G1, subgroup=True)
    if len(ic) == 0:
        raise FormatError(reader.path, f"offset {reader.offset - 4}: ic: count", "1 or more", 0)
    if points["gamma_g2"] == points["delta_g2"]:
        raise FormatError(reader.path, "delta_g2", "another point than gamma_g2", "the same: anyone can forge proofs")
    key = VerifyingKey(
        CURVE, points["alpha_g1"], points["beta_g2"], points["gamma_g2"], points["delta_g2"], tuple(ic.to_points())
    )
    return key, points


def save_verifying_key(key: ProvingKey, path: str | os.PathLike[str]) -> None:
    """Writes a .vk file. It holds beta and delta in G1 too, which a verifying key alone does not know.

    Raises OSError, and MismatchError for a key over another curve.
    """
    with atomic_write(path) as stream:
        for piece in verifying_key_pieces(key):
            stream.write(piece)


def verifying_key_pieces(key: ProvingKey) -> Iterator[Bytes]:
    if key.curve is not CURVE:
        raise MismatchError(f"bellperson's files are over {CURVE.name}; this key is over {key.curve.name}")
    vk = key.verifying_key
    for point in (vk.alpha1, key.beta1, vk.beta2, vk.gamma2, key.delta1, vk.delta2):
        yield from encode_points(PointTable.from_points(CURVE, point.group, [point]))
    yield from counted(PointTable.from_points(CURVE, Group.G1, vk.ic))


def counted(table: PointTable) -> Iterator[Bytes]:
    """An array as the files hold it: its count, its points."""
    yield np.frombuffer(len(table).to_bytes(4, "big"), np.uint8)
    yield from encode_points(table)
