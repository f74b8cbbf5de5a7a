"""Transforms of every instruction set against the reference, the definition and their own laws."""

from __future__ import annotations

import random
import signal
import threading
from functools import cache

import numpy as np
import pytest

from snarkline.backend.base import Domain
from snarkline.backend.reference import ReferenceBackend
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.native import core

CURVES = [BN254, BLS12_381]
ISAS = core.instruction_sets()
SMALL = range(13)  # sizes 1 to 4096
reference = ReferenceBackend()

every_curve = pytest.mark.parametrize("curve", CURVES, ids=repr)
every_isa = pytest.mark.parametrize("isa", ISAS)


def domain(curve: Curve, log_size: int) -> Domain:
    return Domain(curve, log_size, pow(curve.generator, (curve.r - 1) >> log_size, curve.r))


def vector(curve: Curve, values: list[int]) -> FrVector:
    return FrVector.from_ints(curve, values, Form.MONTGOMERY)


def element(curve: Curve, value: int) -> Limbs:
    return vector(curve, [value]).limbs


def edge_biased(curve: Curve, n: int, seed: int) -> list[int]:
    """0, 1, r - 1, powers of two and their neighbours, and uniform elements."""
    rng = random.Random(seed)
    edges = [0, 1, 2, curve.r - 1, curve.r - 2, (curve.r - 1) // 2, 1 << 52, (1 << 104) - 1, 1 << 253, (1 << 253) - 1]
    return [rng.choice(edges) if rng.random() < 0.5 else rng.randrange(curve.r) for _ in range(n)]


def uniform(curve: Curve, n: int, seed: int) -> FrVector:
    """Elements that are uniform enough for laws: random limbs, the top one kept below r's."""
    limbs = np.random.default_rng(seed).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    limbs[:, 3] %= np.uint64(curve.r >> 192)
    return FrVector(curve, limbs, Form.MONTGOMERY)


def transform(
    v: FrVector, d: Domain, *, isa: str = "auto", threads: int = 2, shift: int | None = None, inverse: bool = False
) -> FrVector:
    """The transform of a copy."""
    limbs = v.limbs.copy()
    coset = None if shift is None else element(v.curve, shift)
    core.Executor(threads, isa).ntt(v.curve.name, limbs, element(v.curve, d.root), coset, inverse)
    return FrVector(v.curve, limbs, v.form)


def coset_evaluations(v: FrVector, d: Domain, shift: int, *, isa: str = "auto", threads: int = 2) -> FrVector:
    limbs = v.limbs.copy()
    core.Executor(threads, isa).coset_evaluations(
        v.curve.name, limbs, element(v.curve, d.root), element(v.curve, shift)
    )
    return FrVector(v.curve, limbs, v.form)


def same(a: FrVector, b: FrVector) -> bool:
    return bool(np.array_equal(a.limbs, b.limbs))


@cache
def reference_results(
    curve: Curve, log_size: int
) -> tuple[FrVector, dict[tuple[int | None, bool], FrVector], FrVector]:
    """A vector, its transforms by (shift, inverse), its evaluations on a coset."""
    d = domain(curve, log_size)
    values = edge_biased(curve, d.size, seed=log_size)
    transforms = {
        (shift, inverse): reference.ntt(vector(curve, values), d, shift=shift or 1, inverse=inverse)
        for shift in (None, curve.generator)
        for inverse in (False, True)
    }
    return vector(curve, values), transforms, reference.coset_evaluations(vector(curve, values), d, curve.generator)


@every_isa
@every_curve
@pytest.mark.parametrize("log_size", SMALL)
def test_agrees_with_the_reference(curve, isa, log_size):
    d = domain(curve, log_size)
    v, transforms, on_coset = reference_results(curve, log_size)
    for (shift, inverse), expected in transforms.items():
        assert same(transform(v, d, isa=isa, shift=shift, inverse=inverse), expected)
    assert same(coset_evaluations(v, d, curve.generator, isa=isa), on_coset)


@every_isa
@every_curve
@pytest.mark.parametrize("log_size", [13, 14, 15, 16, 17, 19])
def test_is_polynomial_evaluation(curve, isa, log_size):
    """A sparse polynomial, so that single points are cheap to evaluate."""
    d, r, shift = domain(curve, log_size), curve.r, curve.generator
    n = d.size
    terms = {0: r - 1, 1: 1, 2: 5, n // 2 - 1: r - 3, n // 2: 1 << 200, n - 2: 7, n - 1: r - 1}
    v = FrVector(curve, np.zeros((n, 4), dtype=np.uint64), Form.MONTGOMERY)
    for degree, coefficient in terms.items():
        v.limbs[degree] = element(curve, coefficient)
    plain, shifted = transform(v, d, isa=isa), transform(v, d, isa=isa, shift=shift)
    assert same(coset_evaluations(plain, d, shift, isa=isa), shifted)
    some = sorted({0, 1, 2, 3, 7, 8, 9, n // 2 - 1, n // 2, n // 2 + 1, n - 8, n - 1, *range(5, n, n // 50)})
    for v, s in ((plain, 1), (shifted, shift)):
        found = FrVector(curve, v.limbs[some], v.form).to_ints()
        points = [s * pow(d.root, i, r) for i in some]
        assert found == [sum(c * pow(x, j, r) for j, c in terms.items()) % r for x in points]


@every_isa
@every_curve
@pytest.mark.parametrize(
    "log_size", [18, pytest.param(20, marks=pytest.mark.slow), pytest.param(23, marks=pytest.mark.slow)]
)
def test_inverse_undoes_forward(curve, isa, log_size):
    d = domain(curve, log_size)
    v = uniform(curve, d.size, seed=3)
    for shift in (None, 5):
        assert same(transform(transform(v, d, isa=isa, shift=shift), d, isa=isa, shift=shift, inverse=True), v)
    back = coset_evaluations(coset_evaluations(v, d, 5, isa=isa), d, pow(5, -1, curve.r), isa=isa)
    assert same(back, v)


@every_isa
@every_curve
@pytest.mark.parametrize("edge", ["zero", "one", "greatest"])
@pytest.mark.parametrize("log_size", [3, 9, 14])
def test_constant_values_give_a_constant_polynomial(curve, isa, edge, log_size):
    value = {"zero": 0, "one": 1, "greatest": curve.r - 1}[edge]
    d = domain(curve, log_size)
    v = FrVector(curve, np.repeat(element(curve, value), d.size, axis=0), Form.MONTGOMERY)
    coefficients = transform(v, d, isa=isa, inverse=True)
    assert FrVector(curve, coefficients.limbs[:1], v.form).to_ints() == [value]
    assert not coefficients.limbs[1:].any()
    assert same(transform(coefficients, d, isa=isa), v)
    assert same(coset_evaluations(v, d, 3, isa=isa), v)


@every_isa
@every_curve
def test_greatest_limbs_stay_in_range(curve, isa):
    """Montgomery forms at the top of the range, which drive the lazily reduced values to their bounds."""
    d = domain(curve, 10)
    top = [curve.r - 1 - i % 3 for i in range(d.size)]
    v = FrVector(curve, FrVector.from_ints(curve, top).limbs, Form.MONTGOMERY)
    expected = reference.ntt(FrVector(curve, v.limbs.copy(), v.form), d)
    assert same(transform(v, d, isa=isa), expected)


@every_isa
@every_curve
def test_is_linear(curve, isa):
    d, executor = domain(curve, 13), core.Executor(2, isa)
    a, b, factor = uniform(curve, d.size, 1), uniform(curve, d.size, 2), element(curve, curve.r - 12345)

    def combine(x: FrVector, y: FrVector) -> FrVector:
        out = np.empty_like(x.limbs)
        executor.pointwise(curve.name, "fr", "mul", out, x.limbs, factor)
        executor.pointwise(curve.name, "fr", "add", out, out, y.limbs)
        return FrVector(curve, out, x.form)

    images = [transform(v, d, isa=isa, shift=9) for v in (a, b, combine(a, b))]
    assert same(images[2], combine(images[0], images[1]))


@every_isa
@every_curve
@pytest.mark.parametrize("log_size", [7, 11, 15])
def test_number_of_threads_does_not_matter(curve, isa, log_size):
    d = domain(curve, log_size)
    v = uniform(curve, d.size, 4)
    one = [transform(v, d, isa=isa, threads=1, shift=11), coset_evaluations(v, d, 11, isa=isa, threads=1)]
    for threads in (2, 5):
        assert same(transform(v, d, isa=isa, threads=threads, shift=11), one[0])
        assert same(coset_evaluations(v, d, 11, isa=isa, threads=threads), one[1])


@every_curve
@pytest.mark.parametrize("pattern", ["uniform", "greatest", "greatest and zero", "one greatest", "edges"])
@pytest.mark.parametrize("log_size", [6, 11, 16])
def test_instruction_sets_agree(curve, log_size, pattern):
    """At the ends of the range, which drive lazily reduced values to their bounds."""
    d = domain(curve, log_size)
    v = uniform(curve, d.size, 5)
    greatest = FrVector.from_ints(curve, [curve.r - 1]).limbs[0]
    if pattern == "greatest":
        v.limbs[:] = greatest
    elif pattern == "greatest and zero":
        v.limbs[:], v.limbs[::3] = greatest, 0
    elif pattern == "one greatest":
        v.limbs[:], v.limbs[d.size - 2] = 0, greatest
    elif pattern == "edges":
        edges = FrVector.from_ints(curve, edge_biased(curve, 64, 1)).limbs
        v.limbs[:] = edges[np.random.default_rng(2).integers(0, 64, d.size)]
    shift = curve.r - 7
    for run in (
        lambda isa: coset_evaluations(v, d, shift, isa=isa),
        lambda isa: transform(v, d, shift=shift, isa=isa),
        lambda isa: transform(v, d, shift=shift, inverse=True, isa=isa),
    ):
        results = [run(isa) for isa in ISAS]
        assert all(same(result, results[0]) for result in results)
        assert core.Executor(1).first_not_below_modulus(curve.name, "fr", results[0].limbs) == -1


@every_curve
def test_any_primitive_root_serves(curve):
    """Keys of different tools generate the same domain by different roots."""
    d = domain(curve, 8)
    other = Domain(curve, 8, pow(d.root, 77, curve.r))
    values = edge_biased(curve, 256, 6)
    expected = reference.ntt(vector(curve, values), other)
    assert same(transform(vector(curve, values), other), expected)


def test_refuses_sizes_that_are_no_domain():
    executor, one = core.Executor(1), element(BN254, 1)
    for n in (0, 3, 6, 1000):
        with pytest.raises(ValueError, match="data"):
            executor.ntt("bn254", np.zeros((n, 4), dtype=np.uint64), one, None, False)


@every_isa
def test_interrupt_stops_the_kernel(isa):
    """Ctrl-C in a transform raises KeyboardInterrupt soon, and the executor works afterwards."""
    d = domain(BN254, 20)
    v = uniform(BN254, d.size, 7)
    executor = core.Executor(1, isa)
    root, shift = element(BN254, d.root), element(BN254, 5)
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        for _ in range(1000):
            executor.coset_evaluations("bn254", v.limbs, root, shift)
    timer.join()
    small = domain(BN254, 4)
    assert same(transform(uniform(BN254, 16, 8), small, isa=isa), reference.ntt(uniform(BN254, 16, 8), small))
