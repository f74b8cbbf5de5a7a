"""On a real GPU: memory that is short, faults, processes that share it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from emulation import ILLEGAL_ADDRESS, OUT_OF_MEMORY
from on_gpu import MIB, PROVE, SPIN, FaultyDriver, prove, script

import snarkline.backend
import snarkline.backend.cuda
from snarkline import Prover
from snarkline.backend.cuda import CupyDriver, Gpu, default_cache_folder
from snarkline.errors import BudgetError, DeviceWarning

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


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


TAKER = """
import sys, time, cupy
runtime = cupy.cuda.runtime
runtime.free(0)
print("there", flush=True)
while True:
    free, _ = runtime.memGetInfo()
    try:
        held = runtime.malloc(max(0, free - (20 << 20)))
    except RuntimeError:
        continue
    time.sleep(0.05)
    runtime.free(held)
    time.sleep(0.05)
"""


def test_memory_that_another_process_takes_in_the_middle(circuit, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and proofs ask for fresh memory while all of it comes and goes."""
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    taker = subprocess.Popen([sys.executable, "-c", TAKER], stdout=subprocess.PIPE, text=True)
    try:
        assert taker.stdout.readline() == "there\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeviceWarning)
            end = time.monotonic() + 4  # each request waits for the driver, which is busy with the other process's
            while time.monotonic() < end:
                with Prover(circuit[0]) as prover:
                    assert prove(prover, circuit[1]) == expected
    finally:
        taker.kill()
        taker.communicate()
    with Prover(circuit[0], backend="cuda") as prover:
        assert prove(prover, circuit[1]) == expected


def test_too_little_for_any_plan(circuit, expected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_MEMORY", 1)
    key, witness, _ = circuit
    with Prover(key, backend="cuda", gpu_memory=40 * MIB) as prover, pytest.raises(BudgetError):
        prove(prover, witness)
    with Prover(key, gpu_memory=40 * MIB) as prover, pytest.warns(DeviceWarning, match="made on the CPU"):
        assert prove(prover, witness) == expected


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, ILLEGAL_ADDRESS])
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for ever"])
def test_a_fault_at_any_call(circuit, expected, gpu, monkeypatch: pytest.MonkeyPatch, code: int, sticky: bool) -> None:
    """The driver's own calls, at places all over a proof with its uploads, transforms and sums."""
    drivers: list[FaultyDriver] = []

    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> Gpu:
        drivers.append(FaultyDriver(CupyDriver(ordinal)))
        return Gpu(drivers[-1], default_cache_folder(), memory_limit=memory_limit)

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", open_device)
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    with Prover(circuit[0]) as prover:
        opened = drivers[0].calls
        assert prove(prover, circuit[1]) == expected
        n_calls = drivers[0].calls - opened
    assert n_calls > 300
    for after in range(0, n_calls, n_calls // 8 + 1):
        with warnings.catch_warnings(), Prover(circuit[0]) as prover:
            warnings.simplefilter("ignore", DeviceWarning)
            driver = drivers[-1]
            driver.at, driver.code, driver.sticky = driver.calls + after, code, sticky
            for _ in range(2):
                assert prove(prover, circuit[1]) == expected, after
            driver.sticky = False
            assert prove(prover, circuit[1]) == expected, after
            # Pages that cannot be locked are lived without.
            lost = code != OUT_OF_MEMORY and (sticky or driver.failed not in ("page_lock", "page_unlock"))
            assert prover.note.startswith("on the CPU" if lost else "on NVIDIA"), (after, driver.failed, prover.note)


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


def test_page_locked_memory_of_a_context_that_others_destroy(gpu) -> None:
    done = script(
        f"""
import ctypes
import cupy, numpy as np
from snarkline.backend.cuda import CudaFence, CudaPinner, open_device
from snarkline.memory import Arena
gpu = open_device()
with Arena(pinner=CudaPinner(gpu)) as arena:
    lease = arena.lease(64 << 20, np.uint8, registered=True)
    out = gpu.zeros(1, "u4")
    kernel = cupy.RawModule(code={SPIN!r}, options=("-std=c++17",)).get_function("spin")
    kernel((1,), (1,), (np.int64(3e8), np.uint64(lease.address), np.uint32(1000), out))
    fence = CudaFence(gpu)
    arena.keep_until(lease, fence)
    lease.release()
    del lease
    assert not fence.done()
    cuda, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxReset(device) == 0
    assert fence.wait(10), "nobody reads any more"
    arena.trim()
    other = arena.empty(64 << 20, np.uint8)
    other[:] = 1
    del other
print("ok", arena.stats().lent_blocks)
"""
    )
    assert done.returncode == 0 and done.stdout == "ok 0\n", done.stdout + done.stderr


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
