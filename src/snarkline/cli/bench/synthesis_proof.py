"""Whole proofs after synthesis constraint by constraint, with and without its cures, and by templates.

`python -m snarkline.cli.bench.synthesis_proof` reads a `SynthesisRun`, whose path is one of `PROOFS`, and prints a row.
"""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass

import numpy as np

from snarkline.backend import open_backend
from snarkline.backend.base import Backend, Domain
from snarkline.cli.bench.synthesis_run import (
    CURES,
    CURVE,
    TEMPLATES,
    Row,
    SynthesisRun,
    message_bits,
    n_blocks,
    sha256_chain,
)
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.errors import InternalError, SecurityWarning
from snarkline.groth16 import prove
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.groth16.products import Evaluation
from snarkline.groth16.prover import Prover
from snarkline.groth16.setup import setup
from snarkline.groth16.verify import verify
from snarkline.memory import Arena
from snarkline.memory.fresh import answer
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import run_program
from snarkline.r1cs.synthesis import Bytes, ClassicAssignment, synthesize_sha256_chain

PROOFS = ("classic", "classic, all cures", TEMPLATES)
BLINDING = (3, 5)


@dataclass(frozen=True)
class MadeProducts:
    """a, b and c that a synthesis made, without the row that binds wire 0."""

    assignment: ClassicAssignment
    w: FrVector

    def evaluate(self, backend: Backend, domain: Domain) -> Evaluation:
        """Copies on the domain."""
        made = self.assignment
        a, b, c = (self._padded(limbs, domain) for limbs in (made.a, made.b, made.c))
        a.limbs[len(made.a)] = FrVector.from_ints(CURVE, [1], Form.MONTGOMERY).limbs[0]
        return self.w, a, b, c

    def _padded(self, limbs: Limbs, domain: Domain) -> FrVector:
        out = np.zeros((domain.size, CURVE.fr_limbs), np.uint64)
        out[: len(limbs)] = limbs
        return FrVector(CURVE, out, Form.MONTGOMERY)


def measure(run: SynthesisRun) -> Row:
    """The fastest of some proofs in this process, after one that makes tables and starts threads."""
    blocks = n_blocks(run.log_size)
    system, bits = sha256_chain(blocks), message_bits(blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        key = setup(system, backend="cpu", threads=run.threads)
    prove_once = _by_templates if run.path == TEMPLATES else _classic
    prove_once(run, system, key, bits)
    made = [prove_once(run, system, key, bits) for _ in range(run.repeats)]
    if not all(verify(key.verifying_key, proof) for _, proof in made):
        raise InternalError(f"a proof after {run.path} does not verify")
    row = min((row for row, _ in made), key=lambda row: sum(row.values()))
    facts = {"path": run.path, "n_constraints": system.n_constraints, "threads": run.threads}
    return {**facts, **row, "total_s": sum(row.values())}


def _classic(run: SynthesisRun, system: StructuredR1CS, key: ProvingKey, bits: Bytes) -> tuple[dict[str, float], Proof]:
    arena = Arena()
    backend = open_backend("cpu", run.threads, arena).host
    moments = [time.perf_counter()]
    made = synthesize_sha256_chain(CURVE, bits, CURES[run.path])
    moments.append(time.perf_counter())
    w = FrVector(CURVE, np.concatenate([made.inputs, made.aux]), Form.MONTGOMERY)
    sums = prove.start(backend, key, MadeProducts(made, w))
    proof = prove.assemble(backend, key, sums, (), *BLINDING)
    moments.append(time.perf_counter())
    made.close()
    del w
    arena.close()
    moments.append(time.perf_counter())
    return _row(moments), proof


def _by_templates(
    run: SynthesisRun, system: StructuredR1CS, key: ProvingKey, bits: Bytes
) -> tuple[dict[str, float], Proof]:
    given = FrVector(CURVE, np.zeros((len(bits), CURVE.fr_limbs), np.uint64), Form.CANONICAL)
    given.limbs[:, 0] = bits
    prover = Prover(key, backend="cpu", threads=run.threads)
    moments = [time.perf_counter()]
    witness = run_program(system, given, threads=run.threads, arena=prover.arena)
    moments.append(time.perf_counter())
    proof = prover.prove(witness, blinding_for_tests=BLINDING)
    moments.append(time.perf_counter())
    del witness
    prover.close()
    moments.append(time.perf_counter())
    return _row(moments), proof


def _row(moments: list[float]) -> dict[str, float]:
    names = ("synthesis_s", "wrapper_s", "teardown_s")
    return {name: end - begin for name, begin, end in zip(names, moments, moments[1:], strict=False)}


if __name__ == "__main__":
    answer(lambda fields: json.dumps(measure(SynthesisRun(**fields))))
