"""What surrounds the kernels, measured on the GPU at hand; writes one JSON file.

    python bench/gpu_life.py OUT.json [--only small,memory,gap,auto,stream,pinned]

small: microseconds of an allocation and a launch. memory: GB/s to the device from pageable, staged and page-locked
memory. gap: wall against device time of whole proofs. auto: proofs by size on CPU and GPU, and what opening costs.
stream: sums whose bases come from the host. pinned: page-locking and its end, and a process that ends with memory
locked. bench/record_gpu.py makes docs/data/gpu-life of the result.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpu_check import circuit
from machine import facts, gpu_facts

from snarkline import Prover, setup
from snarkline.backend.cuda import CudaPinner, Gpu, open_device
from snarkline.backend.cuda.driver import Queue
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.memory import Arena
from snarkline.trace import Timeline

BLINDING = (11, 13)
Row = dict[str, Any]


def milliseconds(run: Callable[[], object], repetitions: int = 5) -> float:
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return round(statistics.median(times), 3)


def small(gpu: Gpu) -> Row:
    import cupy

    from snarkline.backend.cuda.module import Module
    from snarkline.curves.vector import FrVector

    n, pool, of_cupy = 1000, cupy.cuda.MemoryPool(), cupy.ndarray
    v, module = gpu.upload(FrVector.from_ints(BN254, range(256)).limbs), Module("vector", "bn254")

    def kept() -> None:
        arrays = [gpu.empty(1 << 20, "u4") for _ in range(n)]
        del arrays

    def launches() -> None:
        for _ in range(n):
            gpu.launch(module, "add", 1, 256, v, v, v, 256)

    kept()
    launches()
    gpu.synchronize()
    return {
        "take_and_drop_us": milliseconds(lambda: [gpu.empty(1 << 20, "u4") for _ in range(n)]),
        "cupy_take_us": milliseconds(lambda: [of_cupy(1 << 20, "u4", memptr=pool.malloc(4 << 20)) for _ in range(n)]),
        "launch_us": milliseconds(launches),
        "record_us": milliseconds(lambda: [gpu.record() for _ in range(n)]),
        "free_bytes_us": milliseconds(lambda: [gpu.free_bytes() for _ in range(n)]),
        "session_us": milliseconds(lambda: [session(gpu) for _ in range(n)]),
    }


def session(gpu: Gpu) -> None:
    with gpu.session():
        pass


def memory(gpu: Gpu) -> Row:
    return {f"{mib} MiB": rates(gpu, mib << 20) for mib in (4, 32, 256)}


def rates(gpu: Gpu, n: int) -> Row:
    """GB/s of uploads."""
    pageable, target = np.ones(n, np.uint8), gpu.empty(n, "u1")
    with Arena(pinner=CudaPinner(gpu)) as arena:
        locked = arena.lease(n, np.uint8, registered=True).array
        locked[:] = 1
        ways = {
            "pageable": lambda: gpu.send(target, pageable, Queue.COMPUTE),
            "staged": lambda: gpu.staging.send(target, pageable),
            "page-locked": lambda: gpu.staging.send(target, locked),
        }
        times = {name: milliseconds(lambda way=way: finished(gpu, way), 7) for name, way in ways.items()}
        return {name: round(n / 1e6 / ms, 2) for name, ms in times.items()}


def finished(gpu: Gpu, work: Callable[[], object]) -> None:
    work()
    gpu.synchronize()


def gap(gpu: Gpu) -> Row:
    """Share of `start`'s wall time in which no span of the device runs."""
    table: Row = {}
    for curve, log_n, kind in (
        (BN254, 16, "bits"), (BN254, 20, "random"), (BN254, 20, "bits"),
        (BLS12_381, 20, "random"), (BLS12_381, 20, "bits"), (BLS12_381, 22, "bits"),
    ):  # fmt: skip
        r1cs, witness = circuit(curve, log_n, kind)
        key = setup(r1cs, backend="cuda")
        with Prover(key, backend="cuda") as prover:
            first = milliseconds(lambda p=prover, w=witness: p.prove(w), 1)
            prove = milliseconds(lambda p=prover, w=witness: p.prove(w))
            start = milliseconds(lambda p=prover, w=witness: p.start(w, check=False))
            shares = [measured_gap(prover, witness) for _ in range(5)]
            backend = prover._runner._all[0]
            table[f"{curve.name} 2^{log_n} {kind}"] = row = {
                "first_ms": first, "prove_ms": prove, "start_ms": start,
                **sorted(shares, key=lambda x: x["gap"])[2],
                "planned_bytes": backend.plan.peak_bytes, "peak_bytes": backend._device.pool.peak_bytes,
                "pool_bytes": backend._device.pool.total_bytes(),
            }  # fmt: skip
            print(curve.name, log_n, kind, row, flush=True)
    return table


