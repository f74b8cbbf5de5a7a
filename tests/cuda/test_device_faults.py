"""Whole proofs on an emulated GPU that fails: at every call of the driver, in every way. Never a wrong proof."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from emulation import DEVICE_LOST, ILLEGAL_ADDRESS, OUT_OF_MEMORY, EmulatedDevice, Fault

import snarkline.backend
import snarkline.backend.cuda
from snarkline import Prover, load_proving_key, load_witness
from snarkline.backend.cuda import CudaBackend
from snarkline.errors import BudgetError, DeviceError, DeviceWarning, InputError, NoDeviceError, NoDriverError
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.r1cs.witness import Witness
from snarkline.trace import Timeline

BLINDING = (11, 13)
MIB = 1 << 20


@pytest.fixture(scope="module")
def circuit() -> tuple[ProvingKey, Witness]:
    folder = Path(__file__).parents[1] / "vectors" / "circom" / "multiplier_bn128"
    return load_proving_key(folder / "circuit.zkey"), load_witness(folder / "circuit.wtns")


@pytest.fixture(scope="module")
def expected(circuit: tuple[ProvingKey, Witness]) -> Proof:
    key, witness = circuit
    with Prover(key, backend="cpu", threads=1) as prover:
        return prover.prove(witness, blinding_for_tests=BLINDING)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[EmulatedDevice]:
    """Those that are opened in place of GPUs."""
    opened: list[EmulatedDevice] = []

    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        opened.append(EmulatedDevice(ordinal=ordinal, memory_limit=memory_limit))
        return opened[-1]

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", open_device)
    monkeypatch.setattr(snarkline.backend.cuda, "require_driver", lambda: None)
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    return opened


@contextmanager
def said() -> Iterator[list[str]]:
    """What is warned of in the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DeviceWarning)
        texts: list[str] = []
        yield texts
        texts += [str(w.message) for w in caught if w.category is DeviceWarning]


def prove(prover: Prover, witness: Witness) -> Proof:
    return prover.prove(witness, blinding_for_tests=BLINDING)


def calls_of_a_proof(circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> list[str]:
    with Prover(circuit[0], threads=1) as prover:
        prove(prover, circuit[1])
        return devices[0].driver.names()


def test_auto_takes_the_gpu_and_makes_the_same_proof(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(circuit[0], threads=1) as prover:
        assert prover.note == "on emulation"
        assert prove(prover, circuit[1]) == expected
    assert "evaluate" not in texts and devices[0].driver.kernels().count("multiply_rows") == 2
    assert not texts and devices[0].driver.names()[-1] == "close"
    assert devices[0].driver.allocated() == 0 and devices[0].driver.unwiped == 0
    assert devices[0].driver.locked == {}


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS, DEVICE_LOST])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for ever"])
def test_a_fault_at_any_call(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], code: int, sticky: bool
) -> None:
    n_calls = len(calls_of_a_proof(circuit, devices))
    assert n_calls > 60
    for after in range(0, n_calls - 10, 3):
        devices.clear()
        with said() as texts, Prover(circuit[0], threads=1) as prover:
            devices[0].driver.faults.append(Fault("*", code, after=after, sticky=sticky))
            assert prove(prover, circuit[1]) == expected
            assert prove(prover, circuit[1]) == expected, "and afterwards in the same process"
        failed = devices[0].failure is not None
        assert len(texts) == (1 if failed or sticky else 0), (after, texts)
        if code != OUT_OF_MEMORY:
            assert failed


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS])
def test_a_fault_is_an_error_where_the_gpu_was_asked_for(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], code: int
) -> None:
    with Prover(circuit[0], backend="cuda", threads=1) as prover:
        devices[0].driver.faults.append(Fault("launch", code, after=2, sticky=True))
        kind = BudgetError if code == OUT_OF_MEMORY else DeviceError
        for _ in range(2):
            with pytest.raises(kind):
                prove(prover, circuit[1])


