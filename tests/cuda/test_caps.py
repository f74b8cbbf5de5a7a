"""What a proof asks of the device: what first, what beside what, and how much memory, with a cap and without."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from emulation.idle import IdleDevice, large_proof
from on_gpu import BLINDING

import snarkline.backend.cuda
import snarkline.groth16.match
import snarkline.groth16.prove
from snarkline import Prover
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.driver import Queue
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import Form, FrVector, ints_to_limbs
from snarkline.errors import FormatError
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.prover import Pending
from snarkline.r1cs.witness import Witness

MIB = 1 << 20


@cache
def proof_of_size(curve: Curve, log_n: int) -> tuple[ProvingKey, Witness]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return large_proof(curve, log_n, "bits")


@contextmanager
def prover_of(
    monkeypatch: pytest.MonkeyPatch, key: ProvingKey, witness: Witness, limit: int | None = None
) -> Iterator[tuple[Prover, CudaBackend, IdleDevice]]:
    """After one proof, whose calls are forgotten."""
    devices: list[IdleDevice] = []

    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> IdleDevice:
        devices.append(IdleDevice(key.curve, memory_limit=memory_limit))
        return devices[-1]

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", open_device)
    monkeypatch.setattr(snarkline.backend.cuda, "require_driver", lambda: None)
    with Prover(key, backend="cuda", threads=1, gpu_memory=limit) as prover:
        prover.start(witness)
        devices[0].await_wiping()
        devices[0].driver.calls.clear()
        yield prover, prover._runner._all[0], devices[0]  # type: ignore[attr-defined]


# ---- what comes first ----


def test_nothing_is_done_before_the_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = proof_of_size(BN254, 17)
    with prover_of(monkeypatch, key, witness) as (prover, _, device):
        prover.start(witness)
        names = device.driver.names()
    assert names[: names.index("to_device")] == ["use"]
    assert names.count("memory") == 1 and names.index("memory") > names.index("to_device")


@pytest.mark.parametrize("value", [BN254.r, 2**256 - 1], ids=["r", "all ones"])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_values_are_checked_on_the_device(multiplier, devices, product, backend: str, value: int) -> None:
    key, witness = multiplier
    limbs = witness.values.limbs.copy()
    limbs[-1] = ints_to_limbs([value], 4)
    wrong = Witness(FrVector(key.curve, limbs, Form.CANONICAL))
    with Prover(key, backend=backend) as prover:
        assert prover.prove(witness, blinding_for_tests=BLINDING) == product
        device = devices[0]
        device.await_wiping()
        used, launched = device.used_bytes(), len(device.driver.kernels())
        with pytest.raises(FormatError, match=f"witness value {len(limbs) - 1}") as caught:
            prover.start(wrong)
        device.await_wiping()
        kernels = device.driver.kernels()[launched:]
        assert "find_unreduced" in kernels and not {"count_lengths", "make_digits"} & set(kernels)
        assert caught.value is not None and device.used_bytes() == used, "given back, whoever holds the error"
        assert prover.prove(witness, blinding_for_tests=BLINDING) == product


def test_the_answer_about_values_is_awaited_behind_the_quotient(monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = proof_of_size(BN254, 17)
    with prover_of(monkeypatch, key, witness) as (prover, _, device):
        prover.start(witness)
        names, kernels = device.driver.names(), device.driver.kernels()
    assert kernels.index("find_unreduced") < kernels.index("multiply_subtract") < kernels.index("count_lengths")
    launched = [i for i, name in enumerate(names) if name == "launch"]
    assert names.index("await_event") > launched[kernels.index("multiply_subtract")]


def test_a_circuit_that_is_checked_is_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than what the device does before the sums, which others may want meanwhile."""
    key, witness = proof_of_size(BN254, 17)
    seen: list[int] = []
    with prover_of(monkeypatch, key, witness) as (prover, _, device):
        monkeypatch.setattr(prover, "r1cs", object())
        monkeypatch.setattr(
            snarkline.groth16.match, "first_violation", lambda *_, **__: seen.append(len(device.driver.calls))
        )
        prover.start(witness)
    assert seen == [0]


