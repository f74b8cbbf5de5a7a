"""Files that the package writes, in the hands of snarkjs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from node_tools import snarkjs
from raw_files import R, Raw, r1cs_file, r1cs_rows, vector, witness_file

from snarkline.errors import SecurityWarning
from snarkline.formats.circom import (
    load_proving_key,
    load_r1cs,
    load_witness,
    proof_from_json,
    proof_to_calldata,
    save_proving_key,
    save_r1cs,
    save_verifying_key,
    save_witness,
)
from snarkline.groth16.setup import setup
from snarkline.groth16.verify import verify

pytestmark = pytest.mark.snarkjs


def square_chain(curve: str, length: int) -> tuple[Any, list[int]]:
    """x, x^2 + 1, ... : wire 1 is the public output, wire 2 the private input."""
    r = R[curve]
    values, rows = [1, 0, 3], []
    wire = 2
    for k in range(length):
        out = 1 if k == length - 1 else len(values)
        value = (values[wire] ** 2 + 1) % r
        if out == 1:
            values[1] = value
        else:
            values.append(value)
        rows.append(([(wire, 1)], [(wire, 1)], [(0, r - 1), (out, 1)]))
        wire = out
    return rows, values


@pytest.mark.parametrize("curve", ["bn254", "bls12_381"])
def test_snarkjs_proves_with_keys_and_witnesses_that_we_wrote(curve: str, tmp_path: Path) -> None:
    rows, values = square_chain(curve, 9)
    (tmp_path / "made.r1cs").write_bytes(r1cs_file(curve, len(values), 1, 0, rows).join())
    (tmp_path / "made.wtns").write_bytes(witness_file(curve, values).join())
    r1cs = load_r1cs(tmp_path / "made.r1cs")
    save_witness(load_witness(tmp_path / "made.wtns"), tmp_path / "w.wtns")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        key = setup(r1cs)
    save_proving_key(key, tmp_path / "k.zkey")
    save_verifying_key(key.verifying_key, tmp_path / "vk.json")

    snarkjs("zkey", "export", "verificationkey", tmp_path / "k.zkey", tmp_path / "vk2.json")
    assert (tmp_path / "vk2.json").read_bytes() == (tmp_path / "vk.json").read_bytes()
    snarkjs("groth16", "prove", tmp_path / "k.zkey", tmp_path / "w.wtns", tmp_path / "p.json", tmp_path / "x.json")
    proof = proof_from_json(tmp_path / "p.json", tmp_path / "x.json")
    assert verify(key.verifying_key, proof)
    assert proof.public == (values[1],)


def test_snarkjs_reads_a_key_that_we_saved_and_contributes_to_it(tmp_path: Path) -> None:
    (tmp_path / "k.zkey").write_bytes(vector("multiplier_bn128", "circuit.zkey"))
    save_proving_key(load_proving_key(tmp_path / "k.zkey"), tmp_path / "saved.zkey")
    snarkjs("zkey", "contribute", tmp_path / "saved.zkey", tmp_path / "next.zkey", "-e=entropy for a test")
    raw_before, after = load_proving_key(tmp_path / "k.zkey"), load_proving_key(tmp_path / "next.zkey")
    assert after.verifying_key.delta2 != raw_before.verifying_key.delta2
    assert after.verifying_key.ic == raw_before.verifying_key.ic
    save_proving_key(after, tmp_path / "again.zkey")
    assert (tmp_path / "again.zkey").read_bytes() == (tmp_path / "next.zkey").read_bytes()


def test_snarkjs_reads_the_terms_that_we_read(tmp_path: Path) -> None:
    (tmp_path / "c.r1cs").write_bytes(vector("multiplier_bls12381", "circuit.r1cs"))
    save_r1cs(load_r1cs(tmp_path / "c.r1cs"), tmp_path / "saved.r1cs")
    snarkjs("r1cs", "export", "json", tmp_path / "saved.r1cs", tmp_path / "c.json")
    exported = json.loads((tmp_path / "c.json").read_text())
    theirs = [
        tuple(sorted((int(wire), int(value)) for wire, value in terms.items()) for terms in row)
        for row in exported["constraints"]
    ]
    ours = r1cs_rows(Raw.split((tmp_path / "saved.r1cs").read_bytes()))
    assert theirs == [tuple(sorted(terms) for terms in row) for row in ours]


def test_calldata_is_that_of_snarkjs(tmp_path: Path) -> None:
    for file in ("proof.json", "public.json"):
        (tmp_path / file).write_bytes(vector("multiplier_bn128", file))
    theirs = snarkjs("zkey", "export", "soliditycalldata", tmp_path / "public.json", tmp_path / "proof.json")
    assert proof_to_calldata(proof_from_json(tmp_path / "proof.json", tmp_path / "public.json")) == theirs.strip()
