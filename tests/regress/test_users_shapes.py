"""What users of other provers reported, by number: shapes of circuits, domains, keys that do not fit, weak keys."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from raw_files import R, Raw, r1cs_file, witness_file
from tiny_circuits import EDGE_CIRCUITS, chain, development_key, quiet_setup

from snarkline import (
    load_proving_key,
    load_r1cs,
    load_verifying_key,
    load_witness,
    proof_from_json,
    proof_to_json,
    save_proving_key,
)
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.point import Point, PointTable
from snarkline.errors import FormatError, SecurityWarning, UnsatisfiedError
from snarkline.formats.circom import public_to_json, save_verifying_key
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify


def snarkline(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snarkline", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a33_h_query_has_all_points(curve: Curve) -> None:
    """2,500 rows, more than half of a domain of 2^12: all 2^12 points of H are there, and the last one matters."""
    r1cs, witness = chain(curve, 2_500)
    key = quiet_setup(r1cs)
    assert len(key.h) == key.domain.size == 1 << 12
    with Prover(key, threads=2) as prover:
        assert verify(key.verifying_key, prover.prove(witness))
    limbs = key.h.limbs.copy()
    limbs[-1] = limbs[0]
    prover = Prover(replace(key, h=PointTable(curve, key.h.group, limbs)), threads=2)
    with prover, pytest.raises(UnsatisfiedError):
        prover.prove(witness)


@pytest.mark.parametrize("section", [3, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("change", [1, -1])
def test_a34_lengths_of_queries_are_checked_once_and_exactly(tmp_path: Path, section: int, change: int) -> None:
    path = tmp_path / "c.zkey"
    key = development_key("15 rows", BN254)
    wires, public = key.n_wires, key.n_public
    assert [len(q.points) for q in (key.a, key.b1, key.b2, key.l)] == [wires, wires, wires, wires - public - 1]
    save_proving_key(key, path)
    raw = Raw.split(path.read_bytes())
    point = 128 if section == 7 else 64
    content = raw[section] + raw[section][:point] if change > 0 else raw[section][:-point]
    path.write_bytes(raw.with_section(section, content).join())
    with pytest.raises(FormatError, match=rf"section {section} .*expected \d+ points"):
        load_proving_key(path)


@pytest.mark.parametrize("name", ["multiplier_bn128", "multiplier_bls12381"])
def test_a35_a_key_of_snarkjs_proves_over_the_odd_coset(vectors: Path, name: str) -> None:
    folder = vectors / "circom" / name
    with Prover(load_proving_key(folder / "circuit.zkey"), threads=1) as prover:
        proof = prover.prove(load_witness(folder / "circuit.wtns"))
    assert verify(load_verifying_key(folder / "verification_key.json"), proof)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("name", ["only public signals", "one constraint", "nothing but the constant", "all zero"])
def test_a36_few_wires_and_no_private_one(curve: Curve, name: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    with Prover(key, r1cs=circuit.r1cs(curve), threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(circuit.witness(curve)))


@pytest.mark.filterwarnings("ignore:.*anyone can forge")
@pytest.mark.parametrize("name", ["no_public_bn128", "no_public_bls12381"])
def test_a37_no_public_signal(vectors: Path, tmp_path: Path, name: str) -> None:
    folder = vectors / "circom" / "edge" / name
    vk = load_verifying_key(folder / "verification_key.json")
    assert vk.n_public == 0
    with Prover(load_proving_key(folder / "circuit.zkey"), threads=1) as prover:
        proof = prover.prove(load_witness(folder / "circuit.wtns"))
    assert verify(vk, proof, []) and verify(vk, proof_from_json(proof_to_json(proof), public=[], curve=vk.curve))
    assert json.loads(public_to_json(proof.public)) == []
    done = snarkline(
        "verify", *(folder / f for f in ("verification_key.json", "public.json", "proof.json")), cwd=tmp_path
    )
    assert done.returncode == 0


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("name", ["no constraint", "no constraint, no public signal"])
def test_a38_no_multiplication_row(curve: Curve, name: str) -> None:
    circuit, key = EDGE_CIRCUITS[name](), development_key(name, curve)
    with Prover(key, threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(circuit.witness(curve)))


def test_a39_a_public_input_in_no_constraint(tmp_path: Path) -> None:
    """A verifying key that binds nothing to an input is warned of; our keys bind every public input by a row."""
    path, key = tmp_path / "vk.json", development_key("unused wires", BN254).verifying_key
    assert not any(point.is_infinity for point in key.ic)
    ic = (*key.ic[:2], Point.infinity(BN254, key.ic[0].group), *key.ic[3:])
    save_verifying_key(replace(key, ic=ic), path)
    with pytest.warns(SecurityWarning, match="IC point 2.*holds for every value of that public input"):
        load_verifying_key(path)
    with pytest.raises(FormatError, match="IC point 2"):
        load_verifying_key(path, strict=True)


FOREIGN = [([(2, 1), (2, 2), (3, 0)], [(0, 5), (3, 1)], [(1, 1)]), ([], [(3, 1)], []), ([(1, 1)], [(0, 1)], [(1, 1)])]
"""Rows that circom does not write: a wire named twice, a coefficient 0, empty combinations. x2 = 7, x3 = 6."""


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("how", ["plain", "sections the other way round", "no labels", "an unknown section"])
def test_a40_an_r1cs_of_another_compiler(tmp_path: Path, curve: Curve, how: str) -> None:
    values = [1, 3 * 7 * (5 + 6), 7, 6, 9]
    raw = r1cs_file(curve.name, 5, 0, 1, FOREIGN, labels=how != "no labels")  # type: ignore[arg-type]
    if how == "sections the other way round":
        raw = raw.reordered([3, 2, 1])
    if how == "an unknown section":
        raw = raw.with_section(77, b"anything")
    (tmp_path / "c.r1cs").write_bytes(raw.join())
    (tmp_path / "c.wtns").write_bytes(witness_file(curve.name, values).join())
    r1cs = load_r1cs(tmp_path / "c.r1cs")
    save_proving_key(quiet_setup(r1cs), tmp_path / "c.zkey")
    key = load_proving_key(tmp_path / "c.zkey")
    with Prover(key, r1cs=r1cs, threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(load_witness(tmp_path / "c.wtns")))


def test_a41_another_prime_stops_with_a_reason_and_leaves_no_file(tmp_path: Path, vectors: Path) -> None:
    raw = r1cs_file("bn254", 4, 0, 1, [([(2, 1)], [(3, 1)], [(1, 1)])])
    goldilocks = (2**64 - 2**32 + 1).to_bytes(32, "little")
    (tmp_path / "c.r1cs").write_bytes(raw.with_section(1, raw[1][:4] + goldilocks + raw[1][36:]).join())
    done = snarkline("setup", "c.r1cs", "-o", "c.zkey", cwd=tmp_path)
    assert done.returncode == 2 and "c.r1cs" in done.stderr and "bn254" in done.stderr
    other = vectors / "circom" / "multiplier_bls12381"
    done = snarkline(
        "prove", vectors / "circom" / "multiplier_bn128" / "circuit.zkey", other / "circuit.wtns", cwd=tmp_path
    )
    assert done.returncode == 2 and "bn254" in done.stderr and "bls12_381" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["c.r1cs"]


def test_b18_b7_both_curves_in_the_files_of_snarkjs(tmp_path: Path) -> None:
    for curve in (BN254, BLS12_381):
        key = development_key("multiplier", curve)
        save_verifying_key(key.verifying_key, tmp_path / "vk.json")
        circuit = EDGE_CIRCUITS["multiplier"]()
        with Prover(key, threads=1) as prover:
            proof = prover.prove(circuit.witness(curve))
        vk = load_verifying_key(tmp_path / "vk.json")
        text, public = proof_to_json(proof), [int(v) for v in json.loads(public_to_json(proof.public))]
        assert verify(vk, proof_from_json(text, public=public, curve=vk.curve), public)
        assert R[curve.name] == curve.r


def _uncontributed(folder: Path) -> Path:
    """A key whose delta is its gamma, as setup leaves it before anyone contributes."""
    key = development_key("multiplier", BN254)
    weak: ProvingKey = replace(key, verifying_key=replace(key.verifying_key, delta2=key.verifying_key.gamma2))
    save_proving_key(weak, folder / "weak.zkey")
    return folder / "weak.zkey"


def test_b29_a_key_without_a_contribution(tmp_path: Path, vectors: Path) -> None:
    path = _uncontributed(tmp_path)
    with pytest.warns(SecurityWarning, match="anyone can forge"):
        load_proving_key(path)
    with pytest.raises(FormatError, match="anyone can forge"):
        load_proving_key(path, strict=True)
    witness = vectors / "circom" / "multiplier_bn128" / "circuit.wtns"
    done = snarkline("prove", path, witness, "--strict", cwd=tmp_path)
    assert done.returncode == 2 and "gamma2 and delta2" in done.stderr and len(done.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["weak.zkey"]


def test_b23_a_damaged_key_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    """Every bit of every section, one at a time: tests/groth16/test_damaged_keys.py."""
    path = tmp_path / "c.zkey"
    save_proving_key(development_key("15 rows", BN254), path)
    data = bytearray(path.read_bytes())
    data[Raw.split(bytes(data)).offset(9) + 100] ^= 1
    path.write_bytes(data)
    with warnings.catch_warnings(), pytest.raises(FormatError, match=r"section 9 \(H\).*off the curve"):
        warnings.simplefilter("error")
        load_proving_key(path)
