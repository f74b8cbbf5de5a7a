"""Independent proofs on one GPU and on two, in one run; writes one JSON file.

    python bench/gpu_devices.py OUT.json [--cases bls12_381:20:bits,...] [--seconds 1] [--budget 100]

Threads share one prover that has both GPUs, and make proofs for `--seconds`: proofs a second by devices and threads.
Two processes with a GPU each make as many as the machine can, whatever Python's lock costs within one process. Each
device's proof is held against the CPU's first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from gpu_check import circuit
from machine import facts, gpu_facts

from snarkline import Prover, ProvingKey, Witness, setup
from snarkline.backend.cuda import open_device
from snarkline.curves.curve import CURVES

CASES = "bn254:18:bits,bls12_381:20:bits,bls12_381:20:random,bls12_381:18:random"
IN_PROCESSES = CASES.split(",")[:2]
PLAN = ((1, 1), (1, 2), (2, 2), (2, 4))
"""Devices and threads."""
BLINDING = (11, 13)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--processes", default=",".join(IN_PROCESSES), help="cases that processes run as well")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--budget", type=float, default=100)
    parser.add_argument("--worker", type=int, help="number of a GPU: read cases and moments from standard input")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.worker is not None:
        work(arguments.worker, arguments.seconds)
        return
    begin = time.perf_counter()
    devices = [open_device(ordinal) for ordinal in range(2)]
    report = {"devices": [device.name for device in devices], **facts(), **gpu_facts(), "rows": []}
    for device in devices:
        device.close()
    for case in arguments.cases.split(","):
        if time.perf_counter() - begin > arguments.budget:
            break
        measure(case, arguments.seconds, report["rows"])
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    for case in filter(None, arguments.processes.split(",")):
        if time.perf_counter() - begin > arguments.budget:
            break
        report["rows"].append(tell(in_processes(case, arguments.seconds)))
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{time.perf_counter() - begin:.1f} s")


def made(case: str) -> tuple[ProvingKey, Witness]:
    curve, log_n, kind = case.split(":")
    r1cs, witness = circuit(CURVES[curve], int(log_n), kind)
    return setup(r1cs, backend="cuda"), witness


def measure(case: str, seconds: float, rows: list[Row]) -> None:
    key, witness = made(case)
    with Prover(key, backend="cpu") as prover:
        expected = prover.prove(witness, blinding_for_tests=BLINDING)
    provers = {1: Prover(key, backend="cuda"), 2: Prover(key, backend="cuda", devices=(0, 1))}
    with provers[1], provers[2], Prover(key, backend="cuda", devices=(1,)) as second:
        for prover in (*provers.values(), second):
            if prover.prove(witness, blinding_for_tests=BLINDING) != expected:
                raise SystemExit(f"{case}: not the CPU's proof: {prover.note}")
        for n_devices, n_threads in PLAN:
            rows.append(tell({"case": case, **rate(provers[n_devices], witness, n_devices, n_threads, seconds)}))


def rate(prover: Prover, witness: Witness, n_devices: int, n_threads: int, seconds: float) -> Row:
    """Proofs a second, by threads that share the prover. All are warm when the time begins."""
    counts, ready = [0] * n_threads, threading.Barrier(n_threads + 1)

    def prove(at: int) -> None:
        for _ in range(2):
            prover.prove(witness)
        ready.wait()
        while time.perf_counter() < end[0]:
            prover.prove(witness)
            counts[at] += 1

    end = [0.0]
    threads = [threading.Thread(target=prove, args=(at,)) for at in range(n_threads)]
    for thread in threads:
        thread.start()
    while ready.n_waiting < n_threads:
        time.sleep(0.001)
    begin, cpu = time.perf_counter(), time.process_time()
    end[0] = begin + seconds
    ready.wait()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    return {
        "devices": n_devices, "threads": n_threads, "processes": 1, "proofs": sum(counts), "seconds": round(took, 3),
        "proofs_per_s": round(sum(counts) / took, 2), "cpu_cores": round((time.process_time() - cpu) / took, 2),
    }  # fmt: skip


def in_processes(case: str, seconds: float) -> Row:
    """A process for each GPU, at the same time."""
    command = [sys.executable, __file__, "--seconds", str(seconds), "--worker"]
    workers = [
        subprocess.Popen([*command, str(ordinal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for ordinal in range(2)
    ]
    try:
        for word in (case, "go"):
            for worker in workers:
                worker.stdin.write(f"{word}\n")
                worker.stdin.flush()
            answers = [worker.stdout.readline() for worker in workers]
        results = [json.loads(answer) for answer in answers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    total = round(sum(result["proofs_per_s"] for result in results), 2)
    return {
        "case": case, "devices": 2, "threads": 2, "processes": 2, "proofs": sum(r["proofs"] for r in results),
        "seconds": max(r["seconds"] for r in results), "proofs_per_s": total,
    }  # fmt: skip


def work(ordinal: int, seconds: float) -> None:
    """One of two processes: a case, then the word to begin."""
    key, witness = made(sys.stdin.readline().strip())
    with Prover(key, backend="cuda", devices=(ordinal,)) as prover:
        for _ in range(3):
            prover.prove(witness)
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(rate(prover, witness, 1, 2, seconds)), flush=True)


def tell(row: Row) -> Row:
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
