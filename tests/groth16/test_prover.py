"""What the prover refuses, and that nothing invalid ever leaves it."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from dataclasses import replace

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key, matrix, witness

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import (
    DeviceError,
    FormatError,
    InputError,
    InternalError,
    MismatchError,
    SnarklineError,
    UnsatisfiedError,
)
from snarkline.groth16.keys import Proof
from snarkline.groth16.prove import draw_blinding
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify
from snarkline.r1cs.witness import Witness

MULTIPLIER = EDGE_CIRCUITS["multiplier"]()
LADDER = EDGE_CIRCUITS["17 constraints"]()


def multiplier_prover(curve: Curve = BN254, *, with_r1cs: bool = True) -> Prover:
    r1cs = MULTIPLIER.r1cs(curve) if with_r1cs else None
    return Prover(development_key("multiplier", curve), r1cs=r1cs, threads=1)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize(("wire", "constraint"), [(1, 0), (2, 0), (3, 0), (4, 1)])
def test_violated_constraint_is_named(curve: Curve, wire: int, constraint: int) -> None:
    values = list(MULTIPLIER.values)
    values[wire] += 1
    with multiplier_prover(curve) as prover, pytest.raises(UnsatisfiedError) as caught:
        prover.prove(witness(curve, values))
    assert caught.value.constraint == constraint
    assert f"constraint {constraint}" in str(caught.value)


def test_violated_constraint_is_named_before_any_curve_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snarkline.groth16.prove.begin_commit", lambda *_: pytest.fail("curve work"))
    with multiplier_prover() as prover, pytest.raises(UnsatisfiedError):
        prover.prove(witness(BN254, [*MULTIPLIER.values[:-1], 1]))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("wire", [1, 2, 3, 4])
def test_tampered_witness_without_the_circuit(curve: Curve, wire: int) -> None:
    values = list(MULTIPLIER.values)
    values[wire] += 1
    with multiplier_prover(curve, with_r1cs=False) as prover, pytest.raises(UnsatisfiedError) as caught:
        prover.prove(witness(curve, values))
    assert caught.value.constraint is None
    assert "give the .r1cs to learn which constraint" in str(caught.value)


def test_unchecked_tampered_witness_is_named_by_the_self_check() -> None:
    with multiplier_prover() as prover:
        pending = prover.start(witness(BN254, [*MULTIPLIER.values[:-1], 1]), check=False)
        with pytest.raises(UnsatisfiedError) as caught:
            pending.finish()
    assert caught.value.constraint == 1


def test_errors_do_not_show_the_witness() -> None:
    secret = 0xFEEDFACECAFE
    with multiplier_prover() as prover, pytest.raises(UnsatisfiedError) as caught:
        prover.prove(witness(BN254, [1, 77, 7, secret, 5]))
    assert str(secret) not in str(caught.value) and hex(secret)[2:] not in repr(caught.value).lower()


@pytest.mark.parametrize("n", [0, 1, 4, 6])
def test_witness_of_another_length(n: int) -> None:
    with multiplier_prover() as prover, pytest.raises(MismatchError, match=f"{n} values.*5 wires"):
        prover.prove(witness(BN254, ([*MULTIPLIER.values, 0])[:n]))


def test_witness_that_does_not_start_with_one() -> None:
    with multiplier_prover() as prover, pytest.raises(FormatError, match="witness value 0"):
        prover.prove(witness(BN254, [2, *MULTIPLIER.values[1:]]))


@pytest.mark.parametrize("index", [0, 3, 4])
@pytest.mark.parametrize("excess", [0, 1, (1 << 256) - 1 - BN254.r])
def test_witness_value_not_below_the_modulus(index: int, excess: int) -> None:
    good = MULTIPLIER.witness(BN254)
    limbs = good.values.limbs.copy()
    limbs[index] = [((BN254.r + excess) >> (64 * k)) & (2**64 - 1) for k in range(4)]
    with multiplier_prover() as prover, pytest.raises(FormatError, match=f"witness value {index}"):
        prover.prove(Witness(FrVector(BN254, limbs, Form.CANONICAL)))


def test_witness_of_another_curve_or_form() -> None:
    montgomery = Witness(FrVector.from_ints(BN254, MULTIPLIER.values, Form.MONTGOMERY))
    with multiplier_prover() as prover:
        with pytest.raises(MismatchError, match="bls12_381"):
            prover.prove(MULTIPLIER.witness(BLS12_381))
        with pytest.raises(MismatchError, match="canonical"):
            prover.prove(montgomery)


def test_circuit_that_is_not_the_key_s() -> None:
    key = development_key("multiplier", BN254)
    for name, circuit in (("another curve", MULTIPLIER.r1cs(BLS12_381)), ("another size", LADDER.r1cs(BN254))):
        with pytest.raises(MismatchError):
            Prover(key, r1cs=circuit)
            pytest.fail(name)
    with pytest.raises(MismatchError, match="public"):
        Prover(key, r1cs=replace(MULTIPLIER.r1cs(BN254), n_public=2))
    row = MULTIPLIER.constraints[0]
    many = replace(MULTIPLIER, constraints=[row] * 4).r1cs(BN254)
    with pytest.raises(MismatchError, match="domain"):
        Prover(key, r1cs=many)


def test_circuit_of_the_same_shape_but_another_key() -> None:
    (row, other), values = MULTIPLIER.constraints, MULTIPLIER.values
    swapped = replace(MULTIPLIER, constraints=[other, row]).r1cs(BN254)
    with Prover(development_key("multiplier", BN254), r1cs=swapped, threads=1) as prover:
        assert verify(prover.key.verifying_key, prover.prove(witness(BN254, values)))
    always = ([(0, 0)], [(0, 0)], [(0, 0)])
    empty = replace(MULTIPLIER, constraints=[always, always]).r1cs(BN254)
    prover = Prover(development_key("multiplier", BN254), r1cs=empty, threads=1)
    with prover, pytest.raises(MismatchError, match="different circuits"):
        prover.prove(witness(BN254, [1, 78, 7, 11, 5]))


def test_key_without_matrices_needs_the_circuit() -> None:
    key = replace(development_key("multiplier", BLS12_381), matrices=None)
    with pytest.raises(MismatchError, match="no matrices"):
        Prover(key)
    with Prover(key, r1cs=MULTIPLIER.r1cs(BLS12_381), threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(MULTIPLIER.witness(BLS12_381)))


def test_unknown_and_missing_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    key = development_key("multiplier", BN254)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("snarkline.backend.cuda.require_driver", lambda: None)
    with pytest.raises(DeviceError, match=r"pip install 'snarkline\[cuda13\]'") as caught:
        Prover(key, backend="cuda")
    assert isinstance(caught.value, InputError), "what was asked for cannot be had: exit code 2"
    with pytest.raises(InputError, match="auto, cpu, cuda, reference"):
        Prover(key, backend="quantum")


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**9])
def test_number_of_threads(threads: int) -> None:
    with pytest.raises(InputError, match=f"1 to 1024, found {threads}"):
        Prover(development_key("multiplier", BN254), threads=threads)


def test_closed_prover_refuses() -> None:
    prover = multiplier_prover()
    pending = prover.start(MULTIPLIER.witness(BN254))
    prover.close()
    prover.close()
    with pytest.raises(SnarklineError, match="closed"):
        prover.prove(MULTIPLIER.witness(BN254))
    with pytest.raises(SnarklineError, match="closed"):
        pending.finish()


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_blinding_is_uniform(curve: Curve) -> None:
    draws = [value for _ in range(5_000) for value in draw_blinding(curve)]
    shift = curve.r.bit_length() - 8
    top = Counter(value >> shift for value in draws)
    assert all(0 <= value < curve.r for value in draws)
    assert len(set(draws)) == len(draws)
    # Whole top-byte cells hold p = 2^shift / r of the draws: 6 sigma around the expectation in each.
    expected = len(draws) * 2**shift / curve.r
    for cell in range(curve.r >> shift):
        assert abs(top[cell] - expected) < 6 * expected**0.5
    assert max(top) <= curve.r >> shift


def test_threads_share_a_prover() -> None:
    """Each thread proves its own witness, by turns with blinding of its own, and gets its own proof."""
    r1cs, key = LADDER.r1cs(BN254), development_key("17 constraints", BN254)
    blinding = [(17 * i + 1, 23 * i + 2) for i in range(6)]
    with Prover(key, r1cs=r1cs, threads=2) as prover:
        expected = [prover.prove(LADDER.witness(BN254), blinding_for_tests=pair) for pair in blinding]
        found: list[tuple[int, Proof]] = []

        def work(i: int) -> None:
            for _ in range(4):
                found.append((i, prover.prove(LADDER.witness(BN254), blinding_for_tests=blinding[i])))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(blinding))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 4 * len(blinding)
    assert all(proof == expected[i] for i, proof in found)


def test_two_provers_in_turn() -> None:
    with multiplier_prover(BN254) as first, multiplier_prover(BLS12_381) as second:
        for _ in range(3):
            assert verify(first.key.verifying_key, first.prove(MULTIPLIER.witness(BN254)))
            assert verify(second.key.verifying_key, second.prove(MULTIPLIER.witness(BLS12_381)))


def test_pending_proofs_finish_in_any_order() -> None:
    with multiplier_prover() as prover:
        pending = [prover.start(MULTIPLIER.witness(BN254)) for _ in range(3)]
        assert all(verify(prover.key.verifying_key, p.finish()) for p in reversed(pending))


def test_key_matrices_with_c_are_used() -> None:
    """A key may carry all three matrices; C then is not a * b."""
    r1cs = MULTIPLIER.r1cs(BN254)
    key = development_key("multiplier", BN254)
    assert key.matrices is not None
    c = matrix(BN254, r1cs.n_wires, [*(row[2] for row in MULTIPLIER.constraints), [], []])
    with Prover(replace(key, matrices=replace(key.matrices, c=c)), threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(MULTIPLIER.witness(BN254)))
        with pytest.raises(UnsatisfiedError):
            prover.prove(witness(BN254, [1, 78, 7, 11, 5]))


def test_internal_error_is_not_an_input_error() -> None:
    assert not issubclass(InternalError, InputError)


@pytest.mark.parametrize("other", [None, "circuit.wtns", {"a": 3}, [1, 2, 3], MULTIPLIER.witness(BN254).values])
def test_what_is_no_witness(other: object) -> None:
    with multiplier_prover() as prover, pytest.raises(InputError, match="expected a witness, found "):
        prover.prove(other)  # type: ignore[arg-type]
