"""The reference backend: every operation from its definition, in Python integers. Slow; the oracle of all others.

Points are added in affine coordinates by chord and tangent (Silverman, The Arithmetic of Elliptic Curves, III.2.3).
Both groups use one set of formulas: a coordinate is c0 + c1 u in Fp2 = Fp[u]/(u^2 + 1), with c1 = 0 in G1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from snarkline.backend.base import Backend, Domain, transposed_of_flat
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, limbs_to_ints
from snarkline.memory import Arena
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness

Fp2 = tuple[int, int]
R = TypeVar("R")


class ReferenceBackend:
    """Follows `backend.base.Backend`. Nothing is kept between calls."""

    name = "reference"
    note = "by the reference"

    def evaluate(self, matrix: SparseMatrix, w: FrVector, domain: Domain) -> FrVector:
        values = w.to_ints()
        out = [0] * domain.size
        for k in range(matrix.n_rows):
            out[k] = sum(coefficient * values[column] for column, coefficient in matrix.row(k))
        return _montgomery(w.curve, out)

    def evaluate_transposed(self, matrix: SparseMatrix, v: FrVector) -> FrVector:
        values = v.to_ints()
        out = [0] * matrix.n_columns
        for k in range(matrix.n_rows):
            for column, coefficient in matrix.row(k):
                out[column] += coefficient * values[k]
        return _montgomery(v.curve, out)

    def run_program(self, given: GivenValues, *, threads: int, arena: Arena) -> StructuredWitness | None:
        return None

    def begin_range_check(self, v: FrVector) -> Callable[[], bool]:
        return lambda: all(value < v.curve.r for value in limbs_to_ints(v.limbs))

    def rows_hold(self, a: FrVector, b: FrVector, c: FrVector) -> bool:
        return np.array_equal(self.multiply(a, b).limbs, c.limbs)

    def evaluate_structured(
        self, w: StructuredWitness, domain: Domain, *, wires: FrVector | None = None
    ) -> tuple[FrVector, FrVector, FrVector, FrVector]:
        values, flat = wires or w.expand(threads=1).values, StructuredMatrices(w.system).flatten()
        assert flat.c is not None
        a, b, c = (self.evaluate(matrix, values, domain) for matrix in (flat.a, flat.b, flat.c))
        return values, a, b, c

    def evaluate_structured_transposed(
        self, matrices: StructuredMatrices, v: FrVector
    ) -> tuple[FrVector, FrVector, FrVector]:
        return transposed_of_flat(self, matrices, v)

    def resident(self, v: FrVector) -> FrVector:
        return v

    def select(self, v: FrVector, indices: npt.NDArray[np.uint32]) -> FrVector:
        return FrVector(v.curve, v.limbs[indices], v.form)

    def powers(self, curve: Curve, n: int, first: int, ratio: int) -> FrVector:
        return _montgomery(curve, [first * pow(ratio, i, curve.r) for i in range(n)])

    def add(self, a: FrVector, b: FrVector) -> FrVector:
        return _assign(a, [x + y for x, y in zip(a.to_ints(), b.to_ints(), strict=True)])

    def multiply(self, a: FrVector, b: FrVector) -> FrVector:
        return _montgomery(a.curve, [x * y for x, y in zip(a.to_ints(), b.to_ints(), strict=True)])

    def multiply_subtract(self, a: FrVector, b: FrVector, c: FrVector) -> FrVector:
        columns = zip(a.to_ints(), b.to_ints(), c.to_ints(), strict=True)
        return _assign(a, [x * y - z for x, y, z in columns])

    def scale(self, v: FrVector, factor: int) -> FrVector:
        return _assign(v, [factor * x for x in v.to_ints()])

    def ntt(self, v: FrVector, domain: Domain, *, inverse: bool = False, shift: int = 1) -> FrVector:
        r = domain.curve.r
        if inverse:
            scaled = interpolate(v.to_ints(), domain.root, r)
            return _assign(v, [x * pow(shift, -i, r) for i, x in enumerate(scaled)])
        return _assign(v, evaluate([x * pow(shift, i, r) for i, x in enumerate(v.to_ints())], domain.root, r))

    def coset_evaluations(self, v: FrVector, domain: Domain, shift: int) -> FrVector:
        return self.ntt(self.ntt(v, domain, inverse=True), domain, shift=shift)

    def msm(self, tables: Sequence[PointTable], scalars: FrVector) -> list[Point]:
        sums = []
        for table in tables:
            total = Point.infinity(table.curve, table.group)
            for point, scalar in zip(table.to_points(), scalars.to_ints(), strict=True):
                total = add_points(total, multiply_point(point, scalar))
            sums.append(total)
        return sums

    def begin_msm(self, tables: Sequence[PointTable], scalars: FrVector) -> Callable[[], list[Point]]:
        points = self.msm(tables, scalars)
        return lambda: points

    def await_msms(self) -> None:
        """Nothing is left."""

    def fixed_base(self, base: Point, scalars: FrVector) -> PointTable:
        return PointTable.from_points(base.curve, base.group, [multiply_point(base, s) for s in scalars.to_ints()])

    def run(self, work: Callable[[Backend], R]) -> R:
        return work(self)

    @property
    def host(self) -> Backend:
        return self

    def close(self) -> None:
        pass


def evaluate(coefficients: list[int], root: int, r: int) -> list[int]:
    """p(1), p(root), p(root^2), ...: by p(x) = even(x^2) + x odd(x^2). The order of `root` is the length."""
    n = len(coefficients)
    if n == 1:
        return [coefficients[0] % r]
    even = evaluate(coefficients[0::2], root * root % r, r)
    odd = evaluate(coefficients[1::2], root * root % r, r)
    values, x = [], 1
    for i in range(n):
        values.append((even[i % (n // 2)] + x * odd[i % (n // 2)]) % r)
        x = x * root % r
    return values


def interpolate(values: list[int], root: int, r: int) -> list[int]:
    """The coefficients that `evaluate` takes to `values`: evaluation at the inverse root, divided by the length."""
    unit = pow(len(values), -1, r)
    return [unit * x % r for x in evaluate(values, pow(root, -1, r), r)]


def add_points(p: Point, q: Point) -> Point:
    """p + q."""
    if p.is_infinity:
        return q
    if q.is_infinity:
        return p
    m = p.curve.q
    (x1, y1), (x2, y2) = _fp2_coordinates(p), _fp2_coordinates(q)
    if x1 == x2:
        if _sub(y1, y2, m) != (0, 0) or y1 == (0, 0):
            return Point.infinity(p.curve, p.group)
        slope = _mul(_mul((3, 0), _mul(x1, x1, m), m), _inverse(_sub(y1, _sub((0, 0), y1, m), m), m), m)
    else:
        slope = _mul(_sub(y2, y1, m), _inverse(_sub(x2, x1, m), m), m)
    x3 = _sub(_sub(_mul(slope, slope, m), x1, m), x2, m)
    y3 = _sub(_mul(slope, _sub(x1, x3, m), m), y1, m)
    if p.group is Group.G1:
        return Point(p.curve, p.group, x3[0], y3[0])
    return Point(p.curve, p.group, x3, y3)


def multiply_point(p: Point, scalar: int) -> Point:
    """scalar * p for scalar >= 0, by doubling and adding from the highest bit down."""
    total = Point.infinity(p.curve, p.group)
    for bit in bin(scalar)[2:]:
        total = add_points(total, total)
        if bit == "1":
            total = add_points(total, p)
    return total


def _montgomery(curve: Curve, values: list[int]) -> FrVector:
    return FrVector.from_ints(curve, values, Form.MONTGOMERY)


def _assign(v: FrVector, values: list[int]) -> FrVector:
    v.limbs[:] = FrVector.from_ints(v.curve, values, v.form).limbs
    return v


def _fp2_coordinates(p: Point) -> tuple[Fp2, Fp2]:
    c = p.coordinates()
    return ((c[0], 0), (c[1], 0)) if p.group is Group.G1 else ((c[0], c[1]), (c[2], c[3]))


def _sub(a: Fp2, b: Fp2, m: int) -> Fp2:
    return (a[0] - b[0]) % m, (a[1] - b[1]) % m


def _mul(a: Fp2, b: Fp2, m: int) -> Fp2:
    return (a[0] * b[0] - a[1] * b[1]) % m, (a[0] * b[1] + a[1] * b[0]) % m


def _inverse(a: Fp2, m: int) -> Fp2:
    """(c0 - c1 u) / (c0^2 + c1^2)."""
    unit = pow(a[0] * a[0] + a[1] * a[1], -1, m)
    return a[0] * unit % m, -a[1] * unit % m
