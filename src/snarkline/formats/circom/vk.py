"""Verifying keys: verification_key.json of snarkjs, read and written; .zkey files are read too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from snarkline.curves.curve import Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import limbs_to_ints
from snarkline.formats import _native
from snarkline.formats.atomic import atomic_write
from snarkline.formats.binary import first_bytes, open_container
from snarkline.formats.circom import zkey
from snarkline.formats.circom.strict_json import KEY, WRITTEN_NAMES, dump, parse, point_to_json
from snarkline.groth16.keys import VerifyingKey

# Members of verification_key.json that hold one point each.
POINTS = {
    "vk_alpha_1": ("alpha1", Group.G1),
    "vk_beta_2": ("beta2", Group.G2),
    "vk_gamma_2": ("gamma2", Group.G2),
    "vk_delta_2": ("delta2", Group.G2),
}


def load_verifying_key(path: str | os.PathLike[str], *, strict: bool = False) -> VerifyingKey:
    """A verifying key from a verification_key.json or a .zkey file.

    Every point must be of order r, and none but those of IC infinity. A key under which false proofs can be made
    gives a SecurityWarning, and with `strict` a FormatError. Raises OSError and FormatError.
    """
    key = _from_zkey(path) if first_bytes(path, 4) == b"zkey" else _from_json(Path(path))
    zkey.warn_of_weakness(os.fspath(path), key, strict=strict)
    return key


def _from_zkey(path: str | os.PathLike[str]) -> VerifyingKey:
    return zkey.verifying_key_of_zkey(open_container(path, "zkey", zkey.VERSION))


def _from_json(path: Path) -> VerifyingKey:
    document = parse(path, KEY)
    document.get("protocol").text("groth16")
    curve = document.get("curve").curve()
    n_public = document.get("nPublic").count()
    ic = document.get("IC").items(n_public + 1)
    points = {name: document.get(member).point(curve, group) for member, (name, group) in POINTS.items()}
    return VerifyingKey(curve=curve, ic=tuple(item.point(curve, Group.G1, infinity=True) for item in ic), **points)


def verifying_key_to_json(key: VerifyingKey) -> str:
    """The text of verification_key.json."""
    return dump(
        {
            "protocol": "groth16",
            "curve": WRITTEN_NAMES[key.curve.name],
            "nPublic": key.n_public,
            **{member: point_to_json(getattr(key, name)) for member, (name, _) in POINTS.items()},
            "vk_alphabeta_12": _pairing(key.alpha1, key.beta2),
            "IC": [point_to_json(point) for point in key.ic],
        }
    )


def save_verifying_key(key: VerifyingKey, path: str | os.PathLike[str]) -> None:
    """Writes a verification_key.json. Raises OSError."""
    with atomic_write(path) as stream:
        stream.write(verifying_key_to_json(key).encode())


def _pairing(p: Point, q: Point) -> list[Any]:
    """e(p, q) as snarkjs prints it: two elements of Fp6, each three of Fp2, each two integers."""
    curve = p.curve
    tables = [PointTable.from_points(curve, point.group, [point]).limbs for point in (p, q)]
    raw = _native.executor().pairing(curve.name, *tables)
    _native.executor().to_canonical(curve.name, "fp", raw, raw)
    values = [str(v) for v in limbs_to_ints(raw)]
    fp2 = [values[i : i + 2] for i in range(0, 12, 2)]
    return [fp2[:3], fp2[3:]]
