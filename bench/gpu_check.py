"""Checks and times the CUDA backend on the GPU at hand; writes one JSON file.

    python bench/gpu_check.py OUT.json [--sizes 16,18,20] [--only ntt,msm,proof] [--budget SECONDS]

Results are held against the CPU backend, large sums against known discrete logarithms.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import snarkline.backend.cuda.backend as backend_module
from snarkline.backend.base import Domain
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend, CupyDriver, Gpu, modules_of
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.ntt import Options, TransformBuilder, run_transform
from snarkline.cli.bench import synthetic
from snarkline.cli.bench.synthesis_run import n_blocks, poseidon_inputs, sha256_block_inputs, sha256_inputs
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector
from snarkline.memory import Arena
from snarkline.r1cs.matrices import R1CS
from snarkline.r1cs.structured_witness import GivenValues, run_program
from snarkline.r1cs.witness import Witness
from snarkline.threads import usable_threads
from snarkline.trace import Timeline

TITLES = {"bls12_381": "BLS12-381", "bn254": "BN254"}
RNG = np.random.default_rng(7)


def random_scalars(curve: Curve, n: int) -> np.ndarray:
    limbs = RNG.integers(0, 2**64, (n, 4), dtype=np.uint64, endpoint=False)
    limbs[:, 3] = RNG.integers(0, curve.r >> 192, n, dtype=np.uint64)
    return limbs


def weighted_sum(scalars: np.ndarray, offset: int, r: int) -> int:
    """sum scalars[i] * (i + offset) mod r, for i + offset below 2^28."""
    words = scalars.view(np.uint16).reshape(len(scalars), 16)
    total = [0] * 16
    for begin in range(0, len(scalars), 1 << 18):
        part = words[begin : begin + (1 << 18)].astype(np.uint64)
        index = np.arange(begin + offset, begin + offset + len(part), dtype=np.uint64)
        for k in range(16):
            total[k] += int((part[:, k] * index).sum())
    return sum(t << (16 * k) for k, t in enumerate(total)) % r


def circuit(curve: Curve, log_n: int, kind: str) -> tuple[R1CS, Witness]:
    """About 2^log_n constraints, as `snarkline bench gpu` proves them; the witness is in page-locked memory."""
    import cupyx

    r1cs, values = synthetic.circuit(curve, log_n, kind)
    pinned = cupyx.empty_pinned(values.shape, np.uint64)
    pinned[...] = values
    return r1cs, Witness(FrVector(curve, pinned, Form.CANONICAL))


class Check:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.begin, self.arguments = time.perf_counter(), arguments
        self.report: dict[str, object] = {"failures": []}
        self.device = Gpu(CupyDriver(), Path(arguments.cache), progress=lambda i, n, name: None)
        import cupy

        self.cupy = cupy
        self.cpu = CpuBackend(16, Arena())
        self.gpu = CudaBackend(self.device, self.cpu)

    def say(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.begin:6.1f}] {text}", flush=True)

    def expect(self, what: str, ok: bool) -> None:
        if not ok:
            self.report["failures"].append(what)
        self.say(f"{'ok   ' if ok else 'WRONG'} {what}")

    def late(self) -> bool:
        return time.perf_counter() - self.begin > self.arguments.budget

    def build(self) -> None:
        begin, loads = time.perf_counter(), {}
        every = [module for curve in CURVES.values() for module in modules_of(curve)]
        built = self.device._cache.build(every, self.device.architecture, workers=usable_threads())
        seconds = {module.name: round(s, 2) for module, s in built.seconds.items()}
        self.say(f"{len(seconds)} modules compiled in {time.perf_counter() - begin:.1f} s")
        for curve in CURVES.values():
            begin = time.perf_counter()
            self.device.prepare(modules_of(curve))
            loads[curve.name] = round(time.perf_counter() - begin, 3)
            self.say(f"{curve.name}: loaded in {loads[curve.name]:.3f} s")
        self.report |= {"compile_seconds": seconds, "load_seconds": loads}
        self.say(f"compile: {sum(seconds.values()):.1f} s in all; {sorted(seconds.items(), key=lambda x: -x[1])[:6]}")

    def timed(self, run, repetitions: int = 5) -> float:
        """Median of device milliseconds, from events."""
        run()
        times = []
        for _ in range(repetitions):
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(self.cupy.cuda.get_elapsed_time(begin, end))
        return statistics.median(times)

    def walled(self, run, repetitions: int = 5) -> float:
        run()
        times = []
        for _ in range(repetitions):
            self.device.synchronize()
            begin = time.perf_counter()
            run()
            self.device.synchronize()
            times.append(1e3 * (time.perf_counter() - begin))
        return statistics.median(times)

    def profiled(self, run) -> dict[str, float]:
        """Device milliseconds of each kernel in one run."""
        events, launch = [], self.device.launch

        def recording(module, kernel, *arguments, **keywords):
            begin = self.device.record_here()
            launch(module, kernel, *arguments, **keywords)
            events.append((kernel, begin, self.device.record_here()))

        self.device.launch = recording
        try:
            run()
        finally:
            del self.device.launch
        self.device.synchronize()
        total: dict[str, float] = defaultdict(float)
        for kernel, begin, end in events:
            total[kernel] += self.cupy.cuda.get_elapsed_time(begin, end)
        return {k: round(v, 3) for k, v in sorted(total.items(), key=lambda x: -x[1])}

    # ---- transforms ----

    def ntt(self) -> None:
        table = self.report["ntt"] = {}
        for curve in CURVES.values():
            for log_n in (3, 6, 11, 12, 16, 20, 21):
                self.check_ntt(curve, log_n)
        for curve in (BLS12_381, BN254):
            for log_n in self.arguments.ntt_sizes:
                if self.late():
                    return
                table[f"{curve.name} {log_n}"] = row = self.time_ntt(curve, log_n)
                self.say(f"ntt {curve.name} 2^{log_n}: {row}")

    def check_ntt(self, curve: Curve, log_n: int) -> None:
        root = pow(curve.generator, (curve.r - 1) >> log_n, curve.r)
        domain = Domain(curve, log_n, root)
        data = random_scalars(curve, 1 << log_n)
        data[0] = 0
        for name, run in (
            ("forward", lambda b, v: b.ntt(v, domain)),
            ("inverse, shift", lambda b, v: b.ntt(v, domain, inverse=True, shift=7)),
            ("forward, shift", lambda b, v: b.ntt(v, domain, shift=7)),
            ("coset evaluations", lambda b, v: b.coset_evaluations(v, domain, 7)),
        ):
            mine = run(self.gpu, FrVector(curve, data.copy(), Form.MONTGOMERY))
            theirs = run(self.cpu, FrVector(curve, data.copy(), Form.MONTGOMERY))
            same = np.array_equal(self.device.download(mine.limbs), theirs.limbs)
            self.expect(f"ntt {curve.name} 2^{log_n} {name}", same)

    def time_ntt(self, curve: Curve, log_n: int) -> dict[str, float]:
        root = pow(curve.generator, (curve.r - 1) >> log_n, curve.r)
        builder, module = TransformBuilder(self.device, curve), Module("ntt", curve.name)
        row: dict[str, float] = {}
        block = random_scalars(curve, min(1 << log_n, 1 << 20))
        data = self.device.empty((1 << log_n, 4), "u8")
        for begin in range(0, 1 << log_n, len(block)):
            data[begin : begin + len(block)].set(block)
        for name, options in (
            ("forward", {}),
            ("coset", {"in_ratio": 7}),
            ("inverse scaled", {"first": 3, "out_ratio": 7}),
            ("reversed", {"reversed_order": True}),
        ):
            transform = builder.build(log_n, root, Options(**options))
            row[name] = round(self.timed(lambda t=transform: run_transform(self.device, module, t, data)), 4)
            if name in ("forward", "reversed"):
                row[name + " passes"] = [
                    round(self.timed(lambda t=transform, p=p: self.one_pass(module, t, data, p)), 4)
                    for p in range(len(transform.passes))
                ]
            del transform
        return row

    def one_pass(self, module, transform, data, number) -> None:
        launch, calls = self.device.launch, []
        order = len(transform.passes) - 1 - number if transform.reversed else number

        def only(*arguments, **keywords):
            calls.append(0)
            if len(calls) - 1 == order:
                launch(*arguments, **keywords)

        self.device.launch = only
        try:
            run_transform(self.device, module, transform, data)
        finally:
            del self.device.launch

    # ---- sums ----

    def msm(self) -> None:
        for curve in CURVES.values():
            for group in Group if not self.arguments.unchecked else ():
                self.check_msm(curve, group)
        table = self.report["msm"] = {}
        plan = [
            (BLS12_381, Group.G1, self.arguments.sizes),
            (BLS12_381, Group.G2, [s for s in self.arguments.sizes if s <= 24]),
            (BN254, Group.G1, [s for s in self.arguments.sizes if s in (16, 20, 22, 24)]),
        ]
        for curve, group, sizes in plan:
            if not sizes or curve.name not in self.arguments.curves:
                continue
            n = 1 << max(sizes)
            index = np.zeros((n, 4), np.uint64)
            index[:, 0] = np.arange(1000, 1000 + n)
            begin = time.perf_counter()
            points = self.gpu.fixed_base(Point.generator(curve, group), FrVector(curve, index, Form.CANONICAL))
            del index
            limbs = self.device.upload(points.limbs)
            del points
            self.say(f"2^{max(sizes)} points of {curve.name} {group.name} in {time.perf_counter() - begin:.2f} s")
            scalars = random_scalars(curve, n)
            device_scalars = self.device.upload(scalars)
            for log_n in sizes:
                if self.late():
                    return
                row = self.time_msm(curve, group, limbs, scalars, device_scalars, 1 << log_n)
                table[f"{curve.name} {group.name} {log_n}"] = row
                self.say(f"msm {curve.name} {group.name} 2^{log_n}: {row}")
            del limbs, device_scalars

    def check_msm(self, curve: Curve, group: Group) -> None:
        r = curve.r
        backend_module.SMALL = 1
        cases = {
            "random": lambda i: int(RNG.integers(1 << 62)) ** 4 % r,
            "bits": lambda i: i % 2 if i % 10 else int(RNG.integers(1 << 62)) ** 5 % r,
            "equal": lambda i: r // 3,
            "edges": lambda i: [0, 1, 2, r - 1, r - 2, r // 2, r // 2 + 1, 1 << (i % 254)][i % 8],
            "zero": lambda i: 0,
            "one": lambda i: int(i == 5),
        }
        for n in (1, 2, 3, 255, 4096, 4097, 30000):
            for name, scalar in cases.items():
                if n > 5000 and name not in ("bits", "equal", "random"):
                    continue
                scalars = FrVector.from_ints(curve, [scalar(i) for i in range(n)])
                weights = FrVector.from_ints(curve, [i * i % 11 if name != "random" else i + 1 for i in range(n)])
                points = self.cpu.fixed_base(Point.generator(curve, group), weights)
                (theirs,) = self.cpu.msm([points], scalars)
                (mine,) = self.gpu.msm([PointTable(curve, group, np.array(points.limbs))], scalars)
                if mine != theirs or n in (3, 30000):
                    self.expect(f"msm {curve.name} {group.name} n={n} {name}", mine == theirs)

    def time_msm(self, curve, group, limbs, scalars, device_scalars, n):
        runner = self.gpu._sums.runner(curve)
        run = lambda: runner.run([(group, limbs[:n])], device_scalars[:n], False).points()  # noqa: E731
        (result,) = run()
        expected = weighted_sum(scalars[:n], 1000, curve.r)
        (theirs,) = self.cpu.fixed_base(
            Point.generator(curve, group), FrVector.from_ints(curve, [expected])
        ).to_points()
        self.expect(f"msm {curve.name} {group.name} 2^{n.bit_length() - 1}", result == theirs)
        row: dict[str, object] = {"wall_ms": round(self.walled(run), 3)}
        row["kernels"] = self.profiled(run)
        row["kernel_ms"] = round(sum(row["kernels"].values()), 3)
        row["bytes"] = self.device._pool.total_bytes()
        return row

    def profile(self) -> None:
        """A sum of each curve, a transform, and a, b, c of a SHA-256 chain between marks, for `ncu --profile-from-start
        off`; the report says how many kernels each launches."""
        runs = {}
        for curve in (BLS12_381, BN254):
            n = 1 << 22
            index = np.zeros((n, 4), np.uint64)
            index[:, 0] = np.arange(1000, 1000 + n)
            table = self.gpu.fixed_base(Point.generator(curve, Group.G1), FrVector(curve, index, Form.CANONICAL))
            points = [(Group.G1, self.device.upload(table.limbs))]
            msm, scalars = self.gpu._sums.runner(curve), self.device.upload(random_scalars(curve, n))
            runs[f"sum, {TITLES[curve.name]}"] = lambda msm=msm, p=points, s=scalars: msm.run(p, s, False)
        curve = BLS12_381
        transform = TransformBuilder(self.device, curve).build(24, pow(curve.generator, (curve.r - 1) >> 24, curve.r))
        data = self.device.upload(random_scalars(curve, 1 << 24))
        runs[f"transform, {TITLES[curve.name]}"] = lambda: run_transform(
            self.device, Module("ntt", curve.name), transform, data
        )
        system, given = sha256_inputs(n_blocks(24))
        witness = run_program(system, given)
        domain = Domain(system.curve, 24, 1)
        runs[f"a, b, c of 2^24, {TITLES[curve.name]}"] = lambda: self.gpu.evaluate_structured(witness, domain)
        for run in runs.values():
            run()
        self.report["launches"] = {name: self.launches_of(run) for name, run in runs.items()}
        self.device.synchronize()
        self.cupy.cuda.profiler.start()
        for run in runs.values():
            run()
        self.device.synchronize()
        self.cupy.cuda.profiler.stop()

    def launches_of(self, run) -> int:
        """How many kernels one run launches."""
        launch, names = self.device.launch, []

        def counting(module, kernel, *arguments, **keywords):
            names.append(kernel)
            launch(module, kernel, *arguments, **keywords)

        self.device.launch = counting
        try:
            run()
        finally:
            del self.device.launch
        return len(names)

    # ---- proofs ----

    def circuits(self) -> None:
        """Whole proofs of circuits of 2^k constraints, with keys that the GPU sets up."""
        import warnings

        from snarkline.groth16 import prover as prover_module
        from snarkline.groth16 import setup as setup_module

        warnings.simplefilter("ignore")
        table = self.report["circuits"] = {}
        prover_module.open_backend = lambda name, threads, arena, **_: self.gpu
        setup_module.open_backend = lambda name, threads, arena, **_: self.gpu
        setup_module.closing = contextlib.nullcontext
        for curve, log_n, kind in [
            (BLS12_381, 20, "random"),
            (BLS12_381, 20, "bits"),
            (BN254, 20, "random"),
            (BN254, 20, "bits"),
            (BLS12_381, 22, "random"),
            (BLS12_381, 22, "bits"),
        ]:
            if log_n not in self.arguments.circuit_sizes:
                continue
            if self.late():
                return
            r1cs, witness = circuit(curve, log_n, kind)
            begin = time.perf_counter()
            key = setup_module.setup(r1cs)
            self.say(f"{curve.name} 2^{log_n} {kind}: setup {time.perf_counter() - begin:.2f} s")
            row: dict[str, object] = {"setup_s": round(time.perf_counter() - begin, 2)}
            prover = prover_module.Prover(key, threads=16)
            begin = time.perf_counter()
            prover.prove(witness)
            row["first_ms"] = round(1e3 * (time.perf_counter() - begin), 1)
            row["prove_ms"] = round(self.walled(lambda p=prover, w=witness: p.prove(w)), 2)
            row["start_ms"] = round(self.walled(lambda p=prover, w=witness: p.start(w)), 2)
            with Timeline() as timeline:
                prover.prove(witness)
            row["spans"] = timeline.to_json() if self.arguments.spans else None
            print(timeline.report())
            row["kernels"] = self.profiled(lambda p=prover, w=witness: p.prove(w))
            row["kernel_ms"] = round(sum(row["kernels"].values()), 2)
            row["device_bytes"] = self.device._pool.total_bytes()
            table[f"{curve.name} {log_n} {kind}"] = row
            self.say(f"proof {curve.name} 2^{log_n} {kind}: {row}")
            del prover, key, r1cs, witness
            self.gpu._transposed.clear()
            gc.collect()
            self.device._pool.free_all_blocks()

    def proofs(self) -> None:
        import snarkline
        from snarkline.formats.circom import proof_to_json, public_to_json
        from snarkline.groth16 import prover as prover_module

        choose = {"cuda": self.gpu, "cpu": self.cpu}
        prover_module.open_backend = lambda name, threads, arena, **_: choose[name]
        table = self.report["proofs"] = {}
        written = self.report["written"] = {}  # for snarkjs
        for folder in sorted(Path(self.arguments.fixtures).iterdir()):
            keys, witnesses = sorted(folder.glob("*.zkey")), sorted(folder.glob("*.wtns"))
            if not keys or not witnesses:
                continue
            key, witness = snarkline.load_proving_key(keys[0]), snarkline.load_witness(witnesses[0])
            proofs, milliseconds = {}, {}
            for name in ("cpu", "cuda"):
                prover = prover_module.Prover(key, backend=name, threads=16)
                proofs[name] = prover.prove(witness, blinding_for_tests=(11, 13))
                milliseconds[name] = round(self.walled(lambda p=prover, w=witness: p.prove(w), 5), 2)
            self.expect(f"proof {folder.name} 2^{key.domain.log_size}", proofs["cpu"] == proofs["cuda"])
            table[folder.name] = milliseconds
            self.say(f"proof {folder.name}: {milliseconds}")
            if folder.name.startswith("merkle20"):
                prover = prover_module.Prover(key, backend="cuda", threads=16)
                same = all(
                    prover.prove(witness, blinding_for_tests=(11, 13)) == proofs["cpu"]
                    for _ in range(self.arguments.repeat)
                )
                self.expect(f"{self.arguments.repeat} proofs of {folder.name} are the CPU's", same)
            prover = prover_module.Prover(key, backend="cuda", threads=16)
            proof = prover.prove(witness)
            written[folder.name] = {"proof": proof_to_json(proof), "public": public_to_json(proof.public)}

    def small_structured(self) -> None:
        """a, b, c and the wires of structured circuits, and of witnesses that are made on the device."""
        for name, (system, given) in {"SHA-256": sha256_inputs(2), "Poseidon": poseidon_inputs(64)}.items():
            witness = run_program(system, given)
            self.expect(f"small structured {name}", self.same_values(witness, witness))
        for name, inputs in {"SHA-256": sha256_block_inputs(33), "Poseidon": poseidon_inputs(256)}.items():
            given = GivenValues(*inputs)
            made = self.gpu.run_program(given, threads=4, arena=Arena())
            self.expect(f"small witness program {name}", made is not None and self.same_values(made, given.run()))

    def same_values(self, ours, theirs) -> bool:
        """Whether a, b, c and the wires on the device are those of the CPU's witness."""
        system = theirs.system
        domain = Domain(system.curve, (system.n_constraints + system.n_public).bit_length(), 1)
        there, here = self.gpu.evaluate_structured(ours, domain), self.cpu.evaluate_structured(theirs, domain)
        return all(np.array_equal(self.device.download(x.limbs), y.limbs) for x, y in zip(there, here, strict=True))

    def small(self) -> None:
        """Every kernel on sizes that compute-sanitizer can follow."""
        import snarkline.backend.cuda.msm as msm_module

        self.small_structured()
        msm_module.MIN_ADDITIONS = 20
        for curve in CURVES.values():
            for log_n in (3, 9, 12):
                self.check_ntt(curve, log_n)
            for group in Group:
                for kind in ("random", "bits"):
                    n, r = 1500, curve.r
                    values = [pow(i + 2, 300, r) if kind == "random" or i % 10 == 0 else i % 2 for i in range(n)]
                    scalars = FrVector.from_ints(curve, values)
                    points = self.cpu.fixed_base(
                        Point.generator(curve, group), FrVector.from_ints(curve, [i % 700 for i in range(n)])
                    )
                    same = self.gpu.msm([points], scalars) == self.cpu.msm([points], scalars)
                    self.expect(f"small msm {curve.name} {group.name} {kind}", same)
                base, scalars = Point.generator(curve, group), FrVector.from_ints(curve, range(1030))
                same = np.array_equal(
                    self.gpu.fixed_base(base, scalars).limbs, self.cpu.fixed_base(base, scalars).limbs
                )
                self.expect(f"small multiples {curve.name} {group.name}", same)


