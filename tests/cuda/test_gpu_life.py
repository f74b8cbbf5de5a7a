"""On a real GPU: what surrounds the kernels. Memory, order, faults, several threads and processes.

`pytest -m gpu tests/cuda`
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import snarkline.backend
import snarkline.backend.cuda.backend
from snarkline import Prover, load_proving_key, load_r1cs, load_witness, save_proving_key, setup, verify
from snarkline.backend.cuda import CudaFence, CudaPinner, Gpu, open_device
from snarkline.backend.cuda.driver import Queue
from snarkline.cli.demo import unpack_circuit
from snarkline.errors import BudgetError, DeviceError, DeviceWarning, SecurityWarning
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.memory import Arena
from snarkline.r1cs.witness import Witness
from snarkline.trace import Timeline, device_span, span

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

BLINDING = (11, 13)
MIB, GIB = 1 << 20, 1 << 30
VECTORS = Path(__file__).parents[1] / "vectors" / "circom"

SPIN = r"""
extern "C" __global__ void spin(long long nanoseconds, const unsigned* source, unsigned n, unsigned* out) {
  unsigned long long begin, t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); } while (t - begin < nanoseconds);
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += ((volatile const unsigned*)source)[i];
  *out = sum;
}
extern "C" __global__ void trap() { asm("trap;"); }
"""


@pytest.fixture(scope="module")
def gpu() -> Iterator[Gpu]:
    try:
        device = open_device()
    except DeviceError:
        pytest.skip("no CUDA device")
    yield device
    device.close()


@pytest.fixture(scope="module")
def circuit(gpu: Gpu, tmp_path_factory: pytest.TempPathFactory) -> tuple[ProvingKey, Witness, Path]:
    """SHA-256: a domain of 2^16, most wires are bits. Its files are in the folder."""
    folder = tmp_path_factory.mktemp("circuit")
    r1cs, witness = unpack_circuit(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        key = setup(load_r1cs(r1cs), backend="cuda", toxic_waste_for_tests=(3, 5, 7, 11, 13))
    save_proving_key(key, folder / "key.zkey")
    (folder / "witness.wtns").write_bytes(witness.read_bytes())
    return load_proving_key(folder / "key.zkey"), load_witness(witness, curve=key.curve), folder


@pytest.fixture(scope="module")
def expected(circuit: tuple[ProvingKey, Witness, Path]) -> Proof:
    with Prover(circuit[0], backend="cpu") as prover:
        return prover.prove(circuit[1], blinding_for_tests=BLINDING)


@cache
def spin_kernel(name: str = "spin") -> object:
    import cupy

    return cupy.RawModule(code=SPIN, options=("-std=c++17",)).get_function(name)


def spin(gpu: Gpu, seconds: float, source: int = 0, n: int = 0) -> object:
    """A kernel that waits and then adds up n words; returns where the sum will be."""
    out = gpu.zeros(1, "u4")
    spin_kernel()((1,), (1,), (np.int64(seconds * 1e9), np.uint64(source), np.uint32(n), out))  # type: ignore[operator]
    return out


def prove(prover: Prover, witness: Witness) -> Proof:
    return prover.prove(witness, blinding_for_tests=BLINDING)


def script(text: str, *arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", text, *map(str, arguments)],
        capture_output=True, text=True, timeout=110, env={**os.environ, **(env or {})}, check=False,
    )  # fmt: skip


PROVE = """
import sys, warnings
from pathlib import Path
import snarkline.backend
from snarkline import Prover, load_proving_key, load_witness
from snarkline.formats.circom import proof_to_json
snarkline.backend.GPU_LEAST_DOMAIN = 1
folder = Path(sys.argv[1])
key = load_proving_key(folder / "key.zkey")
witness = load_witness(folder / "witness.wtns", curve=key.curve)
def prove(prover):
    return prover.prove(witness, blinding_for_tests=(11, 13))
