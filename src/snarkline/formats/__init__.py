"""File formats, read and written. `circom`: the files of circom and snarkjs."""

from snarkline.formats.circom import (
    load_proving_key,
    load_r1cs,
    load_verifying_key,
    load_witness,
    save_proving_key,
)

__all__ = ["load_proving_key", "load_r1cs", "load_verifying_key", "load_witness", "save_proving_key"]
