"""Keys and proofs from structured circuits are those from the same circuits written out."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import numpy as np
import pytest

from snarkline.backend.base import Domain
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.reference import ReferenceBackend
from snarkline.circuit.gadgets.merkle import merkle_root, poseidon_level
from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BN254, CURVES, Curve
from snarkline.curves.point import PointTable
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import MismatchError, SecurityWarning, UnsatisfiedError
from snarkline.formats.circom import load_proving_key, save_proving_key
from snarkline.groth16.keys import ProvingKey, Query
from snarkline.groth16.layout import KeyLayout, bellperson_layout, circom_layout
from snarkline.groth16.prover import Prover
from snarkline.groth16.setup import setup
from snarkline.groth16.verify import verify
from snarkline.memory import Arena
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import StructuredWitness, run_program
from snarkline.r1cs.witness import Witness

WASTE = (1234567, 89, 1011, 1213, 1415)


def merkle(curve: Curve, depth: int = 3) -> StructuredR1CS:
    """A leaf's path to a public root, bits of its index as inputs: bits, elements, a chain, and a public output."""
    cs = ConstraintSystem(curve)
    siblings = [cs.alloc() for _ in range(depth)]
    root = merkle_root(cs, poseidon_level, cs.alloc(), siblings, cs.alloc_bits(depth))
    cs.output(root)
    return cs.finish()


def witness_of(system: StructuredR1CS, seed: int = 1) -> StructuredWitness:
    rng = random.Random(seed)
    given = [rng.randrange(2 if bit else system.curve.r) for bit in system.bits.tolist()]
    return run_program(system, FrVector.from_ints(system.curve, given), threads=2)


def make_key(r1cs: object, layout: Callable[[Curve, int], KeyLayout] = circom_layout) -> ProvingKey:
    with pytest.warns(SecurityWarning):
        return setup(r1cs, layout=layout, backend="cpu", threads=2, toxic_waste_for_tests=WASTE)  # type: ignore[arg-type]


def points(key: ProvingKey) -> dict[str, object]:
    """Everything of a key but its matrices, for comparisons."""
    out: dict[str, object] = {}
    for field in dataclasses.fields(key):
        value = getattr(key, field.name)
        if isinstance(value, Query):
            wires = None if value.wires is None else value.wires.tolist()
            out[field.name] = (value.points.limbs.tolist(), value.first, wires)
        elif isinstance(value, PointTable):
            out[field.name] = value.limbs.tolist()
        elif field.name not in ("matrices", "verifying_key"):
            out[field.name] = value
    return out


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("layout", [circom_layout, bellperson_layout])
def test_keys_and_proofs_are_the_same(curve: Curve, layout: Callable[[Curve, int], KeyLayout]) -> None:
    system = merkle(curve)
    key, flat_key = make_key(system, layout), make_key(system.flatten(), layout)
    assert points(key) == points(flat_key)
    packed = witness_of(system)
    flat = packed.expand()
    proofs = []
    for k, r1cs, witness in (
        (key, system, packed),
        (key, system, flat),
        (key, None, packed),
        (flat_key, system, packed),
        (flat_key, system.flatten(), packed),
        (flat_key, None, flat),
    ):
        with Prover(k, r1cs=r1cs, backend="cpu", threads=2) as prover:
            proofs.append(prover.prove(witness, blinding_for_tests=(3, 5)))
    assert all(proof == proofs[0] for proof in proofs)
    assert verify(key.verifying_key, proofs[0])
    assert proofs[0].public == packed.public(1)


def test_a_witness_of_an_equal_system() -> None:
    """Compiled twice: the values are taken over through their expansion."""
    one, other = merkle(BN254), merkle(BN254)
    with Prover(make_key(one), r1cs=one, backend="cpu", threads=1) as prover:
        assert verify(prover.key.verifying_key, prover.prove(witness_of(other)))


def test_saved_keys(tmp_path: object) -> None:
    """A structured key is saved as the flat one is."""
    system = merkle(BN254)
    path = f"{tmp_path}/key.zkey"
    save_proving_key(make_key(system), path)
    with Prover(load_proving_key(path), r1cs=system, backend="cpu", threads=1) as prover:
        assert verify(prover.key.verifying_key, prover.prove(witness_of(system)))


def test_backends_agree() -> None:
    system = merkle(BN254, 1)
    log_size = (system.n_constraints + 2).bit_length()
    packed, domain = witness_of(system), Domain(BN254, log_size, 1)
    cpu, reference = CpuBackend(2, Arena()), ReferenceBackend()
    for x, y in zip(
        cpu.evaluate_structured(packed, domain), reference.evaluate_structured(packed, domain), strict=True
    ):
        assert np.array_equal(x.limbs, y.limbs)
    rng = random.Random(4)
    v = FrVector.from_ints(BN254, [rng.randrange(BN254.r) for _ in range(domain.size)], Form.MONTGOMERY)
    ours, theirs = (b.evaluate_structured_transposed(StructuredMatrices(system), v) for b in (cpu, reference))
    for x, y in zip(ours, theirs, strict=True):
        assert np.array_equal(x.limbs, y.limbs)


def test_violations_are_named() -> None:
    """Wrong values at wires: the same constraint is found as in the flat system, with its gadget's path."""
    system = merkle(BN254, 2)
    flat, packed = system.flatten(), witness_of(system)
    values = packed.values(range(len(packed)))
    key = make_key(system)
    rng, paths = random.Random(9), set()
    with Prover(key, r1cs=system, backend="cpu", threads=2) as prover:
        for wire in [1, *rng.sample(range(2, len(values)), 25)]:
            wrong = list(values)
            wrong[wire] = rng.choice([values[wire] + 1, 0, 1, 2]) % BN254.r
            witness = Witness(FrVector.from_ints(BN254, wrong))
            expected, found = first_violation(flat, witness), first_violation(system, witness)
            if expected is None:
                assert found is None and wrong == values
                continue
            assert found is not None
            assert (found.constraint, found.a, found.b, found.c, found.wires) == (
                expected.constraint,
                expected.a,
                expected.b,
                expected.c,
                expected.wires,
            )
            assert found.path == system.find(found.constraint).path
            with pytest.raises(UnsatisfiedError) as error:
                prover.prove(witness)
            if error.value.constraint is not None:  # None: a bit that is none
                paths.add(found.path)
                assert found.path in str(error.value)
    assert any("poseidon" in path for path in paths)


def test_bad_pairs() -> None:
    system, other = merkle(BN254, 2), merkle(BN254, 3)
    key = make_key(system)
    with pytest.raises(MismatchError):
        Prover(key, r1cs=other, backend="cpu")
    with Prover(key, r1cs=system, backend="cpu") as prover, pytest.raises(MismatchError, match="wires"):
        prover.prove(witness_of(other))
