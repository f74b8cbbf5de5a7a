"""What a file says of itself."""

from __future__ import annotations

from dataclasses import dataclass

Fact = str | int | bool
KNOWN = "a .r1cs, .wtns, .zkey, .sym, .json, .params or .vk file, or bellperson's proofs"
"""What messages call the files of this package."""


@dataclass(frozen=True)
class FileInfo:
    """`kind` is circuit, witness, proving key, symbols, verifying key, proof, public inputs or vanilla proofs; `facts`
    is the rest."""

    path: str
    kind: str
    n_bytes: int
    facts: dict[str, Fact]