def test_memory_that_comes_back_is_used_again(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(circuit[0], threads=1) as prover:
        driver = devices[0].driver
        assert prove(prover, circuit[1]) == expected
        driver.taken = driver.capacity  # by another process
        devices[0].trim()
        for _ in range(3):
            assert prove(prover, circuit[1]) == expected
        launches = len(driver.kernels())
        driver.taken = 0
        assert prove(prover, circuit[1]) == expected
        assert len(driver.kernels()) > launches
    assert len(texts) == 1 and "this proof is made on the CPU" in texts[0], "said once"


def test_memory_that_is_taken_in_the_middle(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    with Prover(circuit[0], backend="cuda", threads=1) as prover:
        driver = devices[0].driver
        launch = driver.launch

        def taking(*arguments: object) -> None:
            launch(*arguments)
            driver.taken = driver.capacity - driver.allocated() if driver.launch is taking else 0

        driver.launch = taking  # type: ignore[method-assign]
        with pytest.raises(BudgetError):
            prove(prover, circuit[1])
        driver.launch = launch  # type: ignore[method-assign]
        driver.taken = 0
        assert prove(prover, circuit[1]) == expected


def test_a_failed_gpu_is_not_asked_again(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    with said() as texts, Prover(circuit[0], threads=1) as prover:
        devices[0].driver.faults.append(Fault("to_host", ILLEGAL_ADDRESS))
        devices[0].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=3))
        assert prove(prover, circuit[1]) == expected
        calls = len(devices[0].driver.calls)
        for _ in range(3):
            assert prove(prover, circuit[1]) == expected
        assert len(devices[0].driver.calls) == calls
    assert len(texts) == 1 and "proofs are made on the CPU" in texts[0]


@pytest.mark.parametrize("fault", [None, "launch", "to_host"])
def test_timelines_of_devices_that_fail(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], fault: str | None
) -> None:
    with said(), Timeline() as timeline, Prover(circuit[0], threads=1) as prover:
        if fault is not None:
            devices[0].driver.faults.append(Fault(fault, ILLEGAL_ADDRESS, after=2))
        assert prove(prover, circuit[1]) == expected
    names = {s.name for s in timeline.spans if s.kind == "device"}
    assert names == (set() if fault else {"upload", "spmv", "multiply", "multiply_subtract", "ntt"})


def test_two_devices_share_the_proofs(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    both = threading.Barrier(2, timeout=60)
    proofs: list[Proof] = []
    with Prover(circuit[0], backend="cuda", threads=1, devices=(0, 1)) as prover:
        for device in devices:
            launch = device.driver.launch

            def together(*arguments: object, launch: Callable[..., None] = launch, box: list[int] = []) -> None:  # noqa: B006
                if not box:
                    box.append(1)
                    both.wait()  # both devices are at work at the same time
                launch(*arguments)

            device.driver.launch = together  # type: ignore[method-assign]
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, circuit[1]))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proofs == [expected] * 6
    assert [d.driver.ordinal for d in devices] == [0, 1] and all(d.driver.kernels() for d in devices)


