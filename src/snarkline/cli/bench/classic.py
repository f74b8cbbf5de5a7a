"""A real proof in the classic layout (`groth16.classic`), once per release policy: what `snarkline bench prove
--release` and `snarkline bench porep` measure. Beside it `PRODUCT`, the path of `Prover`.

Every run has a process of its own: `python -m snarkline.cli.bench.classic` reads a `ClassicRun` and prints its row.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from snarkline import Proof, Prover, ProvingKey, Timeline, Witness, load_proving_key, load_witness, verify
from snarkline.errors import InternalError
from snarkline.formats.circom import proof_to_json
from snarkline.groth16.classic import ClassicProver
from snarkline.memory import Arena, Release
from snarkline.memory.experiment import CONTROL, Probes, Row, peak_rss_bytes, wait_until
from snarkline.memory.fresh import answer, run_fresh
from snarkline.memory.moments import Moments
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness, run_program

CLASSIC, PRODUCT = "classic", "product"

# For tests only, and the same in every run: that is what makes proofs comparable byte by byte.
BLINDING = (3, 5)


@dataclass(frozen=True)
class ClassicRun:
    """`policy`: a Release's value, "control" (releases nothing) or "product" (the product's path, with its default).
    `key`, `witness`: paths. `backend`: who transforms and sums, a name for `open_backend`; a, b and c always come from
    the CPU. `pages`: "4k" or "2m". `host_copies`: the inner function's vectors are host memory too where the backend is
    a device's. `sector_size`: the key is a .params file for the Proof-of-Replication of that size, and `witness` a C1
    file. `layout`: "classic" or "product". `timeline`: a file for the timeline of the call."""

    policy: str
    key: str
    witness: str
    circuits: int
    threads: int
    backend: str = "cpu"
    pages: str = "4k"
    window_s: float = 1.0
    host_copies: bool = False
    sector_size: str = ""
    layout: str = CLASSIC
    timeline: str = ""

    @property
    def release(self) -> Release:
        return Release.RECYCLE if self.policy in (CONTROL, PRODUCT) else Release(self.policy)


def plan(policies: Sequence[str], base: ClassicRun) -> list[ClassicRun]:
    """The control, every policy, and the product's path."""
    classic = [replace(base, policy=policy) for policy in (CONTROL, *policies)]
    return [*classic, replace(base, policy=PRODUCT, layout=PRODUCT)]


def measure_fresh(run: ClassicRun) -> Row:
    """One run in a process of its own."""
    return dict(json.loads(run_fresh(__name__, run, run.pages)))


def require_equal_proofs(rows: Sequence[Row]) -> None:
    """With fixed blinding no policy may change a byte. Raises InternalError."""
    for row in rows:
        if row["proofs_sha256"] != rows[0]["proofs_sha256"]:
            raise InternalError(f"proofs under {row['policy']} differ from those under {rows[0]['policy']}")


def measure(run: ClassicRun) -> Row:
    """One run in this process, which should be a fresh one."""
    case = load(run)
    return _measure_product(run, case) if run.layout == PRODUCT else _measure_classic(run, case)


@dataclass(frozen=True)
class Case:
    """A key, its circuit where it is at hand, and what makes the witness."""

    key: ProvingKey
    r1cs: StructuredR1CS | None
    synthesise: Callable[[], Witness | StructuredWitness]


def load(run: ClassicRun) -> Case:
    """Key and witness; for a sector (`sector_size`) the first partition of its C1 output, checked."""
    key = load_proving_key(run.key)
    if not run.sector_size:
        witness = load_witness(run.witness, curve=key.curve)
        return Case(key, None, lambda: witness)
    from snarkline.filecoin.porep.c1 import load_phase1
    from snarkline.filecoin.porep.circuit import assignment, porep_circuit
    from snarkline.filecoin.registry import sector_size

    size = sector_size(run.sector_size)
    circuit, output = porep_circuit(size), load_phase1(run.witness, size)
    return Case(key.attach(circuit), circuit, lambda: run_program(circuit, assignment(output, 0), threads=run.threads))


