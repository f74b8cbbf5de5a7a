"""A resident prover: a proving key, a backend and its memory, kept from one proof to the next."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from snarkline.backend import open_backend
from snarkline.backend.base import Backend
from snarkline.curves.point import Point
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import InternalError, MismatchError, SnarklineError, UnsatisfiedError
from snarkline.groth16 import prove
from snarkline.groth16.beside import Helpers
from snarkline.groth16.footprint import POINTS_AT_ONCE, resident_bytes
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.groth16.match import assign_checked, names_of, require_satisfied, with_matrices
from snarkline.groth16.products import (
    Assignment,
    CheckedProducts,
    Products,
    RowsViolated,
    StructuredProducts,
    ValuesOutOfRange,
    assign,
    bind,
    written_out,
)
from snarkline.groth16.prove import Halfway, Sums
from snarkline.groth16.verify import self_check
from snarkline.memory import Arena, Release
from snarkline.r1cs.check import check_first_wire, check_shape, check_values
from snarkline.r1cs.matrices import R1CS, Matrices
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.threads import usable_threads
from snarkline.trace import span

if TYPE_CHECKING:
    from concurrent.futures import Future


class Prover:
    """Proves with one key. May be shared by threads, and is a context manager.

    `r1cs` is the circuit of the key: with it a witness that does not satisfy the circuit is refused before any curve
    work, and the constraint is named. It is required for a key without matrices. `backend`, `devices` and `gpu_memory`
    are those of `open_backend`, and `note` says where proofs are made, and why; `threads` None means as many as the
    process may run on; `release` is the release policy of the arena that the proofs' vectors come from, which is the
    attribute `arena`. `max_memory` caps the resident memory of the process, in bytes, while it makes one proof: sums
    then go over the points in slices, which takes longer. `repeated` counts the proofs that were computed a second time
    (`Pending.finish`).

    Raises MismatchError if `r1cs` cannot be the key's circuit, or is missing, and what `open_backend` raises.
    """

    def __init__(
        self,
        key: ProvingKey,
        *,
        r1cs: R1CS | StructuredR1CS | None = None,
        backend: str = "auto",
        threads: int | None = None,
        release: Release | str = Release.RECYCLE,
        max_memory: int | None = None,
        devices: Sequence[int] | None = None,
        gpu_memory: int | None = None,
    ) -> None:
        self.key, self._matrices = with_matrices(key, r1cs)
        self.r1cs = r1cs
        self.threads = threads if threads is not None else usable_threads()
        # A cap leaves no room for a pool, nor for buffers that wait for the release thread.
        self.arena = Arena(release if max_memory is None else Release.SYNC)
        work = prove.workload(self.key, self._matrices)
        self._runner = open_backend(
            backend, self.threads, self.arena, work=work, devices=devices, gpu_memory=gpu_memory
        )
        self.max_memory, self._helpers = max_memory, Helpers()
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False
        self.repeated = 0

    @property
    def note(self) -> str:
        """Where proofs are made, and why not elsewhere."""
        return self._runner.note

    def prove(
        self,
        witness: Witness | StructuredWitness | GivenValues,
        *,
        check: bool = True,
        blinding_for_tests: tuple[int, int] | None = None,
    ) -> Proof:
        """A proof that has been verified. Arguments and errors are those of `start` and `Pending.finish`."""
        with span("prove"):
            return self.start(witness, check=check, blinding_for_tests=blinding_for_tests).finish()

    def start(
        self,
        witness: Witness | StructuredWitness | GivenValues,
        *,
        check: bool = True,
        blinding_for_tests: tuple[int, int] | None = None,
    ) -> Pending:
        """Begin a proof: everything that needs the accelerator.

        `check=False` leaves out the constraint check where there is an `r1cs`; what `check_witness` checks and the
        proof itself are always checked. Raises MismatchError, FormatError or UnsatisfiedError for a witness that does
        not fit, and BudgetError, before any work, for a proof that does not fit `max_memory`. Of the values that a
        circuit is given the witness is computed, and checked, where that is fastest; errors are those of
        `run_program`, and the same as of the witness.
        """
        with self._in_use(), span("start"):
            self.key.check_source()
            if isinstance(witness, GivenValues):
                begun = self._start_given(witness, check, blinding_for_tests)
                if begun is not None:
                    return begun
                witness = witness.run(threads=self.threads, arena=self.arena)
            assigned, unchecked = self._admit(witness, self.r1cs if check else None)
            pending = Pending(self, assigned, blinding_for_tests)

            def before_sums() -> None:
                pending._blinded = None  # not what came of an attempt that failed
                pending._public = witness.public(self.key.n_public)

            pending._sums = self._begin_sums(assigned.products, unchecked, before_sums, pending._halfway)
            return pending

    def close(self) -> None:
        """Give everything back. Calls in progress in other threads end normally, the last of them gives back.

        Starting a proof afterwards raises, and so does finishing one.
        """
        with self._lock:
            self._closed = True
            self._give_back_if_idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise SnarklineError("the prover is closed")
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._give_back_if_idle()

    def _give_back_if_idle(self) -> None:
        if self._closed and self._running == 0:
            self._helpers.close()  # they compute with what the others give back
            self._runner.close()
            self.arena.close()

    def _start_given(self, given: GivenValues, check: bool, blinding: tuple[int, int] | None) -> Pending | None:
        """A proof whose witness is computed by an accelerator. None where the host is to compute it: it does better, or
        a constraint is violated, which it names."""
        system = self._matrices.system if isinstance(self._matrices, StructuredMatrices) else None
        checked = check and self.r1cs is not None
        if given.system is not system or (checked and self.r1cs is not system):
            return None

        def work(backend: Backend) -> Pending | None:
            witness = backend.run_program(given, threads=self.threads, arena=self.arena)
            if witness is None:
                return None
            products: Products = StructuredProducts(witness)
            products = CheckedProducts(products) if checked else products
            pending, points = Pending(self, given, blinding), self._points_at_once(backend, packed=True)
            try:
                pending._sums = prove.begin(
                    backend, self.key, products, points_at_once=points, halfway=pending._halfway
                )
            except RowsViolated:  # what is on the device goes before the session ends
                return None
            pending._public = tuple(FrVector(witness.curve, witness.publics, Form.MONTGOMERY).to_ints()[1:])
            return pending

        return self._runner.run(work)

    def _assigned(self, given: GivenValues) -> Assignment:
        witness = given.run(threads=self.threads, arena=self.arena)
        return assign(self._matrices, witness, threads=self.threads, arena=self.arena)

    def _admit(
        self, witness: Witness | StructuredWitness, r1cs: R1CS | StructuredR1CS | None
    ) -> tuple[Assignment, Witness | None]:
        """A witness for the key's matrices, and once more if its values are yet to be checked."""
        key, matrices, threads, arena = self.key, self._matrices, self.threads, self.arena
        if r1cs is not None or not (isinstance(witness, Witness) and isinstance(matrices, Matrices)):
            return assign_checked(key, r1cs, matrices, witness, threads=threads, arena=arena), None
        check_shape(witness, key.curve, key.n_wires)
        check_first_wire(witness)
        return assign(matrices, witness, threads=threads, arena=arena), witness

    @span("check witness")
    def _check_values(self, witness: Witness) -> None:
        check_values(witness, threads=self.threads)

    def _begin_sums(
        self,
        products: Products,
        unchecked: Witness | None = None,
        before_sums: Callable[[], None] = lambda: None,
        halfway: Halfway | None = None,
    ) -> Callable[[], Sums]:
        """`unchecked`: a witness whose values are checked first, on the accelerator where there is one. `before_sums`
        is called while that does what comes before the sums, and `halfway` during these. Elsewhere the first is called
        before all, and the other not at all."""

        def work(backend: Backend) -> Callable[[], Sums]:
            packed = isinstance(products, StructuredProducts) and products.wires is None
            begin = partial(prove.begin, backend, self.key, products)
            if backend.name == "cuda":
                points, late = self._points_at_once(backend, packed=packed), unchecked is not None
                try:
                    return begin(points_at_once=points, before_sums=before_sums, halfway=halfway, check_range=late)
                except ValuesOutOfRange:
                    if unchecked is not None:
                        self._check_values(unchecked)  # names the value
                    raise InternalError("the GPU found a value out of range that the host does not find") from None
            if unchecked is not None:
                self._check_values(unchecked)
            before_sums()
            return begin(points_at_once=self._points_at_once(backend, packed=packed))

        return self._runner.run(work)

    def _points_at_once(self, backend: Backend, *, packed: bool) -> int | None:
        """How many points a sum takes at a time; None leaves it to the backend."""
        if self.max_memory is None:
            return POINTS_AT_ONCE if backend.name == "cpu" else None
        self.arena.trim()
        sizes = prove.sizes(self.key, self.threads, packed=packed)
        return sizes.slice_within(self.max_memory, resident_bytes(), self.key.path)

    def _require_innocent(self, assigned: Assignment) -> None:
        """Raises where a proof that does not verify is the fault of the key's file, the witness or the circuit."""
        self.key.check_source()
        if self.r1cs is None:
            return
        require_satisfied(self.r1cs, assigned.witness, threads=self.threads, arena=self.arena)
        if self._other_circuit(self.r1cs, assigned.witness):
            ours, theirs = names_of(self.key, self.r1cs)
            raise MismatchError(f"{ours} is not that of {theirs}: they are of different circuits")

    def _count_repeated(self) -> None:
        with self._lock:
            self.repeated += 1
        message = "a proof did not verify, and did when it was computed again: the machine made a fault"
        warnings.warn(message, RuntimeWarning, stacklevel=4)

    def _other_circuit(self, r1cs: R1CS | StructuredR1CS, witness: Witness | StructuredWitness) -> bool:
        """Whether the key's matrices and the circuit's take different values on the witness."""
        w = written_out(witness, threads=self.threads, arena=self.arena)
        key, circuit = self._matrices.flatten(), bind(r1cs).flatten()
        backend, domain = self._runner.host, self.key.domain
        return any(
            not np.array_equal(backend.evaluate(ours, w, domain).limbs, backend.evaluate(theirs, w, domain).limbs)
            for ours, theirs in ((key.a, circuit.a), (key.b, circuit.b))
        )


