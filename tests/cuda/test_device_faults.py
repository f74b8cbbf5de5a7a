"""Whole proofs on an emulated GPU that fails: at every call of the driver, in every way. Never a wrong proof."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from emulation import DEVICE_LOST, ILLEGAL_ADDRESS, OUT_OF_MEMORY, EmulatedDevice, Fault, prove, said

import snarkline.backend
import snarkline.backend.cuda
from snarkline import Prover
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.plan import plan_memory
from snarkline.errors import BudgetError, DeviceError, InputError, NoDeviceError, NoDriverError
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.r1cs.witness import Witness
from snarkline.trace import Timeline

MIB = 1 << 20


def calls_of_a_proof(multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> list[str]:
    with Prover(multiplier[0], threads=1) as prover:
        prove(prover, multiplier[1])
        return [name for name in devices[0].driver.names() if name != "leave"]  # which raises nothing


def test_auto_takes_the_gpu_and_makes_the_same_proof(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(multiplier[0], threads=1) as prover:
        assert prover.note == "on emulation"
        assert prove(prover, multiplier[1]) == product
    assert "evaluate" not in texts and devices[0].driver.kernels().count("multiply_rows") == 2
    assert not texts and "close" in devices[0].driver.names()[-2:]
    assert devices[0].driver.allocated() == 0 and devices[0].driver.unwiped == 0
    assert devices[0].driver.locked == {}


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS, DEVICE_LOST])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for ever"])
def test_a_fault_at_any_call(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], code: int, sticky: bool
) -> None:
    n_calls = len(calls_of_a_proof(multiplier, devices))
    assert n_calls > 60
    for after in range(0, n_calls - 10, 3):
        devices.clear()
        with said() as texts, Prover(multiplier[0], threads=1) as prover:
            fault = Fault("*", code, after=after, sticky=sticky)
            devices[0].driver.faults.append(fault)
            assert prove(prover, multiplier[1]) == product
            assert prove(prover, multiplier[1]) == product, "and afterwards in the same process"
        failed = devices[0].failure is not None
        assert len(texts) == (1 if failed or sticky else 0), (after, texts)
        # Pages that cannot be locked, for which the device is made the thread's, are lived without.
        assert failed or code == OUT_OF_MEMORY or (fault.failed in ("use", "page_lock") and not sticky)


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS])
def test_a_fault_is_an_error_where_the_gpu_was_asked_for(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], code: int
) -> None:
    with Prover(multiplier[0], backend="cuda", threads=1) as prover:
        devices[0].driver.faults.append(Fault("launch", code, after=2, sticky=True))
        kind = BudgetError if code == OUT_OF_MEMORY else DeviceError
        for _ in range(2):
            with pytest.raises(kind):
                prove(prover, multiplier[1])


def test_memory_that_comes_back_is_used_again(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(multiplier[0], threads=1) as prover:
        driver = devices[0].driver
        assert prove(prover, multiplier[1]) == product
        driver.taken = driver.capacity  # by another process
        devices[0].trim()
        for _ in range(3):
            assert prove(prover, multiplier[1]) == product
        launches = len(driver.kernels())
        driver.taken = 0
        assert prove(prover, multiplier[1]) == product
        assert len(driver.kernels()) > launches
    assert len(texts) == 1 and "this proof is made on the CPU" in texts[0], "said once"


@pytest.mark.parametrize("share", [0.99, 0.5, 0.02], ids=["a little short", "half", "almost gone"])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_memory_that_is_short(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], share: float, backend: str
) -> None:
    with said() as texts, Prover(multiplier[0], backend=backend, threads=1) as prover:
        driver = devices[0].driver
        assert prove(prover, multiplier[1]) == product
        backend_there = prover._runner._all[0]  # type: ignore[attr-defined]
        with pytest.raises(BudgetError) as caught:
            plan_memory(backend_there._work, 0, backend_there._sum_bytes)
        driver.taken = driver.capacity - int(share * caught.value.asked_bytes)  # by another process
        devices[0].trim()
        for _ in range(2):
            if backend == "auto":
                assert prove(prover, multiplier[1]) == product
            else:
                with pytest.raises(BudgetError, match="bytes"):
                    prove(prover, multiplier[1])
        driver.taken = 0
        launches = len(driver.kernels())
        assert prove(prover, multiplier[1]) == product and len(driver.kernels()) > launches
    assert len(texts) == (1 if backend == "auto" else 0), texts


def test_memory_that_is_taken_in_the_middle(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    with Prover(multiplier[0], backend="cuda", threads=1) as prover:
        driver = devices[0].driver
        launch = driver.launch

        def taking(*arguments: object) -> None:
            launch(*arguments)
            driver.taken = driver.capacity - driver.allocated() if driver.launch is taking else 0

        driver.launch = taking  # type: ignore[method-assign]
        with pytest.raises(BudgetError):
            prove(prover, multiplier[1])
        driver.launch = launch  # type: ignore[method-assign]
        driver.taken = 0
        assert prove(prover, multiplier[1]) == product


def test_a_failed_gpu_is_not_asked_again(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(multiplier[0], threads=1) as prover:
        devices[0].driver.faults.append(Fault("to_host", ILLEGAL_ADDRESS))
        devices[0].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=3))
        assert prove(prover, multiplier[1]) == product
        calls = len(devices[0].driver.calls)
        for _ in range(3):
            assert prove(prover, multiplier[1]) == product
        assert len(devices[0].driver.calls) == calls
    assert len(texts) == 1 and "proofs are made on the CPU" in texts[0]


@pytest.mark.parametrize("fault", [None, "launch", "to_host"])
def test_timelines_of_devices_that_fail(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice], fault: str | None
) -> None:
    with said(), Timeline() as timeline, Prover(multiplier[0], threads=1) as prover:
        if fault is not None:
            devices[0].driver.faults.append(Fault(fault, ILLEGAL_ADDRESS, after=2))
        assert prove(prover, multiplier[1]) == product
    names = {s.name for s in timeline.spans if s.kind == "device"}
    assert names == (set() if fault else {"upload", "spmv", "multiply", "check values", "multiply_subtract", "ntt"})


def test_threads_take_turns_on_one_device(
    multiplier: tuple[ProvingKey, Witness], product: Proof, devices: list[EmulatedDevice]
) -> None:
    proofs: list[Proof] = []
    with Prover(multiplier[0], backend="cuda", threads=1) as prover:
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, multiplier[1]))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proofs == [product] * 8


def test_repeated_proofs_take_no_fresh_memory(
    multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]
) -> None:
    with Prover(multiplier[0], backend="cuda", threads=1) as prover:
        prove(prover, multiplier[1])
        before = devices[0].driver.names().count("allocate"), devices[0].pool.total_bytes()
        for _ in range(200):
            prove(prover, multiplier[1])
        assert (devices[0].driver.names().count("allocate"), devices[0].pool.total_bytes()) == before
        assert "free" not in devices[0].driver.names()


def test_the_peak_stays_below_the_plan(multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    with Prover(multiplier[0], backend="cuda", threads=1, gpu_memory=1 << 30) as prover:
        prove(prover, multiplier[1])
        plan = prover._runner._all[0].plan  # type: ignore[attr-defined]
        assert 0 < devices[0].pool.peak_bytes <= plan.peak_bytes <= 1 << 30


def refusing(error: Exception) -> Callable[..., EmulatedDevice]:
    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        raise error

    return open_device


@pytest.mark.parametrize(
    ("error", "warned"), [(NoDriverError("no NVIDIA driver is installed"), 0), (NoDeviceError("the driver is old"), 1)]
)
def test_no_gpu(
    multiplier: tuple[ProvingKey, Witness],
    product: Proof,
    devices: list[EmulatedDevice],
    monkeypatch: pytest.MonkeyPatch,
    error: NoDeviceError,
    warned: int,
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda, "open_device", refusing(error))
    with said() as texts, Prover(multiplier[0], threads=1) as prover:
        assert prover.note == f"on the CPU: {error}"
        assert prove(prover, multiplier[1]) == product
    assert len(texts) == warned
    with pytest.raises(NoDeviceError, match=str(error)) as caught:
        Prover(multiplier[0], backend="cuda")
    assert isinstance(caught.value, InputError), "exit code 2"


def test_small_circuits_stay_on_the_cpu(
    multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with Prover(multiplier[0], threads=1) as prover:
        assert prover.note == "on the CPU"
    assert devices == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"backend": "cpu", "devices": (0,)}, "uses no GPU"),
        ({"backend": "cpu", "gpu_memory": 1 << 30}, "uses no GPU"),
        ({"devices": ()}, "different GPUs"),
        ({"devices": (0, 0)}, "different GPUs"),
        ({"gpu_memory": 5}, "at least"),
    ],
)
def test_options_that_make_no_sense(
    multiplier: tuple[ProvingKey, Witness], options: dict[str, object], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        Prover(multiplier[0], **options)  # type: ignore[arg-type]


def test_a_backend_is_a_runner_by_itself(multiplier: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    from snarkline.backend.cpu import CpuBackend
    from snarkline.memory import Arena

    backend = CudaBackend(EmulatedDevice(), CpuBackend(1, Arena()))
    assert backend.run(lambda b: b.name) == "cuda"
    backend.close()
    with pytest.raises(ValueError, match="closed"):
        backend.run(lambda b: b.name)
