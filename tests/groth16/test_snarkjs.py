"""snarkjs with our keys: it proves with them, we verify its proofs, and it verifies ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key

from snarkline import load_verifying_key, proof_from_json, proof_to_json, save_proving_key, verify
from snarkline.curves.curve import CURVES, Curve
from snarkline.formats.circom import save_witness
from snarkline.groth16.prover import Prover

pytestmark = pytest.mark.snarkjs


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("name", ["only public signals", "20 public signals"])
def test_keys_from_setup(tmp_path: Path, snarkjs: Any, curve: Curve, name: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    zkey, wtns, vk_json, proof_json, public_json = (
        tmp_path / file for file in ("c.zkey", "c.wtns", "vk.json", "proof.json", "public.json")
    )
    save_proving_key(key, zkey)
    save_witness(circuit.witness(curve), wtns)
    for command in (
        ("zkey", "export", "verificationkey", zkey, vk_json),
        ("groth16", "prove", zkey, wtns, proof_json, public_json),
    ):
        done = snarkjs(*command)
        assert done.returncode == 0, done.stdout
    assert verify(load_verifying_key(vk_json), proof_from_json(proof_json, public_json))

    with Prover(key) as prover:
        proof = prover.prove(circuit.witness(curve))
    proof_json.write_text(proof_to_json(proof))
    public_json.write_text(json.dumps([str(value) for value in proof.public]))
    done = snarkjs("groth16", "verify", vk_json, public_json, proof_json)
    assert done.returncode == 0 and "OK!" in done.stdout, done.stdout
