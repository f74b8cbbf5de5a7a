"""BLS12-381 sums and products against blst's, one thread, in turns: docs/data/msm/bls12_381.json.

    python bench/msm_blst.py BLST_BENCH [--logs 16 18 20] [--repeat 3]

BLST_BENCH is called with LOG_G1 LOG_G2 REPEAT and prints lines as `G1 MSM 2^16: 11.36 us/point (min 11.17)` for every
other size from 2^16 on, and `blst_fp_mul (381 bit): 55.0 ns chained, 46.2 ns with 8 independent chains`. Times are CPU
times. Our products are those of arrays of 4,096 elements, element by element.
"""

import argparse
import json
import re
import subprocess
import time
from typing import Any

import numpy as np
from machine import ROOT, facts
from msm import inner_product, multiples, random_scalars

from snarkline.curves.curve import BLS12_381, Group
from snarkline.curves.vector import FrVector
from snarkline.native import core

PRODUCTS = 4096
ROUNDS = 500


def blst(program: str, log_g1: int, log_g2: int, repeat: int) -> dict[str, float]:
    """Least microseconds a point by group and size, and nanoseconds of a product."""
    arguments = [program, str(log_g1), str(log_g2), str(repeat)]
    text = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    if "WRONG" in text:
        raise SystemExit(text)
    found = {f"{g} {n}": float(t) for g, n, t in re.findall(r"(G[12]) MSM 2\^(\d+): .*\(min ([\d.]+)\)", text)}
    match = re.search(r"blst_fp_mul \(381 bit\): [\d.]+ ns chained, ([\d.]+) ns", text)
    assert match is not None
    return found | {"product": float(match[1])}


def ours(group: Group, logs: list[int], repeat: int) -> dict[str, float]:
    curve, found = BLS12_381, {}
    discrete = random_scalars(curve, "uniform", 1 << max(logs), 1)
    points = multiples(curve, group, discrete)
    executor = core.Executor(1)
    for log_n in logs:
        n = 1 << log_n
        scalars = random_scalars(curve, "uniform", n, 2)
        want = multiples(curve, group, FrVector.from_ints(curve, [inner_product(curve, discrete[:n], scalars)]).limbs)
        times = []
        for _ in range(repeat):
            started = time.process_time()
            (result,) = executor.msm(curve.name, [(group.value, points[:n])], scalars, False)
            times.append((time.process_time() - started) * 1e6 / n)
            assert np.array_equal(result, want), "wrong sum"
        found[f"{group.name} {log_n}"] = round(min(times), 3)
    return found


def products(isa: str) -> float:
    """Nanoseconds of a product in Fp."""
    executor, curve = core.Executor(1, isa), BLS12_381
    rng = np.random.default_rng(1)
    a = rng.integers(0, 1 << 60, size=(PRODUCTS, curve.fp_limbs), dtype=np.uint64)
    times = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(ROUNDS):
            executor.pointwise(curve.name, "fp", "mul", a, a, a)
        times.append((time.process_time() - started) * 1e9 / (ROUNDS * PRODUCTS))
    return round(min(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--logs", type=int, nargs="+", default=[16, 18, 20])
    parser.add_argument("--repeat", type=int, default=3)
    a = parser.parse_args()
    logs = {Group.G1: a.logs, Group.G2: [n for n in a.logs if n <= 18] or a.logs[:1]}
    theirs = blst(a.program, max(logs[Group.G1]), max(logs[Group.G2]), a.repeat)
    mine: dict[str, Any] = {}
    for group in Group:
        mine |= ours(group, logs[group], a.repeat)
    isas = [isa for isa in core.instruction_sets() if isa != "auto"]
    result = {**facts(), "us_per_point": mine, "product_ns": {isa: products(isa) for isa in isas}, "blst": theirs}
    target = ROOT / "docs" / "data" / "msm" / "bls12_381.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: result[k] for k in ("us_per_point", "product_ns", "blst")}))


if __name__ == "__main__":
    main()
