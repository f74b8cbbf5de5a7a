"""What `snarkline bench gpu` measures. Every result is checked: sums against a known discrete logarithm, transforms by
their inverse, proofs by the verifier."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.backend.base import Domain
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend, Gpu
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.msm import Msm
from snarkline.backend.cuda.ntt import Options, Transform, TransformBuilder, run_transform
from snarkline.backend.cuda.windows import best_count
from snarkline.cli.bench.synthetic import KINDS, circuit
from snarkline.curves.curve import CURVES, Curve, Group
from snarkline.curves.point import Point
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import InternalError, SecurityWarning
from snarkline.groth16.prover import Prover
from snarkline.groth16.setup import setup
from snarkline.memory import Lease
from snarkline.r1cs.witness import Witness
from snarkline.trace import Timeline, span
from snarkline.trace.gaps import union

FIRST_MULTIPLE = 1000
"""Point i of a sum is (i + FIRST_MULTIPLE) times the generator."""
AFFINE = {Group.G1: 6, Group.G2: 17}
"""Products in the base field of an affine addition, its share of the common inversion among them (rounds.cu)."""
MIXED = {Group.G1: 10, Group.G2: 28}
"""Of an XYZZ addition with an affine point: 8M + 2S, an M in Fp2 being 3 products and an S 2."""
FULL = {Group.G1: 14, Group.G2: 40}
"""Of an XYZZ addition: 12M + 2S."""
PHASES = ("evaluate", "quotient", "commit", "assemble", "self-check")


__all__ = ["KINDS", "Bench", "ceilings", "proofs", "sums", "transforms"]


@dataclass(frozen=True)
class Bench:
    """A device, and how often a measurement is taken; medians are what is reported."""

    device: Gpu
    backend: CudaBackend
    cpu: CpuBackend
    runs: int

    def device_seconds(self, run: Callable[[], object]) -> float:
        """Between two events around the work, after one run to warm up."""
        run()
        clock, pairs = self.device.clock, []
        for _ in range(self.runs):
            begin = clock.record()
            run()
            pairs.append((begin, clock.record()))
        return float(median(clock.elapsed(*pair) for pair in pairs))

    def wall_seconds(self, run: Callable[[], object]) -> float:
        run()
        seconds = []
        for _ in range(self.runs):
            self.device.synchronize()
            begin = time.perf_counter()
            run()
            self.device.synchronize()
            seconds.append(time.perf_counter() - begin)
        return median(seconds)


def ceilings(bench: Bench) -> dict[str, Any]:
    """What the chip does at most: wide multiply-adds, products of each field, a copy within its memory."""
    device, threads = bench.device, 512 * bench.device.multiprocessors * 4
    rounds = {"multiply_add": 5_000, "multiply_fr": 2_000, "multiply_fp": 1_000}
    rates: dict[str, float] = {}
    for curve in CURVES.values():
        module = Module("ceiling", curve.name)
        device.prepare([module])
        out = device.empty((threads, curve.fp_limbs), "u8")
        elements = device.upload(np.arange(1, 3 * curve.fp_limbs + 1, dtype=np.uint64))  # three, each below p
        for kernel, n in rounds.items():
            chains = () if kernel == "multiply_add" else (2,)
            work = partial(device.launch, module, kernel, threads // 128, 128, out, elements, n, *chains)
            seconds = bench.device_seconds(work)
            each = 64 if kernel == "multiply_add" else 2
            name = "multiply-adds" if kernel == "multiply_add" else f"{curve.name} {kernel[-2:].capitalize()}"
            rates[name] = max(rates.get(name, 0.0), threads * n * each / seconds)
    source = device.zeros(1 << 32, "u1")
    target = device.empty(1 << 32, "u1")
    copied = 2 * source.nbytes / bench.device_seconds(lambda: device.copy(target, source))
    return {"per_second": rates, "copy_bytes_per_second": copied}


def transforms(bench: Bench, sizes: list[int], rates: dict[str, float]) -> Iterator[dict[str, Any]]:
    for curve in reversed(CURVES.values()):
        for log_n in sizes:
            yield _transform(bench, curve, log_n, rates)


def _transform(bench: Bench, curve: Curve, log_n: int, rates: dict[str, float]) -> dict[str, Any]:
    device, r, n = bench.device, curve.r, 1 << log_n
    domain = Domain(curve, log_n, pow(curve.generator, (r - 1) >> log_n, r))
    builder, module = TransformBuilder(device, curve), Module("ntt", curve.name)
    data = device.empty((n, curve.fr_limbs), "u8")
    sample = _random_scalars(curve, min(n, 1 << 20))
    for begin in range(0, n, len(sample)):
        device.copy(data[begin : begin + len(sample)], device.upload(sample))

    def timed(transform: Transform) -> float:
        return 1e3 * bench.device_seconds(lambda: run_transform(device, module, transform, data))

    forward = timed(builder.build(log_n, domain.root))
    row = {
        "curve": curve.name,
        "log_n": log_n,
        "forward_ms": forward,
        "coset_ms": timed(builder.build(log_n, domain.root, Options(in_ratio=7))),
        "inverse_ms": timed(builder.build(log_n, domain.root, Options(first=3, out_ratio=7))),
        "reversed_ms": timed(builder.build(log_n, domain.root, Options(reversed_order=True))),
        # n/2 products a level; what radix 8 saves, the factors between passes give back.
        "share_of_ceiling": n / 2 * log_n / rates[f"{curve.name} Fr"] / (forward / 1e3),
    }
    if log_n <= 20:
        values = FrVector(curve, sample[:n].copy(), Form.MONTGOMERY)
        there = bench.backend.ntt(values, domain, shift=7)
        back = bench.backend.ntt(there, domain, inverse=True, shift=7)
        if not np.array_equal(device.download(back.limbs), sample[:n]):
            raise InternalError(f"a transform of 2^{log_n} elements over {curve.name} is not undone by its inverse")
    return row


def sums(bench: Bench, plan: list[tuple[Curve, Group, list[int]]], rates: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Of the first 2^k of one table of points, scalars of full width, both on the device."""
    for curve, group, sizes in plan:
        if not sizes:
            continue
        n = 1 << max(sizes)
        multiples = np.zeros((n, curve.fr_limbs), np.uint64)
        multiples[:, 0] = np.arange(FIRST_MULTIPLE, FIRST_MULTIPLE + n)
        table = bench.backend.fixed_base(Point.generator(curve, group), FrVector(curve, multiples, Form.CANONICAL))
        points, scalars = bench.device.upload(table.limbs), _random_scalars(curve, n)
        del table, multiples
        on_device, msm = bench.device.upload(scalars), Msm(bench.device, curve)
        for log_n in sizes:
            m = 1 << log_n
            run = _sum_of(msm, group, points[:m], on_device[:m])
            exponent = weighted_sum(scalars[:m], FIRST_MULTIPLE, curve.r)
            expected = bench.cpu.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, [exponent]))
            if run() != expected.to_points():
                raise InternalError(f"a sum of 2^{log_n} points of {curve.name} {group.name} is wrong")
            yield _time_sum(bench, curve, group, log_n, run, rates)


