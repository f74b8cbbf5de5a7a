"""Symbol files (.sym) of circom: the names of a circuit's wires."""

from __future__ import annotations

import os
from collections.abc import Iterable

from snarkline.errors import FormatError
from snarkline.formats.atomic import atomic_write
from snarkline.formats.binary import open_regular

MAX_LINE = 1 << 16


def load_symbols(path: str | os.PathLike[str]) -> dict[int, str]:
    """The name of every wire that has one: the first of its signals, for example main.hash.in[3].

    A line is `label,wire,component,name`; signals that the compiler removed have wire -1. Raises OSError and
    FormatError.
    """
    names: dict[int, str] = {}
    with os.fdopen(open_regular(path), encoding="utf-8", errors="replace") as stream:
        number = 0
        while line := stream.readline(MAX_LINE):
            number += 1
            fields = line.rstrip("\n").split(",", 3)
            if len(fields) != 4 or not _is_wire(fields[1]):
                raise FormatError(path, f"line {number}", "label,wire,component,name", repr(line[:60]))
            if fields[1] != "-1":
                names.setdefault(int(fields[1]), fields[3])
    return names


def save_symbols(names: Iterable[tuple[int, str]], path: str | os.PathLike[str]) -> None:
    """Writes a .sym file from pairs of wire and name; labels are the wires, names begin with main. Raises OSError."""
    with atomic_write(path) as stream:
        for wire, name in names:
            stream.write(f"{wire},{wire},0,main.{name}\n".encode())


def _is_wire(text: str) -> bool:
    return text == "-1" or (len(text) <= 10 and text.isascii() and text.isdigit())