def main() -> None:
    parser = argparse.ArgumentParser()
    numbers = lambda text: [int(x) for x in text.split(",") if x]  # noqa: E731
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=numbers, default=[16, 18, 20, 22])
    parser.add_argument("--ntt-sizes", type=numbers, default=[18, 20, 22, 24])
    parser.add_argument("--circuit-sizes", type=numbers, default=[20, 22])
    parser.add_argument("--curves", default="bn254,bls12_381")
    parser.add_argument("--unchecked", action="store_true", help="leave out the small cases of the sums")
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--replace", default="", help="OLD=>NEW in every kernel file, to try a variant")
    parser.add_argument("--only", default="build,ntt,msm,proofs")
    parser.add_argument("--budget", type=float, default=240)
    parser.add_argument("--cache", default="/tmp/snarkline-kernels")
    parser.add_argument("--fixtures", default="fixtures")
    parser.add_argument("--repeat", type=int, default=100, help="proofs of one key with fixed blinding")
    arguments = parser.parse_args()
    if arguments.replace:
        import snarkline.backend.cuda.module as module

        old, new = arguments.replace.split("=>")
        original = module.flattened_source
        module.flattened_source = lambda file: original(file).replace(old, new)
    check = Check(arguments)
    try:
        for part in arguments.only.split(","):
            try:
                getattr(check, part)()
            except Exception as error:
                import traceback

                traceback.print_exc()
                check.report["failures"].append(f"{part}: {error!r}")
    finally:
        arguments.out.write_text(json.dumps(check.report, indent=1))
    check.say(f"{len(check.report['failures'])} failures: {check.report['failures']}")
    sys.exit(1 if check.report["failures"] else 0)


if __name__ == "__main__":
    main()