def _sum_of(msm: Msm, group: Group, points: Any, scalars: Any) -> Callable[[], list[Point]]:
    return lambda: msm.run([(group, points)], scalars, False).points()


def _time_sum(
    bench: Bench, curve: Curve, group: Group, log_n: int, run: Callable[[], object], rates: dict[str, float]
) -> dict[str, Any]:
    wall = bench.wall_seconds(run)
    with Timeline() as timeline, span("sum"):
        run()
    phases = {s.name.removeprefix("msm."): s for s in timeline.spans if s.name.startswith("msm.")}
    additions, n_buckets = phases["rounds"].items or 0, phases["reduce"].items or 0
    left = (best_count(curve, 1 << log_n) << log_n) - additions
    products = additions * AFFINE[group] + max(0, left - n_buckets) * MIXED[group] + 2 * n_buckets * FULL[group]
    return {
        "curve": curve.name,
        "group": group.name,
        "log_n": log_n,
        "wall_ms": 1e3 * wall,
        **{f"{name}_ms": 1e3 * s.wall_s for name, s in phases.items()},
        "windows": best_count(curve, 1 << log_n),
        "affine_additions": additions,
        "products": products,
        "share_of_ceiling": products / rates[f"{curve.name} Fp"] / wall,
    }


def proofs(bench: Bench, plan: list[tuple[Curve, int, str]]) -> Iterator[dict[str, Any]]:
    """From the witness in page-locked memory to a verified proof; key and matrices on the device."""
    for curve, log_n, kind in plan:
        r1cs, values = circuit(curve, log_n, kind)
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)
            key = setup(r1cs, backend="cuda")
        setup_s = time.perf_counter() - begin
        bench.device.trim()
        with (
            bench.device.staging.arena.lease(values.shape, np.uint64, registered=True) as lease,
            Prover(key, backend="cuda") as prover,
        ):
            lease.array[...] = values
            rows = _time_proofs(bench, prover, lease)
        yield {
            "curve": curve.name,
            "log_n": log_n,
            "witness": kind,
            "setup_s": setup_s,
            **{f"{name}_ms": 1e3 * median(row[name] for row in rows) for name in rows[0]},
        }


def _time_proofs(bench: Bench, prover: Prover, lease: Lease) -> list[dict[str, float]]:
    witness = Witness(FrVector(prover.key.curve, lease.array, Form.CANONICAL))
    rows = []
    for number in range(1 + bench.runs):
        with Timeline() as timeline:
            prover.prove(witness)
        if number:
            rows.append(_phases(timeline))
    return rows


def _phases(timeline: Timeline) -> dict[str, float]:
    seconds = dict.fromkeys(("proof", *PHASES, "on device"), 0.0)
    for item in timeline.spans:
        if item.name in seconds:
            seconds[item.name] += item.wall_s
    busy = union((item.begin.ns, item.end.ns) for item in timeline.spans if item.kind == "device")  # some side by side
    seconds["on device"] = sum(end - begin for begin, end in busy) / 1e9
    seconds["proof"] = timeline.wall_s
    return seconds


def _random_scalars(curve: Curve, n: int) -> npt.NDArray[np.uint64]:
    """Nearly uniform in [0, r): the top limb is below that of r."""
    rng = np.random.default_rng()
    limbs = rng.integers(0, 2**64, (n, curve.fr_limbs), dtype=np.uint64, endpoint=False)
    limbs[:, -1] = rng.integers(0, curve.r >> 192, n, dtype=np.uint64)
    return limbs


def weighted_sum(scalars: npt.NDArray[np.uint64], offset: int, r: int) -> int:
    """sum scalars[i] * (i + offset) mod r, for i + offset below 2^28: exact, in words of 16 bits."""
    words = scalars.view(np.uint16).reshape(len(scalars), -1)
    total = [0] * words.shape[1]
    step = 1 << 18  # 16 + 28 + 18 bits fit in 64
    for begin in range(0, len(scalars), step):
        part = words[begin : begin + step].astype(np.uint64)
        index = np.arange(begin + offset, begin + offset + len(part), dtype=np.uint64)
        for k in range(len(total)):
            total[k] += int(part[:, k] @ index)
    return sum(t << (16 * k) for k, t in enumerate(total)) % r
