"""Amounts of memory on command lines."""

from __future__ import annotations

import re

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str, option: str) -> int:
    """Bytes from a number with a unit: 1073741824, 1024M, 1G or 1GiB, in powers of 1,024. Raises InputError."""
    from snarkline.errors import InputError

    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if match is None or len(match[1]) > 18:
        raise InputError(f"{option}: expected a size like 512M or 2GiB, found {text!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def shown(n_bytes: int) -> str:
    """Bytes for people, rounded up: what is shown suffices."""
    return f"{-(-n_bytes // UNITS['M']):,} MiB"
