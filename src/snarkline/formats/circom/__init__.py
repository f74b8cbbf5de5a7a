"""The files of circom and snarkjs, for Groth16 on BN254 and BLS12-381, read and written.

.r1cs (circuit), .wtns (witness), .zkey (proving key), .sym (names of wires), and the JSON of verification_key.json,
proof.json and public.json; circom's witness calculators (.wasm) are run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snarkline.lazy import exports

if TYPE_CHECKING:
    from snarkline.formats.circom.info import read_info
    from snarkline.formats.circom.proof import (
        proof_from_json,
        proof_to_calldata,
        proof_to_json,
        public_from_json,
        public_to_json,
    )
    from snarkline.formats.circom.r1cs import load_r1cs, save_r1cs
    from snarkline.formats.circom.solidity import verifier_to_solidity
    from snarkline.formats.circom.sym import load_symbols, save_symbols
    from snarkline.formats.circom.vk import load_verifying_key, save_verifying_key, verifying_key_to_json
    from snarkline.formats.circom.wasm import WitnessCalculator, calculate_witness
    from snarkline.formats.circom.wtns import load_witness, save_witness, write_witness
    from snarkline.formats.circom.zkey import load_proving_key
    from snarkline.formats.circom.zkey_write import save_proving_key
    from snarkline.formats.facts import FileInfo

__all__ = [
    "FileInfo",
    "WitnessCalculator",
    "calculate_witness",
    "load_proving_key",
    "load_r1cs",
    "load_symbols",
    "load_verifying_key",
    "load_witness",
    "proof_from_json",
    "proof_to_calldata",
    "proof_to_json",
    "public_from_json",
    "public_to_json",
    "read_info",
    "save_proving_key",
    "save_r1cs",
    "save_symbols",
    "save_verifying_key",
    "save_witness",
    "verifier_to_solidity",
    "verifying_key_to_json",
    "write_witness",
]

_HOMES = {
    "snarkline.formats.circom.info": ("read_info",),
    "snarkline.formats.circom.proof": (
        "proof_from_json",
        "proof_to_calldata",
        "proof_to_json",
        "public_from_json",
        "public_to_json",
    ),
    "snarkline.formats.circom.r1cs": ("load_r1cs", "save_r1cs"),
    "snarkline.formats.circom.solidity": ("verifier_to_solidity",),
    "snarkline.formats.circom.sym": ("load_symbols", "save_symbols"),
    "snarkline.formats.circom.vk": ("load_verifying_key", "save_verifying_key", "verifying_key_to_json"),
    "snarkline.formats.circom.wasm": ("WitnessCalculator", "calculate_witness"),
    "snarkline.formats.circom.wtns": ("load_witness", "save_witness", "write_witness"),
    "snarkline.formats.circom.zkey": ("load_proving_key",),
    "snarkline.formats.circom.zkey_write": ("save_proving_key",),
    "snarkline.formats.facts": ("FileInfo",),
}

__getattr__, __dir__ = exports(__name__, _HOMES)
