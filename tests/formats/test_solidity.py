"""The Solidity verifier, compiled and run on an EVM against snarkjs's proofs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from node_tools import evm
from raw_files import Q, R, vector

from snarkline.errors import MismatchError
from snarkline.formats.circom import (
    load_verifying_key,
    proof_from_json,
    proof_to_calldata,
    verifier_to_solidity,
)
from snarkline.formats.circom.solidity import MAX_PUBLIC
from snarkline.groth16.keys import Proof, VerifyingKey
from snarkline.groth16.verify import verify


def key_of(name: str) -> VerifyingKey:
    return load_verifying_key(Path(__file__).parent.parent / "vectors" / "circom" / name / "verification_key.json")


def proof_of(name: str) -> Proof:
    return proof_from_json(vector(name, "proof.json"), vector(name, "public.json"))


def words(calldata: str) -> list[str]:
    """The 32-byte words in the order of the ABI (all arrays are of fixed size)."""
    return re.findall(r'"0x([0-9a-f]{64})"', calldata)


def raised(word: str, by: int) -> str:
    return f"{int(word, 16) + by:064x}"


def without_public(key: VerifyingKey, proof: Proof) -> tuple[VerifyingKey, Proof]:
    """A key without public inputs under which the proof holds: the inputs are folded into IC[0]."""
    point = key.ic[0]
    for value, base in zip(proof.public, key.ic[1:], strict=True):
        point = _add(point, _multiply(base, value))
    folded = replace(key, ic=(point,))
    bare = replace(proof, public=())
    assert verify(folded, bare)
    return folded, bare


def _add(p, q):  # type: ignore[no-untyped-def]
    """Two different points that are not opposite."""
    m = p.curve.q
    slope = (q.y - p.y) * pow(q.x - p.x, -1, m) % m
    x = (slope * slope - p.x - q.x) % m
    return replace(p, x=x, y=(slope * (p.x - x) - p.y) % m)


def _double(p):  # type: ignore[no-untyped-def]
    m = p.curve.q
    slope = 3 * p.x * p.x * pow(2 * p.y, -1, m) % m
    x = (slope * slope - 2 * p.x) % m
    return replace(p, x=x, y=(slope * (p.x - x) - p.y) % m)


def _multiply(p, k: int):  # type: ignore[no-untyped-def]
    total = p
    for bit in bin(k)[3:]:
        total = _double(total)
        if bit == "1":
            total = _add(total, p)
    return total


def job(key: VerifyingKey, proof: Proof, changes: list[tuple[int, int]], contract: str) -> dict[str, Any]:
    """A call with the proof, then one for each change (index of a word, what is added to it)."""
    call = words(proof_to_calldata(proof))
    calls = [call] + [[raised(w, by) if i == at else w for i, w in enumerate(call)] for at, by in changes]
    return {"source": verifier_to_solidity(key, contract), "contract": contract, "calls": calls}


@pytest.mark.snarkjs
def test_true_proofs_hold_and_changed_ones_do_not() -> None:
    q, r = Q["bn254"], R["bn254"]
    jobs = []
    for name in ("multiplier_bn128", "merkle20_bn128"):
        key, proof = key_of(name), proof_of(name)
        n = 8 + len(proof.public)
        changes = [(i, 1) for i in range(n)]
        changes += [(0, q), (1, q), (2, q), (7, q), (n - 1, r)]  # the same residues, written larger
        jobs.append(job(key, proof, changes, "Groth16Verifier"))
    key, proof = key_of("multiplier_bn128"), proof_of("multiplier_bn128")
    jobs.append(job(*without_public(key, proof), [(0, 1), (7, 1)], "NoInputs"))
    many = replace(key, ic=(*key.ic, *[key.ic[0]] * (MAX_PUBLIC - 1)))
    jobs.append(
        job(many, replace(proof, public=(*proof.public, *[0] * (MAX_PUBLIC - 1))), [(8 + MAX_PUBLIC - 1, 1)], "Many")
    )
    for answer in evm(jobs):
        results = answer["results"]
        assert [row["ok"] for row in results] == [True] + [False] * (len(results) - 1)
        assert answer["bytes"] < 24_576
        assert results[0]["gas"] < 215_000 + 7_500 * MAX_PUBLIC


def test_keys_that_ethereum_cannot_verify() -> None:
    key = key_of("multiplier_bn128")
    with pytest.raises(MismatchError, match="bls12_381"):
        verifier_to_solidity(key_of("multiplier_bls12381"))
    with pytest.raises(MismatchError, match=str(MAX_PUBLIC + 1)):
        verifier_to_solidity(replace(key, ic=key.ic[:1] * (MAX_PUBLIC + 2)))
    for name in ("", "1a", "a b", "a;", "ä"):
        with pytest.raises(MismatchError):
            verifier_to_solidity(key, name)


def test_the_source_holds_the_key() -> None:
    key = json.loads(vector("multiplier_bn128", "verification_key.json"))
    source = verifier_to_solidity(key_of("multiplier_bn128"))
    for number in [*key["vk_alpha_1"][:2], *key["vk_beta_2"][0], *key["vk_delta_2"][1]]:
        assert f" = {number};" in source
    for point in key["IC"]:
        assert "".join(f"{int(c):064x}" for c in point[:2]) in source
