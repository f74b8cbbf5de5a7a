"""Commit phase 2 of the 2 KiB sector that the reference crates sealed."""

from __future__ import annotations

import json
import lzma
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ordered_digest import assignment_digests
from reference import VECTORS, assert_same, vectors

from snarkline.curves.vector import FrVector
from snarkline.errors import FormatError, InputError, MismatchError, SecurityWarning
from snarkline.filecoin.porep.c1 import parse_phase1
from snarkline.filecoin.porep.circuit import assignment, porep_circuit
from snarkline.filecoin.porep.prover import PorepProver, find_parameters, public_inputs, verify_porep
from snarkline.filecoin.porep.vanilla import Phase1Output
from snarkline.filecoin.registry import PorepVersion, sector_size
from snarkline.formats import bellperson
from snarkline.groth16.keys import ProvingKey, VerifyingKey
from snarkline.groth16.layout import bellperson_layout
from snarkline.groth16.setup import setup
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import run_program

SIZE, V1_1 = sector_size("2KiB"), PorepVersion.V1_1
SECTOR = VECTORS / "seal_2KiB"


@pytest.fixture(scope="module")
def phase1() -> Phase1Output:
    return parse_phase1(lzma.decompress((SECTOR / "c1.json.xz").read_bytes()), SIZE)


@pytest.fixture(scope="module")
def circuit() -> StructuredR1CS:
    return porep_circuit(SIZE)


@pytest.fixture(scope="module")
def vk() -> VerifyingKey:
    return bellperson.load_verifying_key(SECTOR / "development.vk")


@pytest.fixture(scope="module")
def key(circuit: StructuredR1CS) -> Iterator[ProvingKey]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield setup(circuit, layout=bellperson_layout)


def test_circuit_and_witness_are_those_of_the_crates(circuit: StructuredR1CS, phase1: Phase1Output) -> None:
    expected = vectors("circuits.json")["porep_2KiB_partition_0"]
    assert_same(circuit, expected)
    witness = run_program(circuit, assignment(phase1, 0)).expand()
    assert assignment_digests(circuit, witness.values) == (expected["inputs_sha256"], expected["aux_sha256"])


def test_a_witness_is_the_same_on_any_number_of_threads(circuit: StructuredR1CS, phase1: Phase1Output) -> None:
    """Runs of few instances wait for one another; those of all challenges are made side by side."""
    given = assignment(phase1, 0)
    alone = run_program(circuit, given, threads=1).expand().values.limbs
    for threads in (2, 3, 16):
        assert np.array_equal(run_program(circuit, given, threads=threads).expand().values.limbs, alone)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ["2KiB", "8MiB", "512MiB", "32GiB"])
def test_circuits_of_all_sizes_are_those_of_the_crates(name: str) -> None:
    """Digests of up to 130 million constraints, streamed. RESULTS.md has the last run."""
    assert_same(porep_circuit(sector_size(name)), vectors("circuits.json")[f"porep_{name}"])


def test_the_circuit_is_satisfied_by_nothing_else(circuit: StructuredR1CS, phase1: Phase1Output) -> None:
    """A flipped bit among the given values breaks a constraint."""
    values = assignment(phase1, 0).to_ints()
    assert first_violation(circuit, run_program(circuit, FrVector.from_ints(circuit.curve, values))) is None
    rng = np.random.default_rng(1)
    for i in rng.integers(0, len(values), 3).tolist():
        changed = [*values[:i], values[i] ^ 1, *values[i + 1 :]]
        witness = run_program(circuit, FrVector.from_ints(circuit.curve, changed))
        assert first_violation(circuit, witness) is not None


def test_public_inputs_are_those_of_the_crates(phase1: Phase1Output) -> None:
    expected = json.loads((SECTOR / "seal.json").read_text())["public_inputs"][0]
    assert public_inputs(SIZE, V1_1, phase1.commitments, 0) == tuple(int(v, 16) for v in expected)


