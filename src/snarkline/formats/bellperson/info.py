"""What bellperson's files say of themselves: their counts. Points are not decoded."""

from __future__ import annotations

import os
from pathlib import Path

from snarkline.curves.curve import Group
from snarkline.errors import FormatError
from snarkline.formats.bellperson.encoding import COMPRESSED, CURVE, INFINITY, point_bytes
from snarkline.formats.bellperson.params import ARRAYS
from snarkline.formats.bellperson.proof import PROOF_BYTES
from snarkline.formats.bellperson.reader import HEAD, PointReader
from snarkline.formats.binary import OpenFile, first_bytes
from snarkline.formats.facts import KNOWN, Fact, FileInfo

PARAMETERS, VERIFYING_KEY = ".params", ".vk"
MAX_PROOFS = 1 << 10
"""Of one file: a sector has ten at most."""


def knows(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of bellperson's: a key by its name, proofs by their first byte. Raises OSError."""
    return Path(path).suffix in (PARAMETERS, VERIFYING_KEY) or _is_compressed(first_bytes(path, 1))


def read_info(path: str | os.PathLike[str]) -> FileInfo:
    """Facts about a .params file, a .vk file, or proofs. Raises OSError and FormatError."""
    suffix = Path(path).suffix
    if suffix == PARAMETERS:
        return _of_key(path, "proving key")
    return _of_key(path, "verifying key") if suffix == VERIFYING_KEY else _of_proofs(path)


def _of_key(path: str | os.PathLike[str], kind: str) -> FileInfo:
    with OpenFile(path) as file:
        reader = PointReader(file)
        head = {name: reader.skip_point(name, group) for name, group in HEAD}
        arrays = {"ic": (Group.G1, reader.skip("ic", Group.G1))}
        if kind == "proving key":
            arrays |= {name: (group, reader.skip(name, group)) for name, group in ARRAYS}
        reader.end()
    n_bound = arrays["ic"][1]
    if n_bound == 0:
        raise FormatError(file.path, "ic: count", "1 or more", 0)
    facts: dict[str, Fact] = {"protocol": "groth16", "curve": CURVE.name}
    if kind == "proving key":
        facts |= {"wires": n_bound + arrays["l"][1], "domain size": arrays["h"][1] + 1}
    sizes = [f"{name} {n} points ({n * point_bytes(group)} bytes)" for name, (group, n) in arrays.items()]
    facts |= {
        "public inputs": n_bound - 1,
        "anyone can forge (gamma = delta)": head["gamma_g2"] == head["delta_g2"],
        "arrays": ", ".join(sizes),
    }
    return FileInfo(file.path, kind, file.size, facts)


def _of_proofs(path: str | os.PathLike[str]) -> FileInfo:
    n_bytes = Path(path).stat().st_size
    data = first_bytes(path, PROOF_BYTES * MAX_PROOFS)
    n, rest = divmod(n_bytes, PROOF_BYTES)
    starts = [PROOF_BYTES * i + start for i in range(n) for start in (0, 48, 144)]  # of A, B and C
    if rest or len(data) < n_bytes or not all(_is_compressed(data[start:]) for start in starts):
        raise FormatError(path, "offset 0", KNOWN, f"{n_bytes} bytes of another kind")
    return FileInfo(os.fspath(path), "proof", n_bytes, {"protocol": "groth16", "curve": CURVE.name, "proofs": n})


def _is_compressed(encoding: bytes) -> bool:
    """Whether a compressed point that is not infinity may begin so."""
    return len(encoding) > 0 and encoding[0] & (COMPRESSED | INFINITY) == COMPRESSED
