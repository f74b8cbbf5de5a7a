"""The reference backend against py_ecc's curves and the definitions of its operations."""

from __future__ import annotations

import numpy as np
import py_ecc.bls12_381 as ecc_bls
import py_ecc.bn128 as ecc_bn
import pytest
from py_ecc.fields import bls12_381_FQ, bls12_381_FQ2, bn128_FQ, bn128_FQ2

from snarkline.backend.base import Domain
from snarkline.backend.reference import ReferenceBackend, add_points, multiply_point
from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, ints_to_limbs
from snarkline.r1cs.matrices import SparseMatrix

CURVES = [BN254, BLS12_381]
FIELDS = {"bn254": (bn128_FQ, bn128_FQ2), "bls12_381": (bls12_381_FQ, bls12_381_FQ2)}
ECC = {"bn254": ecc_bn, "bls12_381": ecc_bls}
backend = ReferenceBackend()


def to_ecc(p: Point):
    fq, fq2 = FIELDS[p.curve.name]
    if p.is_infinity:
        return None
    return (fq(p.x), fq(p.y)) if p.group is Group.G1 else (fq2(list(p.x)), fq2(list(p.y)))


def scalars(curve: Curve, values: list[int], form: Form = Form.MONTGOMERY) -> FrVector:
    return FrVector.from_ints(curve, values, form)


def domain(curve: Curve, log_size: int) -> Domain:
    return Domain(curve, log_size, pow(curve.generator, (curve.r - 1) >> log_size, curve.r))


@pytest.mark.parametrize("group", Group)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_point_multiples_are_those_of_py_ecc(curve, group):
    g = Point.generator(curve, group)
    base = to_ecc(g)
    for scalar in [
        0,
        1,
        2,
        3,
        7,
        1 << 64,
        (1 << 128) - 1,
        curve.r - 1,
        curve.r,
        curve.r + 1,
        0x1234567890ABCDEF << 180,
    ]:
        assert to_ecc(multiply_point(g, scalar)) == ECC[curve.name].multiply(base, scalar)


@pytest.mark.parametrize("group", Group)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_addition_of_infinity_equal_and_opposite_points(curve, group):
    g, zero = Point.generator(curve, group), Point.infinity(curve, group)
    minus = multiply_point(g, curve.r - 1)
    assert add_points(g, zero) == g == add_points(zero, g)
    assert add_points(zero, zero) == zero
    assert add_points(g, minus) == zero
    assert to_ecc(add_points(g, g)) == ECC[curve.name].double(to_ecc(g))
    assert to_ecc(minus) == ECC[curve.name].neg(to_ecc(g))


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_msm_is_the_multiple_by_the_sum_of_logarithms(curve, form):
    logs, weights = [5, 0, curve.r - 1, 11, 3], [curve.r - 2, 9, 4, 0, 1 << 200]
    total = sum(x * y for x, y in zip(logs, weights, strict=True)) % curve.r
    tables = [backend.fixed_base(Point.generator(curve, group), scalars(curve, logs, form)) for group in Group]
    assert tables[0].point(1).is_infinity
    sums = backend.msm(tables, scalars(curve, weights, form))
    for group, result in zip(Group, sums, strict=True):
        g = Point.generator(curve, group)
        assert to_ecc(result) == ECC[curve.name].multiply(to_ecc(g), total)


def test_msm_of_nothing_is_infinity():
    empty = PointTable.from_points(BN254, Group.G2, [])
    assert backend.msm([empty], scalars(BN254, [])) == [Point.infinity(BN254, Group.G2)]


@pytest.mark.parametrize("log_size", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_ntt_is_evaluation_on_the_shifted_domain(curve, log_size):
    d, r = domain(curve, log_size), curve.r
    coefficients = [(r - 1, 0, 1, 1 << 255)[i % 4] + i * i for i in range(d.size)]
    for shift in (1, 7, r - 1):
        v = scalars(curve, coefficients)
        out = backend.ntt(v, d, shift=shift)
        assert out is v
        points = [shift * pow(d.root, i, r) for i in range(d.size)]
        assert v.to_ints() == [sum(c * pow(x, j, r) for j, c in enumerate(coefficients)) % r for x in points]
        assert backend.ntt(v, d, inverse=True, shift=shift).to_ints() == [c % r for c in coefficients]


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_coset_evaluations_are_those_of_the_interpolated_polynomial(curve):
    d, r = domain(curve, 3), curve.r
    coefficients = [3, 0, r - 1, 5, 0, 0, 1 << 200, 9]
    values = scalars(curve, coefficients)
    backend.ntt(values, d)
    expected = [sum(c * pow(7 * d.root**i, j, r) for j, c in enumerate(coefficients)) % r for i in range(8)]
    assert backend.coset_evaluations(values, d, 7).to_ints() == expected


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_vector_operations(curve):
    r = curve.r
    a, b, c = [0, 1, r - 1, 5], [r - 1, r - 1, r - 1, 0], [1, 0, 2, 3]
    assert backend.add(scalars(curve, a), scalars(curve, b)).to_ints() == [r - 1, 0, r - 2, 5]
    assert backend.multiply(scalars(curve, a), scalars(curve, b)).to_ints() == [0, r - 1, 1, 0]
    difference = backend.multiply_subtract(scalars(curve, a), scalars(curve, b), scalars(curve, c))
    assert difference.to_ints() == [r - 1, r - 1, r - 1, r - 3]
    assert backend.scale(scalars(curve, a), r - 1).to_ints() == [0, r - 1, 1, r - 5]
    assert backend.powers(curve, 4, 3, r - 1).to_ints() == [3, r - 3, 3, r - 3]


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_products_with_a_sparse_matrix(curve):
    r = curve.r
    matrix = SparseMatrix(  # rows: (), (w2 - w0 + 0 w1), (5 w1)
        n_columns=3,
        row_start=np.array([0, 0, 3, 4], dtype=np.uint64),
        column=np.array([2, 0, 1, 1], dtype=np.uint32),
        value=np.array([0, 1, 2, 3], dtype=np.uint32),
        coefficients=scalars(curve, [1, r - 1, 0, 5]),
    )
    w = scalars(curve, [1, 10, 100], Form.CANONICAL)
    product = backend.evaluate(matrix, w, domain(curve, 2))
    assert product.form is Form.MONTGOMERY
    assert product.to_ints() == [0, 99, 50, 0]
    assert backend.evaluate_transposed(matrix, scalars(curve, [7, 11, 13])).to_ints() == [r - 11, 65, 11]


def test_results_are_limbs_below_the_modulus():
    v = scalars(BN254, [BN254.r - 1, 0])
    backend.add(v, v)
    assert (v.limbs == ints_to_limbs([(BN254.r - 2) * (1 << 256) % BN254.r, 0], 4)).all()
