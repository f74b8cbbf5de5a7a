"""What a file is, those of Filecoin included."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from snarkline.filecoin.registry import SECTOR_SIZES
from snarkline.formats import read_info as read_other
from snarkline.formats.binary import first_bytes
from snarkline.formats.facts import FileInfo

# Names of members of a C1 output, in its three forms: the first one of a document tells, others begin otherwise.
C1_HEAD = re.compile(
    rb'\s*\{\s*"(vanilla_proofs|comm_r|comm_d|replica_id|seed|ticket|registered_proof|SectorNum|Phase1Out|SectorSize)"\s*:'
)


def read_info(path: str | os.PathLike[str]) -> FileInfo:
    """Facts about any file that this package reads. Values, points and openings are not checked.

    A key that is called as the registered ones tells its sector size. Raises OSError and FormatError.
    """
    if C1_HEAD.match(first_bytes(path, 64)):
        from snarkline.filecoin.porep.c1 import phase1_facts

        return FileInfo(os.fspath(path), "vanilla proofs", Path(path).stat().st_size, phase1_facts(path))
    found = read_other(path)
    size = next((size for size in SECTOR_SIZES.values() if size.parameter_stem() == Path(path).stem), None)
    if size is None or "key" not in found.kind:
        return found
    return replace(found, facts={"sector size": f"{size.name}, by its name", **found.facts})
