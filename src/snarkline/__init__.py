"""Snarkline: a Groth16 proving pipeline in which every millisecond of a proof has an owner.

The public names are imported when they are first used, so that importing the package costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snarkline.lazy import exports

if TYPE_CHECKING:
    from snarkline.formats import (
        load_proving_key,
        load_r1cs,
        load_verifying_key,
        load_witness,
        save_proving_key,
    )
    from snarkline.formats.circom import proof_from_json, proof_to_calldata, proof_to_json
    from snarkline.groth16.keys import Proof, ProvingKey, VerifyingKey
    from snarkline.groth16.prover import Pending, Prover
    from snarkline.groth16.setup import setup
    from snarkline.groth16.verify import verify, verify_many
    from snarkline.memory import Arena, numpy_arrays
    from snarkline.r1cs.matrices import R1CS
    from snarkline.r1cs.witness import Witness
    from snarkline.trace import Timeline, span

__version__ = "0.1.0"

__all__ = [
    "R1CS",
    "Arena",
    "Pending",
    "Proof",
    "Prover",
    "ProvingKey",
    "Timeline",
    "VerifyingKey",
    "Witness",
    "load_proving_key",
    "load_r1cs",
    "load_verifying_key",
    "load_witness",
    "numpy_arrays",
    "proof_from_json",
    "proof_to_calldata",
    "proof_to_json",
    "save_proving_key",
    "setup",
    "span",
    "verify",
    "verify_many",
]

_HOMES = {
    "snarkline.formats": (
        "load_proving_key",
        "load_r1cs",
        "load_verifying_key",
        "load_witness",
        "save_proving_key",
    ),
    "snarkline.formats.circom": ("proof_from_json", "proof_to_calldata", "proof_to_json"),
    "snarkline.groth16.keys": ("Proof", "ProvingKey", "VerifyingKey"),
    "snarkline.groth16.prover": ("Pending", "Prover"),
    "snarkline.groth16.setup": ("setup",),
    "snarkline.groth16.verify": ("verify", "verify_many"),
    "snarkline.memory": ("Arena", "numpy_arrays"),
    "snarkline.r1cs.matrices": ("R1CS",),
    "snarkline.r1cs.witness": ("Witness",),
    "snarkline.trace": ("Timeline", "span"),
}


__getattr__, __dir__ = exports(__name__, _HOMES)
