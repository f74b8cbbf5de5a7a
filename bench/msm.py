"""Multi-scalar multiplications: microseconds of CPU and wall time a point, as JSON lines.

    python bench/msm.py [--curve bn254 bls12_381] [--group 1 2] [--logs 16 18 20] [--threads 1 2] [--isa ifma adx]
                        [--scalars uniform bits] [--repeat 3]

The least of `--repeat` runs counts. Points are distinct, and the first result of each size is held against the sum of
their known discrete logarithms. `bits` are scalars of 0 and 1; `uniform` are uniform below 2^64 floor(r / 2^192).
"""

import argparse
import json
import time
from collections.abc import Iterator

import numpy as np
from machine import facts

from snarkline.curves.curve import CURVES, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector, Limbs, limbs_to_ints
from snarkline.native import core


def random_scalars(curve: Curve, kind: str, n: int, seed: int) -> Limbs:
    rng = np.random.default_rng(seed)
    limbs = rng.integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    limbs[:, 3] %= np.uint64(curve.r >> 192)
    if kind == "bits":
        limbs[:, 0] &= np.uint64(1)
        limbs[:, 1:] = 0
    return limbs


def multiples(curve: Curve, group: Group, scalars: Limbs) -> Limbs:
    base = PointTable.from_points(curve, group, [Point.generator(curve, group)]).limbs
    out = np.zeros((len(scalars), curve.point_limbs(group)), np.uint64)
    core.Executor(2).fixed_base(curve.name, group.value, out, base, scalars)
    return out


def inner_product(curve: Curve, a: Limbs, b: Limbs) -> int:
    return sum(x * y for x, y in zip(limbs_to_ints(a), limbs_to_ints(b), strict=True)) % curve.r


def measure(curve: Curve, group: Group, args: argparse.Namespace) -> Iterator[dict[str, object]]:
    logs = random_scalars(curve, "uniform", 1 << max(args.logs), 1)
    points = multiples(curve, group, logs)
    for log_n in args.logs:
        n = 1 << log_n
        for kind in args.scalars:
            scalars = random_scalars(curve, kind, n, 2)
            value = inner_product(curve, logs[:n], scalars)
            want = multiples(curve, group, FrVector.from_ints(curve, [value]).limbs)
            for isa in args.isa:
                for threads in args.threads:
                    executor = core.Executor(threads, isa)
                    cpu, wall = [], []
                    for _ in range(args.repeat):
                        started, cpu_started = time.perf_counter(), time.process_time()
                        result = executor.msm(curve.name, [(group.value, points[:n])], scalars, False)[0]
                        wall.append((time.perf_counter() - started) * 1e6 / n)
                        cpu.append((time.process_time() - cpu_started) * 1e6 / n)
                        assert np.array_equal(result, want), "wrong sum"
                    yield {
                        "kernel": "msm",
                        "curve": curve.name,
                        "group": group.name,
                        "log_n": log_n,
                        "scalars": kind,
                        "isa": isa,
                        "threads": threads,
                        "cpu_us_per_point": round(min(cpu), 3),
                        "wall_us_per_point": round(min(wall), 3),
                        "wall_samples": [round(w, 3) for w in wall],
                    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curve", nargs="+", default=list(CURVES), choices=list(CURVES))
    parser.add_argument("--group", type=int, nargs="+", default=[1, 2], choices=[1, 2])
    parser.add_argument("--logs", type=int, nargs="+", default=[16, 18])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--isa", nargs="+", default=core.instruction_sets()[-1:])
    parser.add_argument("--scalars", nargs="+", default=["uniform"], choices=["uniform", "bits"])
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(json.dumps(facts()))
    for name in args.curve:
        for group in args.group:
            for line in measure(CURVES[name], Group(group - 1), args):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
