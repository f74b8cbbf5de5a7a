"""Ready-made gadgets.

Those that are called like their module hide it here: `gadgets.poseidon` is the gadget.
"""

from snarkline.circuit.gadgets.compare import divide, enforce_nonzero, is_equal, is_zero, less_equal, less_than
from snarkline.circuit.gadgets.lookup import lookup
from snarkline.circuit.gadgets.merkle import (
    merkle_root,
    merkle_tree,
    poseidon_level,
    poseidon_pair,
    sha256_level,
    sha256_pair,
)
from snarkline.circuit.gadgets.pack import num2bits, pack, range_check, to_number, unpack
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.poseidon_parameters import circom_parameters, neptune_parameters, parameters_for
from snarkline.circuit.gadgets.select import choose, select, swap
from snarkline.circuit.gadgets.sha256 import initial_state, sha256, sha256_compress, sha256_padding

__all__ = [
    "choose",
    "circom_parameters",
    "divide",
    "enforce_nonzero",
    "initial_state",
    "is_equal",
    "is_zero",
    "less_equal",
    "less_than",
    "lookup",
    "merkle_root",
    "merkle_tree",
    "neptune_parameters",
    "neptune_poseidon",
    "num2bits",
    "pack",
    "parameters_for",
    "poseidon",
    "poseidon_level",
    "poseidon_pair",
    "range_check",
    "select",
    "sha256",
    "sha256_compress",
    "sha256_level",
    "sha256_padding",
    "sha256_pair",
    "swap",
    "to_number",
    "unpack",
]