def measured_gap(prover: Prover, witness: Any) -> Row:
    """Of the part of a whole proof that needs the device. The wiping of the proof before is not waited for in it; the
    check of the witness is behind the upload."""
    with Timeline() as timeline:
        prover.prove(witness)
    host = next(s for s in timeline.spans if s.name == "start")
    device = sorted((s.begin.ns, s.end.ns) for s in timeline.spans if s.kind == "device")
    busy, at, gaps = 0, device[0][0], []
    for begin, end in device:  # some run beside others
        gaps.append(max(0, begin - at) / 1e6)
        busy += max(0, end - max(begin, at))
        at = max(at, end)
    wall = host.wall_s
    names: dict[str, float] = {}
    for s in timeline.spans:
        if s.kind == "device":
            names[s.name] = round(names.get(s.name, 0) + s.wall_s * 1e3, 3)
    return {
        "wall_ms": round(wall * 1e3, 3), "device_ms": round(busy / 1e6, 3), "gap": round(1 - busy / 1e9 / wall, 4),
        "before_first_ms": round((device[0][0] - host.begin.ns) / 1e6, 3),
        "after_last_ms": round((host.end.ns - at) / 1e6, 3),
        "between_ms": round(sum(gaps), 3), "largest_between_ms": [round(g, 3) for g in sorted(gaps)[-6:]],
        "spans": names,
    }  # fmt: skip


def auto(gpu: Gpu) -> Row:
    table: Row = {}
    for log_n in (12, 14, 16, 17, 18, 19, 20):
        for kind in ("random", "bits"):
            r1cs, witness = circuit(BN254, log_n, kind)
            key = setup(r1cs, backend="cuda")
            row: Row = {}
            for name in ("cpu", "cuda"):
                begin = time.perf_counter()
                with Prover(key, backend=name) as prover:
                    prover.prove(witness)
                    row[f"{name}_first_ms"] = round(1e3 * (time.perf_counter() - begin), 1)
                    row[f"{name}_ms"] = milliseconds(lambda p=prover, w=witness: p.prove(w), 3)
            table[f"2^{log_n} {kind}"] = row
            print(log_n, kind, row, flush=True)
    return table


def stream(gpu: Gpu) -> Row:
    """Proofs of 2^20 BLS12-381 under caps."""
    table: Row = {}
    r1cs, witness = circuit(BLS12_381, 20, "random")
    key = setup(r1cs, backend="cuda")
    proofs = set()
    for mib in (None, 8192, 4096, 2048, 1024, 512, 320):
        with Prover(key, backend="cuda", gpu_memory=None if mib is None else mib << 20) as prover:
            proofs.add(prover.prove(witness, blinding_for_tests=BLINDING))
            backend = prover._runner._all[0]
            table[str(mib)] = row = {
                "prove_ms": milliseconds(lambda p=prover, w=witness: p.prove(w), 3),
                "keep_tables": backend.plan.keep_tables, "keep_matrices": backend.plan.keep_matrices,
                "slice_points": backend.plan.slice_points, "side_by_side": backend.plan.side_by_side,
                "planned_mib": backend.plan.peak_bytes >> 20,
                "peak_mib": backend._device.pool.peak_bytes >> 20,
            }  # fmt: skip
            print(mib, row, flush=True)
    assert len(proofs) == 1
    return table


def pinned(gpu: Gpu) -> Row:
    row: Row = {}
    for gib in (1, 4):
        with Arena(pinner=CudaPinner(gpu)) as arena:
            begin = time.perf_counter()
            lease = arena.lease(gib << 30, np.uint8, registered=True)
            middle = time.perf_counter()
            del lease
            arena.trim()
            row[f"{gib} GiB"] = {"lock_s": round(middle - begin, 3), "unlock_s": round(time.perf_counter() - middle, 3)}
    child = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=True)
    return row | {"exit_s": round(time.time() - float(child.stdout), 2), "exit_gib": ENDING_GIB}


ENDING_GIB = 2
ENDING = f"""
import time
import cupy, numpy as np
from snarkline.backend.cuda import CudaFence, CudaPinner, open_device
from snarkline.memory import Arena
gpu = open_device()
arena = Arena(pinner=CudaPinner(gpu))
lease = arena.lease({ENDING_GIB} << 30, np.uint8, registered=True)
target = gpu.empty({ENDING_GIB} << 30, "u1")
for _ in range(4):
    gpu.staging.send(target, lease.array)
arena.keep_until(lease, CudaFence(gpu))
lease.release()
print(time.time(), flush=True)
"""
"""A process that ends while the device reads page-locked memory."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="small,memory,pinned,gap,stream,auto")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    gpu = open_device()
    report: Row = {"open_s": round(time.perf_counter() - begin, 3), "device": gpu.name, **facts(), **gpu_facts()}
    for part in arguments.only.split(","):
        try:
            report[part] = globals()[part](gpu)
        except Exception as error:
            import traceback

            traceback.print_exc()
            report[part] = repr(error)
        print(f"[{time.perf_counter() - begin:.1f}] {part}: {report[part]}", flush=True)
        arguments.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