"""


# ---- proofs ----


@pytest.mark.parametrize("name", ["multiplier_bn128", "multiplier_bls12381"])
def test_a_thousand_proofs_of_a_small_key(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)  # sums on the GPU, too
    key, witness = load_proving_key(VECTORS / name / "circuit.zkey"), load_witness(VECTORS / name / "circuit.wtns")
    with Prover(key, backend="cpu") as prover:
        proof = prove(prover, witness)
    with Prover(key, backend="cuda") as prover:
        assert all(prove(prover, witness) == proof for _ in range(1000))


def test_two_hundred_proofs_take_no_more_memory(circuit, expected) -> None:
    import cupy

    key, witness, _ = circuit
    with Prover(key, backend="cuda") as prover:
        for _ in range(3):
            prove(prover, witness)
        device = prover._runner._all[0]._device

        def held():
            stats = device.staging.arena.stats()
            return device.pool.total_bytes(), stats.lent_bytes, stats.pooled_bytes

        before, free = held(), cupy.cuda.runtime.memGetInfo()[0]
        for _ in range(200):
            assert prove(prover, witness) == expected
        assert held() == before
        assert abs(cupy.cuda.runtime.memGetInfo()[0] - free) <= 4 * MIB


def test_threads_on_one_gpu(circuit, expected) -> None:
    key, witness, _ = circuit
    proofs: list[Proof] = []
    with Prover(key, backend="cuda") as one, Prover(key, backend="cuda") as other:
        threads = [
            threading.Thread(target=lambda p=p: proofs.extend(prove(p, witness) for _ in range(5)))
            for p in (one, other) * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proofs == [expected] * 40


def test_nothing_secret_stays_in_idle_memory(circuit) -> None:
    key, witness, _ = circuit
    with Prover(key, backend="cuda") as prover:
        prove(prover, witness)
        require_wiped(prover._runner._all[0]._device)


def require_wiped(device: Gpu) -> None:
    """Reads all idle memory of the device."""
    import cupy

    device.await_wiping()
    with cupy.cuda.Device(device.driver.ordinal):
        device.synchronize()
        assert device.pool._dirty == [] and len(device.pool._clean) > 10
        for block in device.pool._clean:
            memory = cupy.cuda.UnownedMemory(block.address, block.n_bytes, device, device.driver.ordinal)
            there = cupy.ndarray(block.n_bytes // 8, "u8", memptr=cupy.cuda.MemoryPointer(memory, 0))
            assert not there.get().any(), block


# ---- memory ----


@pytest.mark.parametrize("limit", [180 * MIB, 250 * MIB, 2 * GIB])
def test_a_limit_is_kept(circuit, expected, limit: int) -> None:
    key, witness, _ = circuit
    with Prover(key, backend="cuda", gpu_memory=limit) as prover:
        for _ in range(2):
            assert prove(prover, witness) == expected
        backend = prover._runner._all[0]
        assert backend._device.pool.peak_bytes <= backend.plan.peak_bytes <= limit
        assert backend._device.pool.total_bytes() <= limit


def test_too_little_for_any_plan(circuit, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    key, witness, _ = circuit
    with Prover(key, backend="cuda", gpu_memory=70 * MIB) as prover, pytest.raises(BudgetError):
        prove(prover, witness)
    with Prover(key, gpu_memory=70 * MIB) as prover, pytest.warns(DeviceWarning, match="made on the CPU"):
        assert prove(prover, witness) == expected


FILLER = """
import sys, cupy
free, _ = cupy.cuda.runtime.memGetInfo()
held = [cupy.cuda.runtime.malloc(max(0, free - int(sys.argv[1])))]
print("full", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("left", [40 * MIB, 150 * MIB, 350 * MIB, 800 * MIB])
def test_another_process_holds_the_memory(circuit, expected, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    key, witness, _ = circuit
    with Prover(key) as prover, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceWarning)
        if left == 800 * MIB:
            assert prove(prover, witness) == expected  # and it is taken in the middle
        filler = subprocess.Popen(
            [sys.executable, "-c", FILLER, str(left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert filler.stdout.readline() == "full\n"
            for _ in range(2):
                assert prove(prover, witness) == expected
        finally:
            filler.communicate("\n")
        assert prove(prover, witness) == expected
        device = prover._runner._all[0]
        assert device.failure is None and device.plan.keep_tables
        assert device.plan.slice_points >= max(s.n_points for s in device._work.sums)


# ---- order and time ----


def test_nothing_is_released_while_a_kernel_reads_it(gpu: Gpu) -> None:
    n = 4 * MIB
    with Arena(pinner=CudaPinner(gpu)) as arena:
        lease = arena.lease(n, np.uint32, registered=True)
        lease.array[:] = 1
        begin = time.perf_counter()
        out = spin(gpu, 0.5, lease.address, n)
        fence = CudaFence(gpu)
        arena.keep_until(lease, fence)
        lease.release()
        del lease
        arena.trim()
        assert not fence.done() and arena.stats().lent_blocks == 1
        other = arena.empty(n, np.uint32)
        other[:] = 9
        assert fence.wait(30) and time.perf_counter() - begin >= 0.5
        assert int(gpu.download(out)[0]) == n
        arena.trim()
        assert arena.stats().lent_blocks == 1  # `other`


def test_device_blocks_are_reused_in_order(gpu: Gpu) -> None:
    source = gpu.upload(np.ones(4 * MIB, np.uint32))
    address = source.data.ptr
    out = spin(gpu, 0.3, address, 4 * MIB)
    del source
    again = gpu.upload(np.full(4 * MIB, 5, np.uint32))
    assert again.data.ptr == address, "lent again while the kernel still waits"
    assert int(gpu.download(out)[0]) == 4 * MIB


def test_streamed_slices_wait_for_kernels(gpu: Gpu) -> None:
    hosts = [np.arange(12 * MIB, dtype=np.uint32)]
    ranges = [slice(i * 2 * MIB, (i + 1) * 2 * MIB) for i in range(6)]
    for part, (there,) in zip(ranges, gpu.streamed(hosts, ranges), strict=True):
        out = spin(gpu, 0.02, there.data.ptr, 2 * MIB)
        assert int(gpu.download(out)[0]) == int(hosts[0][part].sum(dtype=np.uint64) & 0xFFFFFFFF)


def test_device_spans_are_on_the_hosts_axis(gpu: Gpu) -> None:
    spin(gpu, 0.001)
    gpu.synchronize()
    with Timeline() as timeline, span("outer"):
        for seconds in (0.05, 0.1):
            with span(f"host {seconds}"):
                with device_span(gpu.clock, f"device {seconds}"):
                    spin(gpu, seconds)
                gpu.synchronize()
    spans = {s.name: s for s in timeline.spans}
    for seconds in (0.05, 0.1):
        host, device = spans[f"host {seconds}"], spans[f"device {seconds}"]
        assert device.wall_s == pytest.approx(seconds, rel=0.02, abs=2e-4)
        assert host.begin.ns - 50_000 <= device.begin.ns
        assert device.end.ns <= host.end.ns + 50_000
        assert host.wall_s - device.wall_s < 2e-3


# ---- faults ----


def test_a_kernel_that_traps_ends_the_gpu_for_this_process(circuit) -> None:
    done = script(
        PROVE
        + f"""
import cupy
source = {SPIN!r}
with Prover(key, backend="auto") as auto, Prover(key, backend="cuda") as cuda:
    expected = prove(auto)
    assert prove(cuda) == expected
    cupy.RawModule(code=source, options=("-std=c++17",)).get_function("trap")((1,), (1,), ())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert prove(auto) == expected
        assert prove(auto) == expected
    assert ["made on the CPU" in str(w.message) for w in caught] == [True], caught
    for _ in range(2):
        try:
            prove(cuda)
            raise SystemExit("a proof from a poisoned context")
        except snarkline.errors.DeviceError as error:
            print(error)
print("ok", auto.note)
""",
        circuit[2],
    )
    assert done.returncode == 0 and "ok on the CPU" in done.stdout, done.stdout + done.stderr


def test_a_context_that_others_destroy(circuit) -> None:
    done = script(
        PROVE
        + """
import ctypes
with Prover(key, backend="auto") as auto:
    expected = prove(auto)
    assert auto.note.startswith("on NVIDIA"), auto.note
    cuda, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxReset(device) == 0
    assert prove(auto) == expected
    assert auto.note.startswith("on the CPU"), auto.note
print("ok")
""",
        circuit[2],
    )
    assert done.returncode == 0 and "ok" in done.stdout, done.stdout + done.stderr


def test_exit_with_page_locked_memory_and_work_pending(circuit) -> None:
    begin = time.perf_counter()
    done = script(
        f"""
import sys, time
import cupy, numpy as np
from snarkline.backend.cuda import CudaFence, CudaPinner, open_device
from snarkline.memory import Arena
gpu = open_device()
arena = Arena(pinner=CudaPinner(gpu))
lease = arena.lease(2 << 30, np.uint8, registered=True)
out = gpu.zeros(1, "u4")
kernel = cupy.RawModule(code={SPIN!r}, options=("-std=c++17",)).get_function("spin")
kernel((1,), (1,), (np.int64(5e8), np.uint64(lease.address), np.uint32(1000), out))
arena.keep_until(lease, CudaFence(gpu))
lease.release()
print(time.time(), flush=True)
"""
    )
    after = time.time()
    assert done.returncode == 0 and not done.stderr, done.stderr
    print(f"2 GiB page-locked: exit took {after - float(done.stdout):.2f} s of {time.perf_counter() - begin:.1f}")
    assert after - float(done.stdout) < 5


def test_two_processes_and_one_that_is_killed(circuit, expected) -> None:
    text = PROVE + 'with Prover(key, backend="cuda") as p:\n  while True: print(proof_to_json(prove(p)), flush=True)'
    others = [
        subprocess.Popen([sys.executable, "-c", text, str(circuit[2])], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        first = [other.stdout.readline() for other in others]
        assert first[0] and first[0] == first[1]
        with Prover(circuit[0], backend="cuda") as prover:
            for number in range(20):
                assert prove(prover, circuit[1]) == expected
                if number == 5:
                    others[0].kill()
            assert others[1].poll() is None and others[1].stdout.readline()
    finally:
        for other in others:
            other.kill()
            other.communicate()


ON_GPU = ["--backend", "cuda"]


@pytest.mark.parametrize(
    ("visible", "arguments", "code"),
    [("", ON_GPU, 2), ("", [], 0), ("0", [*ON_GPU, "--devices", "7"], 2), ("0", [*ON_GPU, "--gpu-memory", "1G"], 0)],
)
def test_the_command_line(circuit, tmp_path: Path, visible: str, arguments: list[str], code: int) -> None:
    folder = circuit[2]
    done = subprocess.run(
        [sys.executable, "-m", "snarkline", "prove", folder / "key.zkey", folder / "witness.wtns",
         "-o", tmp_path / "proof.json", "--public", tmp_path / "public.json", *arguments],
        capture_output=True, text=True, timeout=110, env={**os.environ, "CUDA_VISIBLE_DEVICES": visible}, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    assert done.returncode == code
    if code:
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: ")


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


@pytest.mark.parametrize("dies", [0, 1])
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_one_of_two_devices_dies_and_the_other_goes_on(circuit, two_devices, dies: int, backend: str) -> None:
    done = script(
        PROVE
        + f"""
import threading
import cupy
with Prover(key, backend={backend!r}, devices=(0, 1)) as prover:
    expected = prove(prover)
    with cupy.cuda.Device({dies}):
        cupy.RawModule(code={SPIN!r}, options=("-std=c++17",)).get_function("trap")((1,), (1,), ())
    proofs = []
    threads = [threading.Thread(target=lambda: proofs.extend(prove(prover) for _ in range(5))) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert proofs == [expected] * 20, len(proofs)
    assert prove(prover) == expected, "by the thread whose device died"
    failures = [a.failure for a in prover._runner._all]
    assert failures[{dies}] and not failures[{1 - dies}], failures
    print("ok", prover.note)
""",
        circuit[2],
    )
    assert done.returncode == 0 and "ok on NVIDIA" in done.stdout, done.stdout + done.stderr
    assert done.stderr.count("proofs are made on NVIDIA") == 1, done.stderr


def test_every_proof_of_the_vectors_verifies(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    for folder in sorted((VECTORS / "edge").iterdir()):
        keys, witnesses = list(folder.glob("*.zkey")), list(folder.glob("*.wtns"))
        if not keys or not witnesses:
            continue
        key, witness = load_proving_key(keys[0]), load_witness(witnesses[0])
        with Prover(key, backend="cuda") as prover, Prover(key, backend="cpu") as cpu:
            proof = prove(prover, witness)
            assert proof == prove(cpu, witness) and verify(key.verifying_key, proof), folder.name


def test_queues_are_apart(gpu: Gpu) -> None:
    spin(gpu, 0.3)
    data = np.zeros(MIB, np.uint8)
    target = gpu.empty(MIB, "u1")
    begin = time.perf_counter()
    gpu.send(target, data, Queue.COPY)
    gpu.await_event(gpu.record(Queue.COPY))
    assert time.perf_counter() - begin < 0.2, "a copy runs beside a kernel"
    gpu.synchronize()
