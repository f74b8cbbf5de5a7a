"""The files of bellman and bellperson, for Groth16 on BLS12-381: parameters, verifying keys and proofs."""

from snarkline.formats.bellperson.encoding import CURVE
from snarkline.formats.bellperson.info import read_info
from snarkline.formats.bellperson.params import ParameterSizes, load_parameters, parameter_sizes, save_parameters
from snarkline.formats.bellperson.proof import proof_from_bytes, proof_to_bytes
from snarkline.formats.bellperson.vk import load_verifying_key, save_verifying_key

__all__ = [
    "CURVE",
    "ParameterSizes",
    "load_parameters",
    "load_verifying_key",
    "parameter_sizes",
    "proof_from_bytes",
    "proof_to_bytes",
    "read_info",
    "save_parameters",
    "save_verifying_key",
]
