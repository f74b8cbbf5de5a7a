"""The files of circom and snarkjs, for Groth16 on BN254 and BLS12-381, read and written.

.r1cs (circuit), .wtns (witness), .zkey (proving key), .sym (names of wires), and the JSON of verification_key.json,
proof.json and public.json.
"""

from __future__ import annotations

from snarkline.formats.circom.r1cs import load_r1cs, save_r1cs
from snarkline.formats.circom.wtns import load_witness, save_witness
from snarkline.formats.circom.zkey import load_proving_key
from snarkline.formats.circom.zkey_write import save_proving_key

__all__ = [
    "load_proving_key",
    "load_r1cs",
    "load_witness",
    "save_proving_key",
    "save_r1cs",
    "save_witness",
]