def test_what_is_known_is_blinded_while_the_device_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = proof_of_size(BN254, 17)
    halfway, seen = Pending._halfway, []
    with prover_of(monkeypatch, key, witness) as (prover, _, device):

        def watched(*arguments: Any) -> None:
            seen.append(device.driver.names())
            halfway(*arguments)

        monkeypatch.setattr(Pending, "_halfway", watched)
        prover.start(witness)
        (before,), after = seen, device.driver.names()
    assert before.count("launch") == after.count("launch"), "all is queued"
    assert before.count("await_event") < after.count("await_event"), "and not all done"


def test_a_prover_is_closed_behind_what_it_blinds(monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = proof_of_size(BN254, 17)
    blind, closing, ends = snarkline.groth16.prove.blind, threading.Event(), []

    def late(*arguments: Any) -> Any:
        assert closing.wait(60)
        try:
            return blind(*arguments)
        finally:
            ends.append(sys.exception())

    monkeypatch.setattr(snarkline.groth16.prove, "blind", late)
    with prover_of(monkeypatch, key, witness) as (prover, _, _):
        prover.start(witness)
        threading.Timer(0.2, closing.set).start()
    assert ends == [None, None]


# ---- memory ----


@pytest.mark.parametrize(("curve", "log_n"), [(BLS12_381, 17), (BN254, 18)], ids=lambda x: getattr(x, "name", x))
@pytest.mark.parametrize("mib", [None, 1024, 512, 384, 256, 128, 112])
def test_the_peak_is_as_planned(monkeypatch: pytest.MonkeyPatch, curve: Curve, log_n: int, mib: int | None) -> None:
    """Never more, and not much less."""
    key, witness = proof_of_size(curve, log_n)
    with prover_of(monkeypatch, key, witness, None if mib is None else mib * MIB) as (prover, backend, device):
        prover.start(witness)
        device.await_wiping()
        plan, peak, total = backend.plan, device.pool.peak_bytes, device.pool.total_bytes()
        assert plan is not None and backend._pressure == 0, "no refusal"
    assert 0.75 * plan.peak_bytes - 24 * MIB < peak <= plan.peak_bytes
    if mib is not None:
        assert max(plan.peak_bytes, total) <= mib * MIB
        assert plan.sums_at_once == 2 or plan.peak_bytes > 0.7 * mib * MIB, "what there is, is used"


# ---- slices of tables ----


def test_slices_are_copied_and_sorted_while_those_before_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    key, witness = proof_of_size(BLS12_381, 17)
    with prover_of(monkeypatch, key, witness, 200 * MIB) as (prover, backend, device):
        prover.start(witness)
        plan, calls = backend.plan, list(device.driver.calls)
    assert plan is not None and not plan.keep_tables and plan.keep_matrices and not plan.side_by_side
    steps = [call[1] for call in calls if call[0] == "launch" and call[1] in ("make_digits", "first_additions")]
    expected: list[str] = []
    for n_points, n_tables in ((key.n_wires, 3), (len(key.l.points), 1), (len(key.h), 1)):
        n, adds = -(-n_points // plan.slice_points), ["first_additions"] * n_tables
        expected += ["make_digits"] + (n - 1) * ["make_digits", *adds] + adds
    assert steps == expected
    copies = [i for i, call in enumerate(calls) if call[0] == "to_device" and call[3] is Queue.COPY]
    assert len(copies) == steps.count("first_additions")
    assert all(("wait_for", Queue.COPY, Queue.COMPUTE) in [c[:3] for c in calls[i - 20 : i]] for i in copies)
    assert {call[2] for call in calls if call[0] == "launch"} == {Queue.COMPUTE}
