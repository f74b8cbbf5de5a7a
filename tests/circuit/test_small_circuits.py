"""Circuits at the edges, from Python to a verified proof: nothing at all, unused inputs, constants, public words."""

from __future__ import annotations

from typing import Any

import pytest

from snarkline import Prover, setup, verify
from snarkline.circuit import Bit, Builder, Circuit, Num, Private, Public, UInt8, circuit
from snarkline.curves.curve import BLS12_381, BN254, Curve


@circuit
def nothing(cs: Builder) -> None: ...


@circuit
def unused(cs: Builder, x: Private[Num], y: Public[Num]) -> None: ...


@circuit
def constant(cs: Builder) -> Num:
    return cs.constant(5)


@circuit
def public_words(cs: Builder, word: Public[UInt8], bit: Public[Bit]) -> dict[str, Any]:
    return {"inverted": word ^ UInt8.constant(cs, 255), "bit": bit}


CIRCUITS: list[tuple[Circuit, dict[str, int], int, tuple[int, ...]]] = [
    (nothing, {}, 0, ()),
    (unused, {"x": 1, "y": 2}, 0, (2,)),
    (constant, {}, 1, (5,)),
    (public_words, {"word": 3, "bit": 1}, 12, (252, 1, 3, 1)),
]


@pytest.mark.filterwarnings("ignore::snarkline.errors.CircuitWarning")
@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda curve: curve.name)
@pytest.mark.parametrize(("of", "inputs", "n_constraints", "public"), CIRCUITS, ids=[c.name for c, *_ in CIRCUITS])
def test_proofs(of: Circuit, inputs: dict[str, int], n_constraints: int, public: tuple[int, ...], curve: Curve) -> None:
    compiled = of.compile(curve)
    assert compiled.r1cs.n_constraints == n_constraints
    key = setup(compiled.r1cs, threads=1)
    with Prover(key, r1cs=compiled.r1cs, backend="cpu", threads=1) as prover:
        proof = prover.prove(compiled.assign(inputs))
    assert proof.public == public and verify(key.verifying_key, proof)