def test_threads_take_turns_on_one_device(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice]
) -> None:
    proofs: list[Proof] = []
    with Prover(circuit[0], backend="cuda", threads=1) as prover:
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, circuit[1]))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proofs == [expected] * 8


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_where_one_of_two_devices_fails_the_other_goes_on(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    with said() as texts, Prover(circuit[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        devices[1].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS))
        assert prove(prover, circuit[1]) == expected, "made again on the other"
        launches = len(devices[0].driver.kernels())
        assert prove(prover, circuit[1]) == expected and len(devices[0].driver.kernels()) == 2 * launches
        assert prover.note == "on emulation"
    assert devices[1].failure is not None and devices[0].failure is None
    assert len(texts) == 1 and texts[0].endswith("proofs are made on emulation")


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_threads_wait_for_the_device_that_is_left(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    proofs: list[Proof] = []
    with said() as texts, Prover(circuit[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        devices[1].driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=2))
        threads = [threading.Thread(target=lambda: proofs.append(prove(prover, circuit[1]))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        launches = devices[0].driver.kernels().count("multiply_rows")
    assert proofs == [expected] * 6 and launches == 2 * 6, "none on the CPU"
    assert len(texts) == 1


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_where_all_devices_fail(
    circuit: tuple[ProvingKey, Witness], expected: Proof, devices: list[EmulatedDevice], backend: str
) -> None:
    results: list[Proof | type[Exception]] = []
    with said() as texts, Prover(circuit[0], backend=backend, threads=1, devices=(0, 1)) as prover:
        for device in devices:
            device.driver.faults.append(Fault("launch", ILLEGAL_ADDRESS, after=2))

        def attempt() -> None:
            try:
                results.append(prove(prover, circuit[1]))
            except DeviceError as error:
                results.append(type(error))

        threads = [threading.Thread(target=attempt) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results.count(expected if backend == "auto" else DeviceError) == 6
    assert len(texts) <= 2, "said once for each place that is left"
    assert backend == "cuda" or texts[-1].endswith("proofs are made on the CPU")


def test_memory_is_wiped_on_each_device(circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    with Prover(circuit[0], backend="cuda", threads=1, devices=(0, 1)) as prover:
        threads = [threading.Thread(target=lambda: prove(prover, circuit[1])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [d.driver.unwiped for d in devices] == [0, 0]


def test_repeated_proofs_take_no_fresh_memory(
    circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]
) -> None:
    with Prover(circuit[0], backend="cuda", threads=1) as prover:
        prove(prover, circuit[1])
        before = devices[0].driver.names().count("allocate"), devices[0].pool.total_bytes()
        for _ in range(200):
            prove(prover, circuit[1])
        assert (devices[0].driver.names().count("allocate"), devices[0].pool.total_bytes()) == before
        assert "free" not in devices[0].driver.names()


def test_the_peak_stays_below_the_plan(circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    with Prover(circuit[0], backend="cuda", threads=1, gpu_memory=1 << 30) as prover:
        prove(prover, circuit[1])
        plan = prover._runner._all[0].plan  # type: ignore[attr-defined]
        assert 0 < devices[0].pool.peak_bytes <= plan.peak_bytes <= 1 << 30


def refusing(error: Exception) -> Callable[..., EmulatedDevice]:
    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        raise error

    return open_device


@pytest.mark.parametrize(
    ("error", "warned"), [(NoDriverError("no NVIDIA driver is loaded"), 0), (NoDeviceError("the driver is old"), 1)]
)
def test_no_gpu(
    circuit: tuple[ProvingKey, Witness],
    expected: Proof,
    devices: list[EmulatedDevice],
    monkeypatch: pytest.MonkeyPatch,
    error: NoDeviceError,
    warned: int,
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda, "open_device", refusing(error))
    with said() as texts, Prover(circuit[0], threads=1) as prover:
        assert prover.note == f"on the CPU: {error}"
        assert prove(prover, circuit[1]) == expected
    assert len(texts) == warned
    with pytest.raises(NoDeviceError, match=str(error)) as caught:
        Prover(circuit[0], backend="cuda")
    assert isinstance(caught.value, InputError), "exit code 2"


def test_a_second_gpu_that_is_not_there(
    circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snarkline.backend.cuda.open_device

    def only_one(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        if ordinal:
            raise NoDeviceError(f"GPU {ordinal}: the NVIDIA driver shows 1, numbered from 0")
        return first(ordinal, memory_limit=memory_limit)  # type: ignore[return-value]

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", only_one)
    with pytest.raises(NoDeviceError, match="GPU 1"):
        Prover(circuit[0], backend="cuda", devices=(0, 1))
    assert devices[0].driver.names()[-1] == "close"


def test_small_circuits_stay_on_the_cpu(
    circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with Prover(circuit[0], threads=1) as prover:
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
def test_options_that_make_no_sense(circuit: tuple[ProvingKey, Witness], options: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Prover(circuit[0], **options)  # type: ignore[arg-type]


def test_a_backend_is_a_runner_by_itself(circuit: tuple[ProvingKey, Witness], devices: list[EmulatedDevice]) -> None:
    from snarkline.backend.cpu import CpuBackend
    from snarkline.memory import Arena

    backend = CudaBackend(EmulatedDevice(), CpuBackend(1, Arena()))
    assert backend.run(lambda b: b.name) == "cuda"
    backend.close()
    with pytest.raises(ValueError, match="closed"):
        backend.run(lambda b: b.name)