def _measure_classic(run: ClassicRun, case: Case) -> Row:
    arena = Arena(run.release, pages="4k" if run.pages == "4k" else "auto", threads=run.threads, idle_s=1e6)
    prover = ClassicProver(
        case.key,
        r1cs=case.r1cs,
        backend=run.backend,
        threads=run.threads,
        release=run.release,
        arena=arena,
        host_copies=run.host_copies,
        keep=run.policy == CONTROL,
    )
    prover.prove([case.synthesise()], blinding_for_tests=BLINDING)  # a first proof makes tables and starts threads
    prover.kept.clear()
    arena.drain(600)

    probes, moments = Probes(), Moments()
    started = time.monotonic_ns()
    statements = [prover.state(case.synthesise()) for _ in range(run.circuits)]
    box = [[prover.evaluate(statement) for statement in statements]]
    n_bytes = sum(v.limbs.nbytes for circuit in box[0] for v in circuit)
    timeline = _timeline(run)
    with timeline or nullcontext():
        moments.begun = time.monotonic_ns()
        proofs = prover.call(box, statements, lambda: BLINDING, moments)
        moments.back = time.monotonic_ns()
    row = _row(run, 2 * n_bytes, arena, moments, probes, case.key, proofs, started)
    _save(run, timeline)
    return row


def _measure_product(run: ClassicRun, case: Case) -> Row:
    moments = Moments()

    def call() -> list[Proof]:
        moments.entered = time.monotonic_ns()
        proofs = []
        for _ in range(run.circuits):
            witness, begin = case.synthesise(), time.monotonic_ns()
            pending = prover.start(witness, blinding_for_tests=BLINDING)
            moments.kernels_ns += time.monotonic_ns() - begin
            proofs.append(pending.finish())
        moments.work_done = moments.native_last = moments.native_back = moments.last = time.monotonic_ns()
        return proofs

    with Prover(case.key, r1cs=case.r1cs, backend=run.backend, threads=run.threads, release=run.release) as prover:
        prover.prove(case.synthesise())
        probes = Probes()
        timeline = _timeline(run)
        with timeline or nullcontext():
            moments.begun = time.monotonic_ns()
            proofs = call()
            moments.back = time.monotonic_ns()
        n_bytes = 3 * 32 * case.key.domain.size
        row = _row(run, n_bytes, prover.arena, moments, probes, case.key, proofs, moments.begun)
    _save(run, timeline)
    return row


def _timeline(run: ClassicRun) -> Timeline | None:
    """For the call, if the run asks for one."""
    return Timeline(f"{run.layout}, {run.policy}") if run.timeline else None


def _save(run: ClassicRun, timeline: Timeline | None) -> None:
    """As data and as a page, once all is measured: it takes a while."""
    if timeline is not None:
        for suffix in (".json", ".html"):
            timeline.save(run.timeline + suffix)


def _row(
    run: ClassicRun,
    n_bytes: int,
    arena: Arena,
    moments: Moments,
    probes: Probes,
    key: ProvingKey,
    proofs: list[Proof],
    started: int,
) -> Row:
    if not arena.drain(600):
        raise InternalError("a release did not end within ten minutes")
    reclaimed = time.monotonic_ns()
    end = max(reclaimed, moments.work_done + int(run.window_s * 1e9))
    wait_until(end)
    stalls = probes.stop(moments.work_done, end)
    checking = time.monotonic_ns()
    for proof in proofs:
        if not verify(key.verifying_key, proof):
            raise InternalError(f"a proof under {run.policy} does not verify")
    checked = time.monotonic_ns()
    return {
        "policy": run.policy,
        "side": "both",
        "layout": run.layout,
        "backend": run.backend,
        "pages": run.pages,
        "secret": True,
        "circuits": run.circuits,
        "bytes": n_bytes,
        "kernels_s": moments.kernels_ns * 1e-9,
        **moments.seconds(reclaimed),
        "whole_s": (moments.back - started + checked - checking) * 1e-9,
        **stalls,
        "peak_rss_bytes": peak_rss_bytes(),
        "verified": len(proofs),
        "proofs_sha256": digest(proofs),
    }


def digest(proofs: Sequence[Proof]) -> str:
    """SHA-256 over the proofs as they are written to files."""
    return hashlib.sha256("".join(proof_to_json(proof) for proof in proofs).encode()).hexdigest()


if __name__ == "__main__":
    answer(lambda fields: json.dumps(measure(ClassicRun(**fields))))
