"""circom's and snarkjs's own files for circuits at the edges, there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from raw_files import VECTORS, Raw, r1cs_rows, witness_values

from snarkline.errors import SecurityWarning
from snarkline.formats.circom import (
    load_proving_key,
    load_r1cs,
    load_verifying_key,
    load_witness,
    proof_from_json,
    save_proving_key,
    save_r1cs,
    save_witness,
    verifying_key_to_json,
)
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

EDGE = sorted((VECTORS / "edge").iterdir())
CONTRIBUTED = ("compare", "public20")


@pytest.fixture(params=EDGE, ids=[folder.name for folder in EDGE])
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def load_key(folder: Path, load: Any) -> Any:
    """A key straight from `groth16 setup` is warned of, one with contributions is not."""
    if folder.name.startswith(CONTRIBUTED):
        return load(folder, strict=True)
    with pytest.warns(SecurityWarning, match="anyone can forge"):
        return load(folder)


def zkey(folder: Path, **options: bool) -> Any:
    return load_proving_key(folder / "circuit.zkey", check_subgroup=True, **options)


def vk(folder: Path, **options: bool) -> Any:
    return load_verifying_key(folder / "verification_key.json", **options)


def test_files_are_saved_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    save_r1cs(load_r1cs(folder / "circuit.r1cs"), tmp_path / "circuit.r1cs")
    save_witness(load_witness(folder / "circuit.wtns"), tmp_path / "circuit.wtns")
    save_proving_key(load_key(folder, zkey), tmp_path / "circuit.zkey")
    for file in ("circuit.r1cs", "circuit.wtns", "circuit.zkey"):
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes()
    exported = (folder / "verification_key.json").read_text()
    assert verifying_key_to_json(load_key(folder, vk)) == exported


def test_the_key_is_the_circuit_s(folder: Path) -> None:
    key, rows = load_key(folder, zkey), r1cs_rows(Raw.split((folder / "circuit.r1cs").read_bytes()))
    for k, (a, b, _) in enumerate(rows):
        assert (key.matrices.a.row(k), key.matrices.b.row(k)) == (a, b)
    bound = range(key.matrices.a.n_rows - len(rows))
    assert [key.matrices.a.row(len(rows) + i) for i in bound] == [[(i, 1)] for i in range(key.n_public + 1)]


def test_snarkjs_s_key_proves_and_its_proof_holds(folder: Path) -> None:
    key, witness = load_key(folder, zkey), load_witness(folder / "circuit.wtns")
    with Prover(key, r1cs=load_r1cs(folder / "circuit.r1cs")) as prover:
        proof = prover.prove(witness)
    public = [int(v) for v in json.loads((folder / "public.json").read_text())]
    assert (
        list(proof.public)
        == public
        == witness_values(Raw.split((folder / "circuit.wtns").read_bytes()))[1 : key.n_public + 1]
    )
    verifying_key = load_key(folder, vk)
    assert verify(verifying_key, proof)
    theirs = proof_from_json(folder / "proof.json", folder / "public.json")
    assert verify(verifying_key, theirs)
    if public:
        assert not verify(verifying_key, theirs, [(public[0] + 1) % key.curve.r, *public[1:]])
