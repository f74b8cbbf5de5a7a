"""A real proof in the classic layout, once per release policy: what `snarkline bench prove --release` measures.

Classic is how provers behind a language boundary are laid out: the caller holds a, b and c of every circuit as vectors
in host memory, hands them in and drops them when its own function returns; the inner function works on copies (on a
device: uploads), which are destroyed when it returns. `Prover`, the product's path, holds nothing of the kind: its row
is `PRODUCT`.

Every run has a process of its own: `python -m snarkline.cli.bench.classic` reads a `ClassicRun` and prints its row.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from snarkline import Proof, Prover, ProvingKey, Witness, load_proving_key, load_witness, verify
from snarkline.backend import open_backend
from snarkline.backend.base import Backend, Runner
from snarkline.curves.vector import FrVector
from snarkline.errors import InternalError, MismatchError
from snarkline.formats.circom import proof_to_json
from snarkline.groth16 import prove
from snarkline.groth16.products import FlatProducts
from snarkline.memory import Arena, Release
from snarkline.memory.experiment import CONTROL, Moments, Probes, Row, peak_rss_bytes, run_fresh, wait_until
from snarkline.r1cs.structured_witness import run_program

PRODUCT = "product"

# For tests only, and the same in every run: that is what makes proofs comparable byte by byte.
BLINDING = (3, 5)

Circuit = tuple[FrVector, FrVector, FrVector]


@dataclass(frozen=True)
class ClassicRun:
    """`policy`: a Release's value, "control" (releases nothing) or "product". `key`, `witness`: paths. `backend`: who
    transforms and sums, a name for `open_backend`; a, b and c always come from the CPU. `pages`: "4k" or "2m".
    `host_copies`: the inner function's vectors are host memory too where the backend is a device's. `sector_size`: the
    key is a .params file for the Proof-of-Replication of that size, and `witness` a C1 file."""

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

    @property
    def release(self) -> Release:
        return Release.RECYCLE if self.policy in (CONTROL, PRODUCT) else Release(self.policy)


def plan(policies: Sequence[str], base: ClassicRun) -> list[ClassicRun]:
    """The control, every policy, and the product's path."""
    return [ClassicRun(**{**asdict(base), "policy": policy}) for policy in (CONTROL, *policies, PRODUCT)]


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
    key, witness = load(run)
    if run.policy == PRODUCT:
        return _measure_product(run, key, witness)
    pages = "4k" if run.pages == "4k" else "auto"
    arena = Arena(run.release, pages=pages, threads=run.threads, idle_s=1e6)
    host = open_backend("cpu", run.threads, arena).host
    caller = _Caller(run, host, open_backend(run.backend, run.threads, arena), arena, key)
    caller.call([caller.evaluate(witness, 1)], witness, Moments())  # a first proof makes tables and starts threads
    arena.drain(600)

    box = [caller.evaluate(witness, run.circuits)]
    n_bytes = sum(v.limbs.nbytes for circuit in box[0] for v in circuit)
    probes, moments = Probes(), Moments()
    caller.kernels_s = 0.0
    moments.begun = time.monotonic_ns()
    proofs, kept = caller.call(box, witness, moments)
    moments.back = time.monotonic_ns()
    row = _row(run, 2 * n_bytes, arena, moments, probes, key, proofs, caller.kernels_s)
    del kept
    return row


def load(run: ClassicRun) -> tuple[ProvingKey, Witness]:
    """Key and witness; for a sector (`sector_size`) those of the first partition of its C1 output."""
    key = load_proving_key(run.key)
    if not run.sector_size:
        return key, load_witness(run.witness, curve=key.curve)
    from snarkline.filecoin.porep.c1 import load_phase1
    from snarkline.filecoin.porep.circuit import assignment, porep_circuit
    from snarkline.filecoin.registry import sector_size

    size = sector_size(run.sector_size)
    circuit = porep_circuit(size)
    given = assignment(load_phase1(run.witness, size), 0)
    return key.attach(circuit), run_program(circuit, given, threads=run.threads).expand()


