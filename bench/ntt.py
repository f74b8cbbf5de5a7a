"""Transforms over Fr: CPU and wall time for each size, field, instruction set and number of threads, as JSON lines.

    python bench/ntt.py [--min-log 12] [--max-log 20] [--threads 1 2] [--isa ifma adx] [--repeat 5]

The least of `--repeat` runs counts. A transform of n elements has n/2 log2(n) butterflies, a coset evaluation twice as
many. `products_per_butterfly` compares them with field products of the same instruction set, `product_ns` each, as the
executor's element-wise product of vectors in cache takes them; a butterfly has one product, by a factor that is known.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator

import numpy as np
from machine import facts

from snarkline.curves.curve import CURVES, Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.native import core


def element(curve: Curve, value: int) -> Limbs:
    return FrVector.from_ints(curve, [value], Form.MONTGOMERY).limbs


def random_vector(curve: Curve, n: int) -> Limbs:
    limbs = np.random.default_rng(1).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    limbs[:, 3] %= np.uint64(curve.r >> 192)
    return limbs


def least(repeat: int, run: Callable[[], None]) -> tuple[float, float]:
    """CPU and wall milliseconds of the quickest run, each on its own."""
    cpu, wall = [], []
    for _ in range(repeat):
        started, cpu_started = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - cpu_started)
    return min(cpu) * 1e3, min(wall) * 1e3


def product_ns(executor: core.Executor, curve: Curve) -> float:
    n = 1 << 12
    a, b = random_vector(curve, n), random_vector(curve, n)

    def run() -> None:
        for _ in range(64):
            executor.pointwise(curve.name, "fr", "mul", a, a, b)

    return least(5, run)[0] * 1e6 / (64 * n)


def measure(curve: Curve, isa: str, threads: int, logs: range, repeat: int) -> Iterator[dict[str, object]]:
    executor = core.Executor(threads, isa)
    product = product_ns(core.Executor(1, isa), curve)
    shift = element(curve, curve.generator)
    for log_n in logs:
        data = random_vector(curve, 1 << log_n)
        root = element(curve, pow(curve.generator, (curve.r - 1) >> log_n, curve.r))
        runs: dict[str, tuple[int, Callable[[], None]]] = {
            "ntt": (1, lambda: executor.ntt(curve.name, data, root, None, False)),  # noqa: B023
            "coset_evaluations": (2, lambda: executor.coset_evaluations(curve.name, data, root, shift)),  # noqa: B023
        }
        for kernel, (transforms, run) in runs.items():
            cpu, wall = least(repeat, run)
            butterflies = transforms * log_n << (log_n - 1)
            yield {
                "kernel": kernel,
                "field": f"{curve.name}.fr",
                "isa": isa,
                "threads": threads,
                "log_n": log_n,
                "cpu_ms": round(cpu, 3),
                "wall_ms": round(wall, 3),
                "ns_per_butterfly": round(cpu * 1e6 / butterflies, 2),
                "product_ns": round(product, 2),
                "products_per_butterfly": round(cpu * 1e6 / butterflies / product, 2),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--min-log", type=int, default=12)
    parser.add_argument("--max-log", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--isa", nargs="+", default=core.instruction_sets()[-1:])
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    print(json.dumps(facts()))
    for curve in CURVES.values():
        for isa in args.isa:
            for threads in args.threads:
                for line in measure(curve, isa, threads, range(args.min_log, args.max_log + 1), args.repeat):
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
