"""The files of bellman and bellperson, for Groth16 on BLS12-381: parameters, verifying keys and proofs."""

from snarkline.formats.bellperson.params import load_parameters, save_parameters
from snarkline.formats.bellperson.proof import proof_from_bytes, proof_to_bytes
from snarkline.formats.bellperson.vk import load_verifying_key, save_verifying_key

__all__ = [
    "load_parameters",
    "load_verifying_key",
    "proof_from_bytes",
    "proof_to_bytes",
    "save_parameters",
    "save_verifying_key",
]
