"""The measurement that this system began with, on a GPU: a, b, c and the inner vectors in host memory, by policy.

    python bench/gpu_seed.py OUT.json [--curve bls12_381] [--log-n 22] [--gib 10] [--policies ...] [--budget 190]

Makes a circuit and a key, then runs `snarkline bench prove --backend cuda --release ... --classic-host` policy by
policy, each in a process of its own, with `--gib` of vectors on both sides together. A policy may have its own size:
`sync=96`. Those that would not end within the budget of seconds are left out; the file has what was measured until
then.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from gpu_check import circuit
from machine import facts, gpu_facts

from snarkline import save_proving_key, setup
from snarkline.backend.cuda import open_device
from snarkline.cli.bench import classic
from snarkline.curves.curve import CURVES
from snarkline.formats.circom.wtns import save_witness
from snarkline.memory import Release
from snarkline.memory.experiment import CONTROL
from snarkline.threads import usable_threads

LARGE_GIB = 100
PLAN = (
    *(f"{policy}={LARGE_GIB}" for policy in (Release.SYNC.value, classic.PRODUCT)),
    *(policy.value for policy in Release), classic.PRODUCT, CONTROL,
)  # fmt: skip
PROCESS_S = 4.0
"""What a process takes beside its vectors, about."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--curve", choices=CURVES, default="bls12_381")
    parser.add_argument("--log-n", type=int, default=22)
    parser.add_argument("--gib", type=float, default=10)
    parser.add_argument("--policies", default=",".join(PLAN), help="in this order, each with =GIB or without")
    parser.add_argument("--budget", type=float, default=190)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    report = {
        "device": open_device().name,
        **facts(),
        **gpu_facts(),
        "curve": arguments.curve,
        "log_domain": arguments.log_n,
    }
    report["rows"] = rows = []
    with tempfile.TemporaryDirectory() as folder:
        key, witness = made(arguments, Path(folder))
        print(f"[{time.perf_counter() - begin:.1f}] key and witness", flush=True)
        s_per_gib = 0.0
        for policy, gib in plan(arguments):
            started = time.perf_counter()
            if started - begin + PROCESS_S + s_per_gib * gib > arguments.budget:
                print(f"{policy} would take too long", flush=True)
                continue
            circuits = max(1, round(gib * 2**30 / (2 * 3 * 32 * 2**arguments.log_n)))
            layout = classic.PRODUCT if policy == classic.PRODUCT else classic.CLASSIC
            run = classic.ClassicRun(
                policy, key, witness, circuits, usable_threads(), "cuda",
                window_s=0.5, host_copies=True, layout=layout,
            )  # fmt: skip
            row = classic.measure_fresh(run)
            took = time.perf_counter() - started
            s_per_gib = max(s_per_gib, (took - PROCESS_S) / gib)
            rows.append({**row, "took_s": round(took, 1)})
            arguments.out.write_text(json.dumps(report, indent=1) + "\n")
            print(
                f"[{time.perf_counter() - begin:.1f}] {policy:15} {row['bytes'] / 2**30:6.1f} GiB  "
                f"inner {row['inner_s']:.2f}  wrapper {row['wrapper_s']:.2f}  teardown {row['teardown_s']:.3f} s  "
                f"back {row['reclaimed_s']:.2f}  took {took:.1f} s",
                flush=True,
            )
    for n in {row["circuits"] for row in rows}:
        classic.require_equal_proofs([row for row in rows if row["circuits"] == n])


def made(arguments: argparse.Namespace, folder: Path) -> tuple[str, str]:
    """The files of a key and a witness."""
    key, witness = folder / "key.zkey", folder / "witness.wtns"
    r1cs, values = circuit(CURVES[arguments.curve], arguments.log_n, "bits")
    save_proving_key(setup(r1cs, backend="cuda"), key)
    save_witness(values, witness)
    return str(key), str(witness)


def plan(arguments: argparse.Namespace) -> Iterator[tuple[str, float]]:
    for word in arguments.policies.split(","):
        policy, _, gib = word.partition("=")
        yield policy, float(gib or arguments.gib)


if __name__ == "__main__":
    main()
