"""File formats, read and written: `circom` (the files of circom and snarkjs) and `bellperson` (those of Filecoin)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from snarkline.formats import circom
from snarkline.lazy import exports

if TYPE_CHECKING:
    from snarkline.formats.circom import load_r1cs, load_witness
    from snarkline.formats.facts import FileInfo
    from snarkline.groth16.keys import ProvingKey, VerifyingKey

__all__ = ["load_proving_key", "load_r1cs", "load_verifying_key", "load_witness", "read_info", "save_proving_key"]

__getattr__, __dir__ = exports(__name__, {"snarkline.formats.circom": ("load_r1cs", "load_witness")})


def load_proving_key(
    path: str | os.PathLike[str],
    *,
    check_subgroup: bool = False,
    strict: bool = False,
    threads: int | None = None,
    copy: bool = False,
) -> ProvingKey:
    """The proving key in a .params file (bellperson's) or, by any other name, a .zkey file (circom's).

    Arguments and errors are those of `circom.load_proving_key`; `strict` says nothing about .params files, whose weak
    forms are always refused, nor do `threads` and `copy`: they are decoded to memory.
    """
    if Path(path).suffix == ".params":
        from snarkline.formats import bellperson

        return bellperson.load_parameters(path, check_subgroup=check_subgroup)
    return circom.load_proving_key(path, check_subgroup=check_subgroup, strict=strict, threads=threads, copy=copy)


def load_verifying_key(path: str | os.PathLike[str], *, strict: bool = False) -> VerifyingKey:
    """The verifying key in a .vk file (bellperson's), a verification_key.json or a .zkey file (circom's)."""
    if Path(path).suffix == ".vk":
        from snarkline.formats import bellperson

        return bellperson.load_verifying_key(path)
    return circom.load_verifying_key(path, strict=strict)


def read_info(path: str | os.PathLike[str]) -> FileInfo:
    """What a file is and what it says of itself. Values and points are not checked. Raises OSError and FormatError."""
    from snarkline.formats.bellperson import info
    from snarkline.formats.binary import open_regular

    os.close(open_regular(path))
    return info.read_info(path) if info.knows(path) else circom.read_info(path)


def save_proving_key(key: ProvingKey, path: str | os.PathLike[str]) -> None:
    """Writes a .params file if the path is called so, a .zkey file otherwise. Raises OSError and MismatchError."""
    if Path(path).suffix == ".params":
        from snarkline.formats import bellperson

        bellperson.save_parameters(key, path)
    else:
        circom.save_proving_key(key, path)
