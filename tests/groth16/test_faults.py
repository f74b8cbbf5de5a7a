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
from snarkline.groth16.keys import Proof
from snarkline.groth16.prover import Prover
from snarkline.memory import Arena

CIRCUIT = EDGE_CIRCUITS["15 rows"]()

VECTOR_OPERATIONS = {"evaluate": 2, "multiply": 1, "coset_evaluations": 3, "multiply_subtract": 1}
"""Operations that yield vectors, and how often a proof calls them."""

BLINDING = (3, 1 << 250)

SUMS = {"begin_msm": 3, "msm": 4}
"""Sums in a proof: over the witness (A, B1, B2 together), L and H, and the four of the assembly."""


class FaultyBackend:
    """Passes everything on to a real backend, and spoils the result of one call, or of all calls, of an operation."""

    def __init__(self, inner: Any, operation: str, call: int | None, spoil: Callable[[Any], Any]) -> None:
        self._inner, self._operation, self._call, self._spoil = inner, operation, call, spoil
        self._calls = 0
        self.spoilt = 0
        self.host = self

    def run(self, work: Callable[[Any], Any]) -> Any:
        return work(self)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name != self._operation:
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self._calls += 1
            if self._call is None or self._calls - 1 == self._call:
                self.spoilt += 1
                return (lambda: self._spoil(result())) if callable(result) else self._spoil(result)
            return result

        return call


Open = Callable[..., Prover]


def _without_a_fault(curve: Curve) -> Proof:
    with Prover(development_key("15 rows", curve), threads=1) as prover:
        return prover.prove(CIRCUIT.witness(curve), blinding_for_tests=BLINDING)


EXPECTED = {curve: _without_a_fault(curve) for curve in (BN254, BLS12_381)}


@pytest.fixture
def open_faulty(monkeypatch: pytest.MonkeyPatch) -> Open:
    """`open_faulty(curve, operation, call, spoil, with_r1cs=...)`: a prover whose backend is a `FaultyBackend`."""

    def open_(
        curve: Curve, operation: str, call: int | None, spoil: Callable[[Any], Any], *, with_r1cs: bool
    ) -> Prover:
        def open_spoilt(name: str, threads: int, arena: Arena, **options: Any) -> Any:
            return FaultyBackend(open_backend(name, threads, arena, **options), operation, call, spoil)

        monkeypatch.setattr("snarkline.groth16.prover.open_backend", open_spoilt)
        r1cs = CIRCUIT.r1cs(curve) if with_r1cs else None
        return Prover(development_key("15 rows", curve), r1cs=r1cs, threads=1)

    return open_


def assert_passing_fault_is_mended(prover: Prover, curve: Curve) -> None:
    """The proof is the one without a fault, and the prover has counted and told."""
    with prover:
        with pytest.warns(RuntimeWarning, match="computed again"):
            assert prover.prove(CIRCUIT.witness(curve), blinding_for_tests=BLINDING) == EXPECTED[curve]
        assert (prover.repeated, prover._runner.spoilt) == (1, 1)  # type: ignore[attr-defined]
        prover.prove(CIRCUIT.witness(curve))
        assert prover.repeated == 1


def assert_lasting_fault_is_an_error(prover: Prover, curve: Curve, kind: type[SnarklineError]) -> None:
    with prover, pytest.raises(SnarklineError) as caught:
        prover.prove(CIRCUIT.witness(curve))
    assert caught.type is kind
    assert prover.repeated == 0
    assert prover._runner.spoilt > 1  # type: ignore[attr-defined]


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
def test_passing_fault_in_a_vector(open_faulty: Open, operation: str, call: int, index: int, with_r1cs: bool) -> None:
    prover = open_faulty(BN254, operation, call, change_element(index), with_r1cs=with_r1cs)
    assert_passing_fault_is_mended(prover, BN254)


@pytest.mark.parametrize("change", [plus_generator, negate, flipped_bit, dropped])
@pytest.mark.parametrize(("operation", "call"), [(op, call) for op, calls in SUMS.items() for call in range(calls)])
@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_passing_fault_in_a_sum(
    open_faulty: Open, curve: Curve, operation: str, call: int, change: Callable[[Point], Point]
) -> None:
    for index in range(3 if (operation, call) == ("begin_msm", 0) else 1):
        prover = open_faulty(curve, operation, call, change_sum(index, change), with_r1cs=True)
        assert_passing_fault_is_mended(prover, curve)


@pytest.mark.parametrize("with_r1cs", [True, False], ids=["r1cs", "key alone"])
@pytest.mark.parametrize("operation", [*VECTOR_OPERATIONS, *SUMS])
def test_lasting_fault(open_faulty: Open, operation: str, with_r1cs: bool) -> None:
    """Without the circuit the witness may be to blame, for all that the prover can tell."""
    spoil = change_sum(0, plus_generator) if operation in SUMS else change_element(7)
    prover = open_faulty(BN254, operation, None, spoil, with_r1cs=with_r1cs)
    assert_lasting_fault_is_an_error(prover, BN254, InternalError if with_r1cs else UnsatisfiedError)


def test_fault_that_varies_is_not_blamed_on_the_witness(open_faulty: Open) -> None:
    elements = iter(range(15))
    prover = open_faulty(BN254, "multiply", None, lambda v: change_element(next(elements))(v), with_r1cs=False)
    assert_lasting_fault_is_an_error(prover, BN254, InternalError)


def test_faults_reach_both_groups() -> None:
    key = development_key("15 rows", BN254)
    assert [q.points.group for q in (key.a, key.b1, key.b2)] == [Group.G1, Group.G1, Group.G2]
