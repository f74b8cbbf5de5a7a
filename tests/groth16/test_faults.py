"""An error injected into any result of the backend never leaves as a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key

from snarkline.backend import open_backend
from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.pairing import combine, negate
from snarkline.curves.point import Point
from snarkline.curves.vector import FrVector
from snarkline.errors import InternalError, SnarklineError, UnsatisfiedError
from snarkline.groth16.prover import Prover
from snarkline.memory import Arena

CIRCUIT = EDGE_CIRCUITS["15 rows"]()

VECTOR_OPERATIONS = {"evaluate": 2, "multiply": 1, "coset_evaluations": 3, "multiply_subtract": 1}
"""Operations that yield vectors, and how often a proof calls them."""

MSM_CALLS = 6
"""Calls of msm in a proof: over the witness (A, B1, B2 together), L, H, and the three sums of the assembly."""


class FaultyBackend:
    """Passes everything on to a real backend, and spoils the result of one call."""

    def __init__(self, inner: Any, operation: str, call: int, spoil: Callable[[Any], Any]) -> None:
        self._inner, self._operation, self._spoil = inner, operation, spoil
        self._left = call
        self.spoilt = False
        self.host = self

    def run(self, work: Callable[[Any], Any]) -> Any:
        return work(self)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name != self._operation:
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self._left -= 1
            if self._left == -1:
                self.spoilt = True
                return self._spoil(result)
            return result

        return call


def prove_with_fault(
    monkeypatch: pytest.MonkeyPatch,
    curve: Curve,
    operation: str,
    call: int,
    spoil: Callable[[Any], Any],
    *,
    with_r1cs: bool,
) -> type[SnarklineError]:
    """The error that proving ends with. Fails if it ends with a proof, or if the fault was not reached."""
    backends = []

    def open_faulty(name: str, threads: int, arena: Arena, **options: Any) -> Any:
        backends.append(FaultyBackend(open_backend(name, threads, arena, **options), operation, call, spoil))
        return backends[0]

    monkeypatch.setattr("snarkline.groth16.prover.open_backend", open_faulty)
    r1cs = CIRCUIT.r1cs(curve) if with_r1cs else None
    with Prover(development_key("15 rows", curve), r1cs=r1cs, threads=1) as prover:
        with pytest.raises(SnarklineError) as caught:
            prover.prove(CIRCUIT.witness(curve))
        assert backends[0].spoilt
        prover.prove(CIRCUIT.witness(curve))  # the fault was transient, and so is its effect
    return caught.type


def change_element(index: int) -> Callable[[FrVector], FrVector]:
    def spoil(v: FrVector) -> FrVector:
        v.limbs[index, 0] ^= np.uint64(1)
        return v

    return spoil


def change_sum(index: int, change: Callable[[Point], Point]) -> Callable[[list[Point]], list[Point]]:
    return lambda sums: [change(p) if i == index % len(sums) else p for i, p in enumerate(sums)]


def plus_generator(p: Point) -> Point:
    """Another point of the same group."""
    return combine([p, Point.generator(p.curve, p.group)], [1, 1])


def flipped_bit(p: Point) -> Point:
    """A point that is off the curve."""
    if isinstance(p.x, tuple):
        return Point(p.curve, p.group, (p.x[0] ^ 4, p.x[1]), p.y)
    return Point(p.curve, p.group, (p.x or 0) ^ 4, p.y or 0)


def dropped(p: Point) -> Point:
    return Point.infinity(p.curve, p.group)


@pytest.mark.parametrize("with_r1cs", [True, False], ids=["r1cs", "key alone"])
@pytest.mark.parametrize("index", [0, 7, 14])
@pytest.mark.parametrize(
    ("operation", "call"), [(op, call) for op, calls in VECTOR_OPERATIONS.items() for call in range(calls)]
)
def test_fault_in_a_vector(
    monkeypatch: pytest.MonkeyPatch, operation: str, call: int, index: int, with_r1cs: bool
) -> None:
    kind = prove_with_fault(monkeypatch, BN254, operation, call, change_element(index), with_r1cs=with_r1cs)
    assert kind is (InternalError if with_r1cs else UnsatisfiedError)


@pytest.mark.parametrize("change", [plus_generator, negate, flipped_bit, dropped])
@pytest.mark.parametrize("call", range(MSM_CALLS))
@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_fault_in_an_msm(
    monkeypatch: pytest.MonkeyPatch, curve: Curve, call: int, change: Callable[[Point], Point]
) -> None:
    for index in range(3 if call == 0 else 1):
        spoil = change_sum(index, change)
        kind = prove_with_fault(monkeypatch, curve, "msm", call, spoil, with_r1cs=True)
        assert kind is InternalError


def test_faults_reach_both_groups() -> None:
    key = development_key("15 rows", BN254)
    assert [q.points.group for q in (key.a, key.b1, key.b2)] == [Group.G1, Group.G1, Group.G2]
