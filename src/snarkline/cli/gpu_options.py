"""Options about GPUs that several commands take."""

from __future__ import annotations

import re
from typing import Annotated

from snarkline.cli.options import Option
from snarkline.cli.size import parse_size
from snarkline.errors import InputError

DevicesOption = Annotated[str | None, Option("--devices", help="GPUs by number, such as 0,1; the first if not given.")]
GpuMemoryOption = Annotated[
    str | None, Option("--gpu-memory", help="Most memory to take on each GPU, as 512M or 8G.", metavar="SIZE")
]


def device_numbers(text: str | None) -> tuple[int, ...] | None:
    """The numbers in a list such as "0,1". Raises InputError."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,3}(,\d{1,3})*", text):
        raise InputError(f"--devices: expected numbers separated by commas, found {text!r}")
    return tuple(int(number) for number in text.split(","))


def gpu_memory_bytes(text: str | None) -> int | None:
    """Bytes of a size such as "8G". Raises InputError."""
    return None if text is None else parse_size(text, "--gpu-memory")
