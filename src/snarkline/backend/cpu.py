"""The CPU backend: the compiled core's kernels on vectors from an arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

from snarkline.backend.base import Backend, Domain
from snarkline.curves.curve import Curve
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.memory import Arena
from snarkline.native import core
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness
from snarkline.trace import span

R = TypeVar("R")

FEW_POINTS = 64
"""A sum of fewer points is done by one thread: it takes less time than starting others."""


class CpuBackend:
    """Runs every operation on `threads` threads. Holds no state of a proof, so threads may share it.

    Vectors come from `arena` as secret leases: they depend on the witness or on toxic waste, and are wiped before
    their memory is used again.
    """

    name = "cpu"
    note = "on the CPU"

    def __init__(self, threads: int, arena: Arena, *, isa: str = "auto") -> None:
        self._executor: core.Executor | None = core.Executor(threads, isa)
        self._alone = core.Executor(1, isa)
        self._arena = arena

    def evaluate(self, matrix: SparseMatrix, w: FrVector, domain: Domain) -> FrVector:
        out = self._vector(w.curve, domain.size)
        self._core.spmv(w.curve.name, out.limbs[: matrix.n_rows], *_csr(matrix), w.limbs, w.form.value)
        _pad(out, matrix.n_rows)
        return out

    def evaluate_transposed(self, matrix: SparseMatrix, v: FrVector) -> FrVector:
        out = self._vector(v.curve, matrix.n_columns)
        self._core.spmv_transposed(v.curve.name, out.limbs, *_csr(matrix), v.limbs[: matrix.n_rows])
        return out

    def run_program(self, given: GivenValues, *, threads: int, arena: Arena) -> StructuredWitness | None:
        return None

    def begin_range_check(self, v: FrVector) -> Callable[[], bool]:
        index = self._core.first_not_below_modulus(v.curve.name, "fr", v.limbs)
        return lambda: index < 0

    def rows_hold(self, a: FrVector, b: FrVector, c: FrVector) -> bool:
        return np.array_equal(self.multiply(a, b).limbs, c.limbs)

    def evaluate_structured(
        self, w: StructuredWitness, domain: Domain, *, wires: FrVector | None = None
    ) -> tuple[FrVector, FrVector, FrVector, FrVector]:
        if wires is None:
            wires = w.expand(threads=self._core.threads, arena=self._arena).values
        a, b, c = (self._vector(w.curve, domain.size) for _ in range(3))
        n, bound = w.system.n_constraints, w.system.n_constraints + w.system.n_public + 1
        w.products((a.limbs[:n], b.limbs[:n], c.limbs[:n]), threads=self._core.threads)
        a.limbs[n:bound] = w.publics
        for vector, end in ((a, bound), (b, n), (c, n)):
            _pad(vector, end)
        return wires, a, b, c

    def evaluate_structured_transposed(
        self, matrices: StructuredMatrices, v: FrVector
    ) -> tuple[FrVector, FrVector, FrVector]:
        system = matrices.system
        a, b, c = (self._vector(v.curve, system.n_wires) for _ in range(3))
        n, n_bound = system.n_constraints, system.n_public + 1
        system.native.transposed(self._core.threads, v.limbs[:n], a.limbs, b.limbs, c.limbs)
        head = a.limbs[:n_bound]
        self._core.pointwise(v.curve.name, "fr", "add", head, head, np.ascontiguousarray(v.limbs[n : n + n_bound]))
        return a, b, c

    def resident(self, v: FrVector) -> FrVector:
        return v

    def select(self, v: FrVector, indices: core.U32) -> FrVector:
        out = self._arena.empty((len(indices), v.curve.fr_limbs), secret=True)
        # mode="clip" lets take write to `out` itself; "raise" goes through a copy.
        np.take(v.limbs, indices, axis=0, out=out, mode="clip")
        return FrVector(v.curve, out, v.form)

    def powers(self, curve: Curve, n: int, first: int, ratio: int) -> FrVector:
        out = self._vector(curve, n)
        self._core.powers(curve.name, out.limbs, _montgomery(curve, first), _montgomery(curve, ratio))
        return out

    def add(self, a: FrVector, b: FrVector) -> FrVector:
        self._core.pointwise(a.curve.name, "fr", "add", a.limbs, a.limbs, b.limbs)
        return a

    def multiply(self, a: FrVector, b: FrVector) -> FrVector:
        out = self._vector(a.curve, len(a))
        self._core.pointwise(a.curve.name, "fr", "mul", out.limbs, a.limbs, b.limbs)
        return out

    def multiply_subtract(self, a: FrVector, b: FrVector, c: FrVector) -> FrVector:
        self._core.mul_sub(a.curve.name, a.limbs, a.limbs, b.limbs, c.limbs)
        return a

    def scale(self, v: FrVector, factor: int) -> FrVector:
        self._core.pointwise(v.curve.name, "fr", "mul", v.limbs, v.limbs, _montgomery(v.curve, factor))
        return v

    def ntt(self, v: FrVector, domain: Domain, *, inverse: bool = False, shift: int = 1) -> FrVector:
        coset = None if shift == 1 else _montgomery(v.curve, shift)
        self._core.ntt(v.curve.name, v.limbs, _root(domain), coset, inverse)
        return v

    def coset_evaluations(self, v: FrVector, domain: Domain, shift: int) -> FrVector:
        self._core.coset_evaluations(v.curve.name, v.limbs, _root(domain), _montgomery(v.curve, shift))
        return v

    def msm(self, tables: Sequence[PointTable], scalars: FrVector) -> list[Point]:
        jobs = [(table.group.value, table.limbs) for table in tables]
        executor = self._core  # raises once the backend is closed
        if len(scalars) < FEW_POINTS:
            executor = self._alone
        sums = executor.msm(scalars.curve.name, jobs, scalars.limbs, scalars.form is Form.MONTGOMERY)
        return [PointTable(t.curve, t.group, s).point(0) for t, s in zip(tables, sums, strict=True)]

    def begin_msm(self, tables: Sequence[PointTable], scalars: FrVector) -> Callable[[], list[Point]]:
        points = self.msm(tables, scalars)
        return lambda: points

    def await_msms(self) -> None:
        """Nothing is left."""

    def fixed_base(self, base: Point, scalars: FrVector) -> PointTable:
        curve, group, canonical = base.curve, base.group, scalars.limbs
        if scalars.form is Form.MONTGOMERY:
            canonical = self._vector(curve, len(scalars)).limbs
            self._core.to_canonical(curve.name, "fr", canonical, scalars.limbs)
        out = self._arena.empty((len(scalars), curve.point_limbs(group)))
        bases = PointTable.from_points(curve, group, [base])
        self._core.fixed_base(curve.name, group.value, out, bases.limbs, canonical)
        return PointTable(curve, group, out)

    def run(self, work: Callable[[Backend], R]) -> R:
        return work(self)

    @property
    def host(self) -> Backend:
        return self

    def close(self) -> None:
        self._executor = None

    @property
    def _core(self) -> core.Executor:
        if self._executor is None:
            raise ValueError("the backend is closed")
        return self._executor

    def _vector(self, curve: Curve, n: int) -> FrVector:
        return FrVector(curve, self._arena.empty((n, curve.fr_limbs), secret=True), Form.MONTGOMERY)


@span("pad")
def _pad(vector: FrVector, n: int) -> None:
    """Zeros from element n on."""
    vector.limbs[n:] = 0


def _csr(matrix: SparseMatrix) -> tuple[Limbs, core.U32, core.U32, Limbs]:
    return matrix.row_start, matrix.column, matrix.value, matrix.coefficients.limbs


def _montgomery(curve: Curve, value: int) -> Limbs:
    return FrVector.from_ints(curve, [value], Form.MONTGOMERY).limbs


@cache
def _root(domain: Domain) -> Limbs:
    return _montgomery(domain.curve, domain.root)
