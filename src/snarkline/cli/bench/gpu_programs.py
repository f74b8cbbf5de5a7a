"""What `snarkline bench gpu` measures of witness programs, on the device and on the host: Poseidon trees from their
leaves, and SHA-256 of many blocks. Values and proofs are compared."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Any

import numpy as np

from snarkline.backend.base import Domain
from snarkline.backend.cuda.structured import Packed
from snarkline.cli.bench.gpu_work import Bench
from snarkline.cli.bench.synthesis_run import CURVE, NODE_ROWS, n_blocks, poseidon_inputs, sha256_block_inputs
from snarkline.errors import InternalError, SecurityWarning
from snarkline.groth16.keys import Proof
from snarkline.groth16.prover import Prover
from snarkline.groth16.setup import setup
from snarkline.memory import Arena
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness
from snarkline.threads import usable_threads

BLINDING = (3, 5)


Case = tuple[str, int]
"""A circuit of CIRCUITS, and the logarithm of its constraints, about."""

CIRCUITS: dict[str, Callable[[int], GivenValues]] = {
    "Poseidon tree": lambda k: GivenValues(*poseidon_inputs(1 << max(1, k - NODE_ROWS.bit_length() + 1))),
    "SHA-256 blocks": lambda k: GivenValues(*sha256_block_inputs(n_blocks(k))),
}


def programs(bench: Bench, cases: Iterable[Case]) -> Iterator[dict[str, Any]]:
    """From the given values on the host to the witness, and whether it satisfies the constraints, both ways."""
    for name, log_n in cases:
        yield {"circuit": name, "log_n": log_n, **_program(bench, CIRCUITS[name](log_n))}


def _program(bench: Bench, given: GivenValues) -> dict[str, Any]:
    threads, arena, backend, system = usable_threads(), Arena(), bench.backend, given.system
    domain = Domain(CURVE, (system.n_constraints + system.n_public).bit_length(), 1)
    expected = given.run(threads=threads, arena=arena)

    def on_device() -> StructuredWitness:
        witness = backend.run_program(given, threads=threads, arena=arena)
        if witness is None:
            raise InternalError(f"the program of {system.n_constraints} constraints was left to the host")
        return witness

    _, a, b, c = backend.evaluate_structured(on_device(), domain)
    for ours, theirs in zip((a, b, c), bench.cpu.evaluate_structured(expected, domain)[1:], strict=True):
        if not np.array_equal(bench.device.download(ours.limbs), theirs.limbs):
            raise InternalError(f"the witness of {system.n_constraints} constraints is wrong")
    measured: dict[str, Callable[[], object]] = {
        "program": on_device,
        "check": lambda: backend.rows_hold(a, b, c),
        "cpu_program": lambda: given.run(threads=threads, arena=arena),
        "cpu_check": lambda: first_violation(system, expected, threads=threads, arena=arena),
        "cpu_upload": lambda: Packed.upload(bench.device, expected),
    }
    return {
        "constraints": system.n_constraints,
        "packed_mb": expected.nbytes / 1e6,
        **{f"{name}_ms": 1e3 * bench.wall_seconds(run) for name, run in measured.items()},
    }


def program_proofs(bench: Bench, cases: Iterable[Case]) -> Iterator[dict[str, Any]]:
    """From the given values to a verified proof on the GPU, the witness computed and checked there, or on the host."""
    for name, log_n in cases:
        given = CIRCUITS[name](log_n)
        row = {"circuit": name, "log_n": log_n, "constraints": given.system.n_constraints}
        yield {**row, **_both_ways(bench, given)}


def _both_ways(bench: Bench, given: GivenValues) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        key = setup(given.system, backend="cuda")
    bench.device.trim()
    with Prover(key, r1cs=given.system, backend="cuda") as prover:
        ours, device_ms = _timed(bench.runs, prover, lambda: given)
        theirs, host_ms = _timed(bench.runs, prover, lambda: given.run(threads=prover.threads, arena=prover.arena))
    if ours != theirs:
        raise InternalError("proofs from one input differ")
    return {"device_ms": device_ms, "host_ms": host_ms}


def _timed(runs: int, prover: Prover, make: Callable[[], GivenValues | StructuredWitness]) -> tuple[Proof, float]:
    """The proof, and the median of the milliseconds, after one to warm up."""
    proof, seconds = prover.prove(make(), blinding_for_tests=BLINDING), []
    for _ in range(runs):
        begin = time.perf_counter()
        proof = prover.prove(make(), blinding_for_tests=BLINDING)
        seconds.append(time.perf_counter() - begin)
    return proof, 1e3 * median(seconds)
