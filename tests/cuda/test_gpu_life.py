"""On a real GPU: what surrounds the kernels. Memory, order, faults, several threads and processes.

`pytest -m gpu tests/cuda`
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from on_gpu import GIB, MIB, prove, require_wiped, spin

import snarkline.backend.cuda.backend
from snarkline import Prover, load_proving_key, load_witness, verify
from snarkline.backend.cuda import CudaFence, CudaPinner, Gpu
from snarkline.backend.cuda.driver import Queue
from snarkline.groth16.keys import Proof
from snarkline.memory import Arena
from snarkline.trace import Timeline, device_span, span

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

VECTORS = Path(__file__).parents[1] / "vectors" / "circom"

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


# ---- memory ----


@pytest.mark.parametrize("limit", [70 * MIB, 180 * MIB, 250 * MIB, 2 * GIB])
def test_a_limit_is_kept(circuit, expected, limit: int) -> None:
    key, witness, _ = circuit
    with Prover(key, backend="cuda", gpu_memory=limit) as prover:
        for _ in range(2):
            assert prove(prover, witness) == expected
        backend = prover._runner._all[0]
        assert backend._device.pool.peak_bytes <= backend.plan.peak_bytes <= limit
        assert backend._device.pool.total_bytes() <= limit


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
    slices = list(np.arange(12 * MIB, dtype=np.uint32).reshape(6, -1))
    sums = [spin(gpu, 0.02, there.data.ptr, 2 * MIB) for there in gpu.streamed(slices)]
    for host, out in zip(slices, sums, strict=True):
        assert int(gpu.download(out)[0]) == int(host.sum(dtype=np.uint64) & 0xFFFFFFFF)


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
