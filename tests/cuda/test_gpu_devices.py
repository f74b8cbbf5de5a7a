"""On two real GPUs, which one device only skips; and on two logical devices of one."""

from __future__ import annotations

import threading

import pytest
from emulation import ILLEGAL_ADDRESS
from on_gpu import MIB, PROVE, SPIN, FaultyDriver, prove, require_wiped, script

import snarkline.backend.cuda
from snarkline import Prover
from snarkline.backend.cuda import CupyDriver, Gpu, default_cache_folder
from snarkline.errors import DeviceWarning
from snarkline.groth16.keys import Proof
from snarkline.r1cs.witness import Witness

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def two_devices(gpu: Gpu) -> tuple[int, int]:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one CUDA device only")
    return 0, 1


def prove_in_threads(prover: Prover, witness: Witness, n_threads: int, n_proofs: int) -> list[Proof]:
    """`n_proofs` by each thread."""
    proofs: list[Proof] = []
    threads = [
        threading.Thread(target=lambda: proofs.extend(prove(prover, witness) for _ in range(n_proofs)))
        for _ in range(n_threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return proofs


def test_each_of_two_devices_makes_the_same_proof(circuit, expected, two_devices) -> None:
    import cupy

    for ordinal in two_devices:
        with Prover(circuit[0], backend="cuda", devices=(ordinal,)) as prover:
            assert prove(prover, circuit[1]) == expected
    assert cupy.cuda.runtime.getDevice() == 0


def test_two_devices_share_proofs_and_hold_no_more_after_a_hundred(circuit, expected, two_devices) -> None:
    import cupy

    with Prover(circuit[0], backend="cuda", devices=two_devices) as prover:
        assert prove_in_threads(prover, circuit[1], 4, 5) == [expected] * 20
        devices = [accelerator._device for accelerator in prover._runner._all]
        before = [(device.pool.total_bytes(), device.pool.peak_bytes) for device in devices]
        assert all(peak > 10 * MIB for _, peak in before), "both were at work"
        assert prove_in_threads(prover, circuit[1], 4, 25) == [expected] * 100
        for device, held in zip(devices, before, strict=True):
            require_wiped(device)
            assert (device.pool.total_bytes(), device.pool.peak_bytes) == held
    assert cupy.cuda.runtime.getDevice() == 0


IN_THREADS = """
import ctypes, threading
import cupy
import snarkline.errors
results = []
def attempt(prover):
    try:
        results.append(prove(prover))
    except snarkline.errors.DeviceError:
        results.append(None)
def attempt_in_threads(prover):
    results.clear()
    threads = [threading.Thread(target=lambda: [attempt(prover) for _ in range(5)]) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    attempt(prover)  # by the thread that did the harm
"""


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_one_of_two_devices_is_lost_and_the_other_goes_on(circuit, two_devices, lost: int, backend: str) -> None:
    done = script(
        PROVE
        + IN_THREADS
        + f"""
with Prover(key, backend={backend!r}, devices=(0, 1)) as prover:
    expected = prove(prover)
    attempt_in_threads(prover)
    cuda, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuDeviceGet(ctypes.byref(device), {lost}) == 0
    assert cuda.cuDevicePrimaryCtxReset(device) == 0
    attempt_in_threads(prover)
    assert results == [expected] * 21, results
    failures = [a.failure for a in prover._runner._all]
    assert failures[{lost}] and not failures[{1 - lost}], failures
    print("ok", prover.note)
""",
        circuit[2],
    )
    assert done.returncode == 0 and "ok on NVIDIA" in done.stdout, done.stdout + done.stderr
    assert done.stderr.count("proofs are made on NVIDIA") == 1, done.stderr


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_a_kernel_that_traps_on_one_of_two_devices(circuit, two_devices, backend: str) -> None:
    """CUDA ends the contexts of all devices in the process, one after the other. No proof is wrong until then."""
    done = script(
        PROVE
        + IN_THREADS
        + f"""
with Prover(key, backend={backend!r}, devices=(0, 1)) as prover:
    expected = prove(prover)
    with cupy.cuda.Device(1):
        cupy.RawModule(code={SPIN!r}, options=("-std=c++17",)).get_function("trap")((1,), (1,), ())
    attempt_in_threads(prover)
    assert set(results) <= {{expected, None}} and len(results) == 21, results
    assert None not in results or {backend!r} == "cuda"
    assert prover._runner._all[1].failure
    print("ok", prover.note)
""",
        circuit[2],
    )
    assert done.returncode == 0 and "ok" in done.stdout, done.stdout + done.stderr


@pytest.fixture
def logical_devices(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> list[FaultyDriver]:
    """The drivers of devices that are opened, all on the first GPU."""
    drivers: list[FaultyDriver] = []

    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> Gpu:
        drivers.append(FaultyDriver(CupyDriver(0)))
        return Gpu(drivers[-1], default_cache_folder(), memory_limit=memory_limit)

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", open_device)
    return drivers


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
@pytest.mark.parametrize("after", [0, 100, 1000])
def test_one_of_two_logical_devices_fails_in_the_middle(
    circuit, expected, logical_devices, monkeypatch: pytest.MonkeyPatch, lost: int, backend: str, after: int
) -> None:
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    with Prover(circuit[0], backend=backend, devices=(0, 1)) as prover:
        assert prove_in_threads(prover, circuit[1], 4, 3) == [expected] * 12
        driver = logical_devices[lost]
        driver.at, driver.code, driver.sticky = driver.calls + after, ILLEGAL_ADDRESS, True
        with pytest.warns(DeviceWarning, match="proofs are made on NVIDIA") as caught:
            assert prove_in_threads(prover, circuit[1], 4, 8) == [expected] * 32
        assert len(caught) == 1
        failures = [accelerator.failure for accelerator in prover._runner._all]
        assert failures[lost] and not failures[1 - lost]
        assert prove(prover, circuit[1]) == expected and prover.note.startswith("on NVIDIA")
