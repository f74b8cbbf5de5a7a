"""Proofs in the classic layout: how provers behind a language boundary hold their vectors.

The caller holds a, b and c of every circuit of a call in host memory, hands them to an inner function and drops them
when its own function returns. The inner function works on copies, which are destroyed when it returns. `Prover` holds
nothing of the kind: this layout is there to be compared with it (docs/teardown.md), on real proofs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from snarkline.backend import open_backend
from snarkline.backend.base import Backend
from snarkline.curves.vector import FrVector
from snarkline.errors import InternalError
from snarkline.groth16 import prove
from snarkline.groth16.footprint import POINTS_AT_ONCE
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.groth16.match import assign_checked, with_matrices
from snarkline.groth16.products import Products, Three, written_out
from snarkline.groth16.verify import self_check
from snarkline.memory import Arena, Release
from snarkline.memory.moments import Moments
from snarkline.r1cs.matrices import R1CS
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.threads import usable_threads
from snarkline.trace import span

Blinding = Callable[[], tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Statement:
    """A witness as the stages of a proof take it, written out on the host, and its public inputs."""

    products: Products
    w: FrVector
    public: tuple[int, ...]


class ClassicProver:
    """Proves with one key, all circuits of a call together. A context manager.

    Arguments up to `release` are those of `Prover`. `arena` replaces the one of `release`. With `host_copies` the inner
    function's vectors are host memory too where a device computes; without, they are the device's. With `keep` nothing
    is released, for experiments: the attribute `kept` holds it. Raises what `Prover` raises.
    """

    def __init__(
        self,
        key: ProvingKey,
        *,
        r1cs: R1CS | StructuredR1CS | None = None,
        backend: str = "auto",
        threads: int | None = None,
        release: Release | str = Release.RECYCLE,
        arena: Arena | None = None,
        host_copies: bool = False,
        keep: bool = False,
    ) -> None:
        self.key, self._matrices = with_matrices(key, r1cs)
        self.r1cs = r1cs
        self.threads = threads if threads is not None else usable_threads()
        self.release = Release.of(release)
        self.arena = arena or Arena(self.release)
        work = prove.workload(self.key, self._matrices)
        self._runner = open_backend(backend, self.threads, self.arena, work=work)
        self._host_copies, self._keep = host_copies, keep
        self.kept: list[object] = []

    @property
    def note(self) -> str:
        """Where proofs are made, and why not elsewhere."""
        return self._runner.note

    def prove(
        self,
        witnesses: Sequence[Witness | StructuredWitness],
        *,
        blinding_for_tests: tuple[int, int] | None = None,
    ) -> list[Proof]:
        """A proof for each witness, all of one call and verified. Blinding is drawn for each of them.

        Raises what `Prover.start` raises for a witness, and InternalError if a proof does not verify: none is returned.
        """
        statements = [self.state(witness) for witness in witnesses]
        box = [[self.evaluate(statement) for statement in statements]]
        fixed = blinding_for_tests
        proofs = self.call(box, statements, (lambda: fixed) if fixed else lambda: prove.draw_blinding(self.key.curve))
        with span("self-check"):
            if not all(self_check(self.key.verifying_key, proof) for proof in proofs):
                raise InternalError("a proof does not verify; nothing was handed out")
        return proofs

    def state(self, witness: Witness | StructuredWitness) -> Statement:
        """A witness that fits the key and, with an `r1cs`, satisfies it. Raises what `Prover.start` raises."""
        key = self.key
        key.check_source()
        assigned = assign_checked(key, self.r1cs, self._matrices, witness, threads=self.threads, arena=self.arena)
        w = written_out(assigned.witness, threads=self.threads, arena=self.arena)
        return Statement(assigned.products, w, witness.public(key.n_public))

    def evaluate(self, statement: Statement) -> Three:
        """a, b and c, in host memory."""
        _, a, b, c = prove.evaluate(self._runner.host, self.key, statement.products)
        return a, b, c

    @span("wrapper")
    def call(
        self,
        box: list[list[Three]],
        statements: Sequence[Statement],
        blinding: Blinding,
        moments: Moments | None = None,
    ) -> list[Proof]:
        """The caller's function around the inner one. It takes its vectors, a, b, c of each statement, out of `box`, so
        that its return drops them; `moments` learns when it passed which statement."""
        moments = moments or Moments()
        vectors = box.pop()
        moments.entered = time.monotonic_ns()
        proofs = self._runner.run(lambda backend: self._inner(backend, vectors, statements, blinding, moments))
        moments.native_back = time.monotonic_ns()
        if self._keep:
            self.kept.append(vectors)
        _clear(self.release, vectors)
        moments.last = time.monotonic_ns()
        return proofs

    @span("inner")
    def _inner(
        self,
        backend: Backend,
        vectors: list[Three],
        statements: Sequence[Statement],
        blinding: Blinding,
        moments: Moments,
    ) -> list[Proof]:
        """All proofs, on vectors of its own, which are destroyed on the way out."""
        at_once = POINTS_AT_ONCE if backend.name == "cpu" else None
        with span("copy"):
            copies = [tuple(self._own(backend, v) for v in circuit) for circuit in vectors]
        if self._keep:
            self.kept.append(list(copies))
        proofs = []
        for circuit, statement in zip(copies, statements, strict=True):
            a, b, c = (backend.resident(v) for v in circuit)
            w, begin = backend.resident(statement.w), time.monotonic_ns()
            h = prove.quotient(backend, self.key, a, b, c)
            sums = prove.commit(backend, self.key, w, h, at_once)
            moments.kernels_ns += time.monotonic_ns() - begin
            proofs.append(prove.assemble(backend, self.key, sums, statement.public, *blinding()))
        moments.work_done = time.monotonic_ns()
        if self.release in (Release.CLEAR, Release.CLEAR_CAPACITY):
            del circuit, a, b, c, h, w
            _clear(self.release, copies)
        moments.native_last = time.monotonic_ns()
        return proofs

    def _own(self, backend: Backend, v: FrVector) -> FrVector:
        """The vector where the backend computes, or a copy for it, never the caller's."""
        resident = v if self._host_copies else backend.resident(v)
        if resident is not v:
            return resident
        limbs = self.arena.empty(v.limbs.shape, secret=True)
        step = -(-len(limbs) // self.threads)
        parts = [slice(begin, begin + step) for begin in range(0, len(limbs), step)]
        with ThreadPoolExecutor(self.threads) as copiers:  # NumPy copies without the GIL
            list(copiers.map(lambda part: np.copyto(limbs[part], v.limbs[part]), parts))
        return FrVector(v.curve, limbs, v.form)

    def close(self) -> None:
        """Give everything back."""
        self._runner.close()
        self.arena.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _clear(release: Release, circuits: list[Any]) -> None:
    """What a function does to its vectors before it returns: nothing, clear(), or clear() and shrink_to_fit()."""
    if release is Release.CLEAR:  # no elements, all of the capacity
        circuits[:] = [tuple(FrVector(v.curve, v.limbs[:0], v.form) for v in circuit) for circuit in circuits]
    elif release is Release.CLEAR_CAPACITY:
        circuits.clear()