class _Caller:
    """The side of the boundary that holds a, b and c."""

    def __init__(self, run: ClassicRun, host: Backend, runner: Runner, arena: Arena, key: ProvingKey) -> None:
        if key.matrices is None:
            raise MismatchError("the classic layout needs a key that carries its matrices (.zkey)")
        self._run, self._host, self._runner = run, host, runner
        self._arena, self._key, self._products = arena, key, FlatProducts(key.matrices.flatten())
        self.kernels_s = 0.0  # of the transforms and sums; uploads that they wait for are in it

    def evaluate(self, witness: Witness, circuits: int) -> list[Circuit]:
        w = witness.values
        return [prove.evaluate(self._host, self._key, self._products, w) for _ in range(circuits)]

    def call(self, box: list[list[Circuit]], witness: Witness, moments: Moments) -> tuple[list[Proof], object]:
        """The Python function around the inner one. It owns the caller's vectors, which its return drops."""
        vectors = box.pop()
        moments.entered = time.monotonic_ns()
        proofs, kept = self._runner.run(lambda backend: self._inner(backend, vectors, witness, moments))
        moments.native_back = time.monotonic_ns()
        _clear(self._run.release, vectors)
        moments.last = time.monotonic_ns()
        return proofs, (kept, vectors if self._keeps else None)

    def _inner(
        self, backend: Backend, vectors: list[Circuit], witness: Witness, moments: Moments
    ) -> tuple[list[Proof], object]:
        """All proofs, on vectors of its own, which are destroyed on the way out."""
        w = backend.resident(witness.values)
        public = witness.public(self._key.n_public)
        copies = [tuple(self._own(backend, v) for v in circuit) for circuit in vectors]
        proofs = []
        for circuit in copies:
            a, b, c = (backend.resident(v) for v in circuit)
            begin = time.monotonic_ns()
            h = prove.quotient(backend, self._key, a, b, c)
            sums = prove.commit(backend, self._key, w, h)
            self.kernels_s += (time.monotonic_ns() - begin) * 1e-9
            proofs.append(prove.assemble(backend, self._key, sums, public, *BLINDING))
        kept = (w, list(copies)) if self._keeps else None
        moments.work_done = time.monotonic_ns()
        if self._run.release in (Release.CLEAR, Release.CLEAR_CAPACITY):
            del circuit, a, b, c, h
            _clear(self._run.release, copies)
        moments.native_last = time.monotonic_ns()
        return proofs, kept

    def _own(self, backend: Backend, v: FrVector) -> FrVector:
        """The vector where the backend computes, or a copy for it, never the caller's."""
        resident = v if self._run.host_copies else backend.resident(v)
        if resident is not v:
            return resident
        limbs = self._arena.empty(v.limbs.shape, secret=True)
        np.copyto(limbs, v.limbs)
        return FrVector(v.curve, limbs, v.form)

    @property
    def _keeps(self) -> bool:
        return self._run.policy == CONTROL


def _clear(release: Release, circuits: list[Any]) -> None:
    """What a function does to its vectors before it returns: nothing, clear(), or clear() and shrink_to_fit()."""
    if release is Release.CLEAR:  # no elements, all of the capacity
        circuits[:] = [tuple(FrVector(v.curve, v.limbs[:0], v.form) for v in circuit) for circuit in circuits]
    elif release is Release.CLEAR_CAPACITY:
        circuits.clear()


def _measure_product(run: ClassicRun, key: ProvingKey, witness: Witness) -> Row:
    moments, kernels_s = Moments(), 0.0

    def call() -> list[Proof]:
        nonlocal kernels_s
        proofs = []
        moments.entered = time.monotonic_ns()
        for _ in range(run.circuits):
            begin = time.monotonic_ns()
            pending = prover.start(witness, blinding_for_tests=BLINDING)
            kernels_s += (time.monotonic_ns() - begin) * 1e-9
            proofs.append(pending.finish())
        moments.work_done = moments.native_last = moments.native_back = moments.last = time.monotonic_ns()
        return proofs

    with Prover(key, backend=run.backend, threads=run.threads) as prover:
        prover.prove(witness)
        probes = Probes()
        moments.begun = time.monotonic_ns()
        proofs = call()
        moments.back = time.monotonic_ns()
        return _row(run, 3 * 32 * key.domain.size, prover.arena, moments, probes, key, proofs, kernels_s)


def _row(
    run: ClassicRun,
    n_bytes: int,
    arena: Arena,
    moments: Moments,
    probes: Probes,
    key: ProvingKey,
    proofs: list[Proof],
    kernels_s: float,
) -> Row:
    if not arena.drain(600):
        raise InternalError("a release did not end within ten minutes")
    reclaimed = time.monotonic_ns()
    end = max(reclaimed, moments.work_done + int(run.window_s * 1e9))
    wait_until(end)
    stalls = probes.stop(moments.work_done, end)
    for proof in proofs:
        if not verify(key.verifying_key, proof):
            raise InternalError(f"a proof under {run.policy} does not verify")
    return {
        "policy": run.policy,
        "side": "both",
        "layout": PRODUCT if run.policy == PRODUCT else "classic",
        "backend": run.backend,
        "pages": run.pages,
        "secret": True,
        "circuits": run.circuits,
        "bytes": n_bytes,
        "kernels_s": kernels_s,
        **moments.seconds(reclaimed),
        **stalls,
        "peak_rss_bytes": peak_rss_bytes(),
        "verified": len(proofs),
        "proofs_sha256": digest(proofs),
    }


def digest(proofs: Sequence[Proof]) -> str:
    """SHA-256 over the proofs as they are written to files."""
    return hashlib.sha256("".join(proof_to_json(proof) for proof in proofs).encode()).hexdigest()


if __name__ == "__main__":
    print(json.dumps(measure(ClassicRun(**json.load(sys.stdin)))))
