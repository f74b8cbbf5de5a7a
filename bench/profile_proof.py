"""Where the time of a proof goes, on one thread, against the field products that it cannot do without.

    python bench/profile_proof.py NAME KEY WITNESS [--repeat 3]

Times are CPU times of the native spans of a resident prover's proof, each without its inner spans; of `--repeat` proofs
the fastest counts. The bound of a phase is its number of products, counted from the algorithms below for a witness
without small values, times what one takes in arrays of 4,096 elements on the same machine. Writes
docs/data/profile/NAME.json.
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from machine import ROOT, facts

from snarkline import Prover, Timeline, load_proving_key, load_witness
from snarkline.curves.curve import Curve
from snarkline.native import core

PHASES = {
    "sparse products": ("spmv",),
    "transforms": ("ntt", "ntt.columns", "ntt.rows", "ntt.reverse", "coset_evaluations"),
    "element-wise": ("field.pointwise", "field.mul_sub"),
    "sums: half-scalars": ("msm.scalars", "msm.infinity"),
    "sums: digits sorted": ("msm.sort",),
    "sums: buckets": ("msm.buckets",),
    "sums: windows": ("msm.reduce", "msm.normalise"),
    "checks": ("field.range", "pairing.miller_loops", "pairing.final_exponentiation", "points.subgroup"),
    "memory": ("arena.first_touch", "msm.release"),
}
ADDITION = {"G1": 6, "G2": 14.5}
"""Products in Fp of an affine addition with its share of an inversion (csrc/host/msm_batch.h). A product in Fp2 is two
dot products of one and a half each, a square two products; a dot product for the norm, two to divide by it."""
SHOUP = 75 / 105
"""A product by a prepared constant against one of two variables, in multiplications (ntt_lanes.h, ifma.h)."""
PRODUCTS, ROUNDS = 4096, 500


def windows(n: int) -> list[int]:
    """Widths of the windows for n wide scalars, as csrc/host/msm_windows.h chooses them."""

    def widths(count: int) -> list[int]:
        return [(w + 1) * 128 // count - w * 128 // count for w in range(count)]

    return min((widths(c) for c in range(7, 33)), key=lambda ws: sum(2 * n + 4 * 2 ** (w - 1) + 300 for w in ws))


def products(n_wires: int, n_private: int, log_domain: int, points_at_once: int = 1 << 18) -> dict[str, float]:
    """Products by phase, those of transforms in Fr as equivalents of a product of variables."""
    n, buckets, sums = 1 << log_domain, 0.0, 0.0
    tables = [("G1", n_wires), ("G1", n_wires), ("G2", n_wires), ("G1", n_private), ("G1", n)]
    for group, size in tables:
        for begin in range(0, size, points_at_once):
            piece = min(points_at_once, size - begin)
            widths = windows(piece)
            buckets += ADDITION[group] * sum(2 * piece * (1 - 2**-w) for w in widths)
            sums += ADDITION[group] * sum(2 * 2 ** (w - 1) for w in widths)
    return {
        "transforms": SHOUP * 3 * n * (log_domain + 5),
        "element-wise": 2 * n,
        "sums: buckets": buckets,
        "sums: windows": sums,
    }


def product_ns(curve: Curve, field: str) -> float:
    executor = core.Executor(1)
    limbs = curve.fr_limbs if field == "fr" else curve.fp_limbs
    a = np.random.default_rng(1).integers(0, 1 << 60, size=(PRODUCTS, limbs), dtype=np.uint64)
    times = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(ROUNDS):
            executor.pointwise(curve.name, field, "mul", a, a, a)
        times.append((time.process_time() - started) * 1e9 / (ROUNDS * PRODUCTS))
    return min(times)


def self_times(document: dict[str, Any]) -> tuple[dict[str, float], float]:
    """Milliseconds of CPU by span name, each without its children, and of the proof."""
    spans = {s["id"]: s for s in document["spans"]}
    left = {i: (sum(s["end"][1:3]) - sum(s["begin"][1:3])) / 1e6 for i, s in spans.items()}  # user and system time
    total = next(left[i] for i, s in spans.items() if s["name"] == "prove")
    own = dict(left)
    for i, s in spans.items():
        if s["parent"] in own:
            own[s["parent"]] -= left[i]
    names: dict[str, float] = defaultdict(float)
    for i, s in spans.items():
        names[s["name"]] += own[i]
    return names, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("key")
    parser.add_argument("witness")
    parser.add_argument("--repeat", type=int, default=3)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    key = load_proving_key(a.key, threads=1)
    witness = load_witness(a.witness, curve=key.curve)
    runs = []
    with Prover(key, threads=1, backend="cpu") as prover:
        prover.prove(witness)
        for _ in range(a.repeat):
            with Timeline() as timeline:
                prover.prove(witness)
            document = timeline.to_json()
            runs.append(self_times(json.loads(document) if isinstance(document, str) else document))
    names, total = min(runs, key=lambda run: run[1])
    counts = products(key.n_wires, len(key.l.points), key.domain.log_size)
    ns = {field: product_ns(key.curve, field) for field in ("fr", "fp")}
    phases: dict[str, dict[str, float]] = {}
    for phase, spans in PHASES.items():
        phases[phase] = {"ms": round(sum(names[s] for s in spans), 2)}
        if phase in counts:
            field = "fp" if phase.startswith("sums") else "fr"
            phases[phase] |= {"products": round(counts[phase]), "bound_ms": round(counts[phase] * ns[field] / 1e6, 2)}
    phases["rest"] = {"ms": round(total - sum(p["ms"] for p in phases.values()), 2)}
    result = {"name": a.name, **facts(), "product_ns": {k: round(v, 2) for k, v in ns.items()}, "ms": round(total, 2)}
    result["phases"] = phases
    target = ROOT / "docs" / "data" / "profile" / f"{a.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