class Pending:
    """A proof that needs the accelerator no more: what is left can overlap the next proof."""

    def __init__(self, prover: Prover, assigned: Assignment | GivenValues, blinding: tuple[int, int] | None) -> None:
        self._prover, self._assigned, self._blinding = prover, assigned, blinding
        self._blinded: Future[prove.Blinded] | None = None
        self._public: tuple[int, ...] = ()
        self._sums: Callable[[], Sums]

    def _halfway(self, a: Point, b1: Point, b2: Point) -> None:
        """Blinds what is known while the accelerator goes on."""
        host, key, drawn = self._prover._runner.host, self._prover.key, self._draw()
        self._blinded = self._prover._helpers.submit(lambda: prove.blind(host, key, a, b1, b2, *drawn))

    def finish(self) -> Proof:
        """Blind, assemble and verify.

        A proof that does not verify is computed once more, unless the circuit is known and the witness violates it: a
        fault of the machine passes. If that was it, a RuntimeWarning says so and `Prover.repeated` counts it.

        Raises UnsatisfiedError if the witness is the reason, or may be: without the circuit, when both attempts come
        to the same sums. Raises InternalError if they differ, or the circuit is satisfied. An invalid proof is never
        returned.
        """
        prover = self._prover
        with prover._in_use(), span("finish"):
            sums = self._sums()
            proof = self._assembled(sums, None if self._blinded is None else self._blinded.result())
            return proof if proof is not None else self._again(sums)

    def _draw(self) -> tuple[int, int]:
        return self._blinding or prove.draw_blinding(self._prover.key.curve)

    def _assembled(self, sums: Sums, blinded: prove.Blinded | None = None) -> Proof | None:
        """The proof, or None if it does not verify."""
        prover = self._prover
        if blinded is None:
            proof = prove.assemble(prover._runner.host, prover.key, sums, self._public, *self._draw())
        else:
            proof = prove.complete(prover._runner.host, prover.key, blinded, sums, self._public)
        with span("self-check"):
            return proof if self_check(prover.key.verifying_key, proof) else None

    @span("prove again")
    def _again(self, first: Sums) -> Proof:
        """The proof computed once more, after it did not verify: for a satisfied circuit that is a passing fault."""
        prover = self._prover
        assigned = self._assigned
        if isinstance(assigned, GivenValues):
            assigned = prover._assigned(assigned)
        prover._require_innocent(assigned)
        sums = prover._begin_sums(assigned.products)()
        proof = self._assembled(sums)
        if proof is not None:
            prover._count_repeated()
            return proof
        if prover.r1cs is None and sums == first:
            raise UnsatisfiedError(None, "give the .r1cs to learn which constraint")
        raise InternalError("the proof does not verify, twice in a row; nothing was handed out")
