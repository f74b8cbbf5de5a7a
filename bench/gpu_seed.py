"""The measurement that this system began with, on a GPU: a, b, c and the inner vectors in host memory, by policy.

    python bench/gpu_seed.py OUT.json [--log-n 22] [--gib 96] [--small-gib 12] [--budget 280]

Makes a circuit and a key, then runs `snarkline bench prove --backend cuda --release all --classic-host` policy by
policy, each in a process of its own: some with `--gib` of vectors, then all with `--small-gib`. Stops at the budget of
seconds; what was measured until then is in the file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

from gpu_check import circuit
from machine import facts

from snarkline import save_proving_key, setup
from snarkline.backend.cuda import open_device
from snarkline.cli.bench import classic
from snarkline.curves.curve import BN254
from snarkline.formats.circom.wtns import save_witness
from snarkline.memory import Release
from snarkline.memory.experiment import CONTROL
from snarkline.threads import usable_threads

LARGE = (Release.SYNC.value, classic.PRODUCT, Release.RECYCLE.value, Release.DETACHED.value)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--log-n", type=int, default=22)
    parser.add_argument("--gib", type=float, default=96)
    parser.add_argument("--small-gib", type=float, default=12)
    parser.add_argument("--large", default=",".join(LARGE[:3]))
    parser.add_argument("--budget", type=float, default=280)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    per_circuit = 2 * 3 * 32 * 2**arguments.log_n
    every = (CONTROL, *(policy.value for policy in Release), classic.PRODUCT)
    plan = [(policy, arguments.gib) for policy in arguments.large.split(",") if policy]
    plan += [(policy, arguments.small_gib) for policy in every]
    report = {"device": open_device().name, **facts(), "curve": "bn254", "log_domain": arguments.log_n, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        key_path, witness_path = Path(folder) / "key.zkey", Path(folder) / "witness.wtns"
        r1cs, witness = circuit(BN254, arguments.log_n, "bits")
        save_proving_key(setup(r1cs, backend="cuda"), key_path)
        save_witness(witness, witness_path)
        print(f"[{time.perf_counter() - begin:.1f}] key and witness", flush=True)
        longest = 0.0
        for policy, gib in plan:
            if time.perf_counter() - begin + longest * gib / arguments.gib > arguments.budget:
                continue
            started, circuits = time.perf_counter(), max(1, round(gib * 2**30 / per_circuit))
            run = classic.ClassicRun(
                policy, str(key_path), str(witness_path), circuits, usable_threads(), "cuda", host_copies=True
            )
            row = classic.measure_fresh(run)
            longest = max(longest, time.perf_counter() - started)
            report["rows"].append(row)
            arguments.out.write_text(json.dumps(report, indent=1) + "\n")
            print(
                f"[{time.perf_counter() - begin:.1f}] {policy:15} {row['bytes'] / 2**30:6.1f} GiB  "
                f"inner {row['inner_s']:.2f}  wrapper {row['wrapper_s']:.2f}  teardown {row['teardown_s']:.3f} s  "
                f"back {row['reclaimed_s']:.2f}",
                flush=True,
            )
    classic.require_equal_proofs([row for row in report["rows"] if row["circuits"] == report["rows"][-1]["circuits"]])


if __name__ == "__main__":
    main()
