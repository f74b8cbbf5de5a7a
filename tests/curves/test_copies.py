"""Curves stay single objects through copies and pickles, so that what holds one can be copied and sent to others."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path

import pytest

from snarkline.curves.curve import CURVES, Curve
from snarkline.errors import FormatError
from snarkline.formats.circom import load_proving_key, load_r1cs, load_verifying_key, load_witness, proof_from_json
from snarkline.groth16.keys import Proof, VerifyingKey
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

VECTORS = Path(__file__).parent.parent / "vectors" / "circom"
MULTIPLIERS = ("multiplier_bn128", "multiplier_bls12381")


def key_and_proof(name: str) -> tuple[VerifyingKey, Proof]:
    folder = VECTORS / name
    return load_verifying_key(folder / "verification_key.json"), proof_from_json(
        folder / "proof.json", folder / "public.json"
    )


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_copies_of_a_curve_are_the_curve(curve: Curve) -> None:
    assert copy.copy(curve) is curve
    assert copy.deepcopy({"curve": curve})["curve"] is curve
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(curve, protocol)) is curve


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_proofs_and_keys_verify_after_a_pickle(name: str) -> None:
    key, proof = key_and_proof(name)
    for far_key, far_proof in (pickle.loads(pickle.dumps((key, proof))), copy.deepcopy((key, proof))):
        assert far_proof == proof
        assert verify(key, far_proof) and verify(far_key, proof)
        assert not verify(far_key, far_proof, (far_proof.public[0] ^ 1, *far_proof.public[1:]))


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_witnesses_survive_a_pickle(name: str) -> None:
    witness = load_witness(VECTORS / name / "circuit.wtns")
    far = pickle.loads(pickle.dumps(witness))
    assert far.curve is witness.curve
    assert far.values.to_ints() == witness.values.to_ints()


def test_another_process_verifies() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(verify, [key_and_proof(name) for name in MULTIPLIERS]) == [True, True]


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
@pytest.mark.parametrize("name", MULTIPLIERS)
def test_copies_of_keys_and_circuits_prove_without_their_files(name: str, tmp_path: Path) -> None:
    for file in ("circuit.zkey", "circuit.r1cs", "circuit.wtns"):
        (tmp_path / file).write_bytes((VECTORS / name / file).read_bytes())
    key, r1cs = load_proving_key(tmp_path / "circuit.zkey"), load_r1cs(tmp_path / "circuit.r1cs")
    witness = load_witness(tmp_path / "circuit.wtns")
    far_key, far_r1cs, far_witness = pickle.loads(pickle.dumps((key, r1cs, witness)))
    with (tmp_path / "circuit.zkey").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(FormatError, match="written to since"):
        copy.copy(key).check_source()
    with Prover(far_key, r1cs=far_r1cs, threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(far_witness))