@pytest.mark.parametrize("name", ["proof.bin", "proof_bellperson.bin"])
def test_recorded_proofs_verify(vk: VerifyingKey, phase1: Phase1Output, name: str) -> None:
    """One was made here and verified by bellperson, the other made by bellperson with our parameters."""
    data, known = (SECTOR / name).read_bytes(), phase1.commitments
    assert verify_porep(vk, SIZE, V1_1, known, data)
    for field in ("comm_d", "comm_r", "replica_id", "seed"):
        other = bytes([getattr(known, field)[0] ^ 1]) + getattr(known, field)[1:]
        assert not verify_porep(vk, SIZE, V1_1, replace(known, **{field: other}), data)
    assert not verify_porep(vk, SIZE, V1_1, known, data[144:] + data[48:144] + data[:48])
    with pytest.raises(InputError, match="expected 192 bytes"):
        verify_porep(vk, SIZE, V1_1, known, data[:-1])
    with pytest.raises(FormatError, match=r"proof.bin.*\(A\)"):
        verify_porep(vk, SIZE, V1_1, known, bytes(192), path="proof.bin")
    with pytest.raises(MismatchError, match="327"):
        verify_porep(vk, sector_size("32GiB"), PorepVersion.V1_1, known, data)


@pytest.mark.timeout(900)
def test_a_sector_is_proven(key: ProvingKey, phase1: Phase1Output) -> None:
    """Lengths are those of the published parameters; two proofs with fixed blinding are the same bytes."""
    lengths = (len(key.h), len(key.l.points), len(key.a.points), len(key.b1.points), len(key.b2.points))
    assert lengths == (4_194_303, 2_685_673, 2_674_948, 685_522, 685_522)
    first, second = phase1.partitions[0]
    with PorepProver(SIZE, key) as prover:
        data = prover.prove(phase1, V1_1, blinding_for_tests=(3, 5))
        assert prover.prove(phase1, V1_1, blinding_for_tests=(3, 5)) == data
        tampered = replace(phase1, partitions=((second, first),))
        with pytest.raises(InputError, match="partition 0, challenge 0"):
            prover.prove(tampered, V1_1)
        with pytest.raises(InputError, match=r"does not hold: the openings are of version 1\.1\.0, expected 1\.0\.0"):
            prover.prove(phase1, PorepVersion.V1_0)
    assert verify_porep(key.verifying_key, SIZE, V1_1, phase1.commitments, data)


@pytest.mark.timeout(900)
def test_the_classic_layout_proves_with_blinding_of_its_own(key: ProvingKey, phase1: Phase1Output) -> None:
    """Verified, and all of the call's vectors go with it."""
    first, second = phase1.partitions[0]
    with PorepProver(SIZE, key, classic_host=True, release="detached") as prover:
        tampered = replace(phase1, partitions=((second, first),))
        with pytest.raises(InputError, match="partition 0, challenge 0"):
            prover.prove(tampered, V1_1)
        data = prover.prove(phase1, V1_1)
        assert prover._prover.arena.stats().lent_bytes == 0
    assert verify_porep(key.verifying_key, SIZE, V1_1, phase1.commitments, data)


def test_parameters_that_are_missing_are_named(tmp_path: Path) -> None:
    stem = SIZE.parameter_stem()
    with pytest.raises(InputError, match=f"no {stem}.params in {tmp_path}"):
        find_parameters(SIZE, tmp_path)
    with pytest.raises(InputError, match=f"no such file; 2KiB needs {stem}.params"):
        find_parameters(SIZE, tmp_path / "nowhere")
    (tmp_path / "other.vk").touch()
    with pytest.raises(InputError, match=r"expected a \.params file"):
        find_parameters(SIZE, tmp_path / "other.vk")
    (tmp_path / f"{stem}.params").touch()
    assert find_parameters(SIZE, tmp_path) == tmp_path / f"{stem}.params"


@pytest.mark.timeout(900)
def test_a_key_of_another_size_is_refused(key: ProvingKey) -> None:
    with pytest.raises(MismatchError, match="32GiB has 327"):
        PorepProver(sector_size("32GiB"), key)
    with pytest.raises(MismatchError, match=r"is for 2685713 wires; the circuit of 8MiB has \d+$"):
        PorepProver(sector_size("8MiB"), key)
