"""File formats, read and written. `circom`: the files of circom and snarkjs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snarkline.lazy import exports

if TYPE_CHECKING:
    from snarkline.formats.circom import (
        load_proving_key,
        load_r1cs,
        load_verifying_key,
        load_witness,
        save_proving_key,
    )

__all__ = ["load_proving_key", "load_r1cs", "load_verifying_key", "load_witness", "save_proving_key"]

__getattr__, __dir__ = exports(__name__, {"snarkline.formats.circom": __all__})
