"""Proofs on two emulated GPUs: who gets which, and what happens when one fails. Never a wrong proof."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from emulation import ILLEGAL_ADDRESS, EmulatedDevice, Fault, current_device, prove, said

import snarkline.backend.cuda
from snarkline import Prover
from snarkline.errors import DeviceError, NoDeviceError
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.r1cs.witness import Witness


def test_two_devices_share_the_proofs(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    both = threading.Barrier(2, timeout=60)
    proofs: list[Proof] = []
    with Prover(multiplier[0], backend="cuda", threads=1, devices=(0, 1)) as prover:
        for device in devices:
            launch = device.driver.launch

            def together(*arguments: object, launch: Callable[..., None] = launch, box: list[int] = []) -> None:  # noqa: B006
                if not box:
                    box.append(1)
                    both.wait()  # both devices are at work at the same time
                launch(*arguments)

            device.driver.launch = together  # type: ignore[method-assign]
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, multiplier[1]))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proofs == [product] * 6
    assert [d.driver.ordinal for d in devices] == [0, 1] and all(d.driver.kernels() for d in devices)


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_where_one_of_two_devices_fails_the_other_goes_on(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    with said() as texts, Prover(multiplier[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        devices[1].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS))
        assert prove(prover, multiplier[1]) == product, "made again on the other"
        launches = len(devices[0].driver.kernels())
        assert prove(prover, multiplier[1]) == product and len(devices[0].driver.kernels()) == 2 * launches
        assert prover.note == "on emulation"
    assert devices[1].failure is not None and devices[0].failure is None
    assert len(texts) == 1 and texts[0].endswith("proofs are made on emulation")


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_a_thread_goes_on_where_its_device_is_lost(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], backend: str, lost: int
) -> None:
    """Its context is destroyed by others: nobody goes back to it, nor asks it."""
    with said() as texts, Prover(multiplier[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        assert prove(prover, multiplier[1]) == product
        devices[lost].driver.dead = True
        calls = len(devices[lost].driver.calls)
        for _ in range(3):
            # Both are tried: the one that was idle for the shortest time is taken.
            prover._runner._idle.sort(key=lambda a: a._device is devices[lost])  # type: ignore[attr-defined]
            assert prove(prover, multiplier[1]) == product
            assert current_device() == 0, "the thread's device is as it was"
        assert [d.failure is not None for d in devices] == [lost == 0, lost == 1]
        assert set(devices[lost].driver.names()[calls:]) <= {"use", "leave", "zero", "await_event"}
    assert len(texts) == 1 and texts[0].endswith("proofs are made on emulation")


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_threads_wait_for_the_device_that_is_left(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    proofs: list[Proof] = []
    with said() as texts, Prover(multiplier[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        devices[1].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=2))
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, multiplier[1]))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        launches = devices[0].driver.kernels().count("multiply_rows")
    assert proofs == [product] * 6 and launches == 2 * 6, "none on the CPU"
    assert len(texts) == 1


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_where_all_devices_fail(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    results: list[Proof | type[Exception]] = []
    with said() as texts, Prover(multiplier[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        for device in devices:
            device.driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=2))

        def attempt() -> None:
            try:
                results.append(prove(prover, multiplier[1]))
            except DeviceError as error:
                results.append(type(error))

        threads = [threading.Thread(target=attempt) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results.count(product if backend == "auto" else DeviceError) == 6
    assert len(texts) <= 2, "said once for each place that is left"
    assert backend == "cuda" or texts[-1].endswith("proofs are made on the CPU")


def test_memory_is_wiped_on_each_device(multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    with Prover(multiplier[0], backend="cuda", threads=1, devices=(0, 1)) as prover:
        threads = [threading.Thread(target=lambda: prove(prover, multiplier[1])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [d.driver.unwiped for d in devices] == [0, 0]


def test_a_second_gpu_that_is_not_there(
    multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snarkline.backend.cuda.open_device

    def only_one(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        if ordinal:
            raise NoDeviceError(f"GPU {ordinal}: the NVIDIA driver shows 1, numbered from 0")
        return first(ordinal, memory_limit=memory_limit)  # type: ignore[return-value]

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", only_one)
    with pytest.raises(NoDeviceError, match="GPU 1"):
        Prover(multiplier[0], backend="cuda", devices=(0, 1))
    assert "close" in devices[0].driver.names()
