"""Field arithmetic of every instruction set against Python integers, on values biased to the edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snarkline.curves.curve import CURVES
from snarkline.curves.vector import Limbs, ints_to_limbs, limbs_to_ints
from snarkline.native import core


@dataclass(frozen=True)
class FieldFacts:
    curve: str
    name: str
    p: int
    limbs: int

    @property
    def radix(self) -> int:
        return 1 << (64 * self.limbs)

    def elements(self) -> st.SearchStrategy[int]:
        """[0, p): the ends, powers of two and their neighbours, words of all ones or all zeros, uniform."""
        p, bits = self.p, self.p.bit_length()
        ends = st.integers(0, 3).flatmap(lambda k: st.sampled_from([k, p - 1 - k]))
        middle = st.sampled_from([p // 2, p // 2 + 1, self.radix % p, self.radix**2 % p, p - self.radix % p])
        powers = st.builds(lambda k, d: ((1 << k) + d) % p, st.integers(0, bits), st.integers(-1, 1))
        word = st.sampled_from([0, 1, (1 << 64) - 1, 1 << 63, (1 << 63) - 1]) | st.integers(0, (1 << 64) - 1)
        words = st.lists(word, min_size=self.limbs, max_size=self.limbs).map(
            lambda ws: sum(w << (64 * i) for i, w in enumerate(ws)) % p
        )
        return ends | middle | powers | words | st.integers(0, p - 1)

    def pairs(self) -> st.SearchStrategy[list[tuple[int, int]]]:
        """Pairs of elements, equal and opposite ones among them."""
        a = self.elements()
        same, opposite = a.map(lambda x: (x, x)), a.map(lambda x: (x, -x % self.p))
        return st.lists(st.tuples(a, a) | same | opposite, min_size=1, max_size=40)


FIELDS = [
    FieldFacts(c.name, name, p, n)
    for c in CURVES.values()
    for name, p, n in (("fr", c.r, c.fr_limbs), ("fp", c.q, c.fp_limbs))
]
CASES = [
    pytest.param(field, core.Executor(1, isa), id=f"{field.curve}-{field.name}-{isa}")
    for field, isa in product(FIELDS, core.instruction_sets())
]
every_field = pytest.mark.parametrize(("field", "executor"), CASES)


def pointwise(executor: core.Executor, field: FieldFacts, op: str, a: list[int], b: list[int]) -> list[int]:
    x, y = ints_to_limbs(a, field.limbs), ints_to_limbs(b, field.limbs)
    out = np.empty_like(x)
    executor.pointwise(field.curve, field.name, op, out, x, y)
    return limbs_to_ints(out)


@every_field
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_operations(field: FieldFacts, executor: core.Executor, data: st.DataObject) -> None:
    """Sums, differences and products are those of integers; a product is divided by the radix (Montgomery)."""
    pairs = data.draw(field.pairs())
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    p, unit = field.p, pow(field.radix, -1, field.p)
    assert pointwise(executor, field, "add", a, b) == [(x + y) % p for x, y in pairs]
    assert pointwise(executor, field, "sub", a, b) == [(x - y) % p for x, y in pairs]
    assert pointwise(executor, field, "mul", a, b) == [x * y * unit % p for x, y in pairs]
    assert pointwise(executor, field, "mul", a, a) == [x * x * unit % p for x in a]
    assert pointwise(executor, field, "add", a, a) == [2 * x % p for x in a]


@every_field
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_forms_and_inverses(field: FieldFacts, executor: core.Executor, data: st.DataObject) -> None:
    """To Montgomery form and back; Montgomery times canonical is canonical; x * (1 / x) = 1, and 0 stays 0."""
    values = data.draw(st.lists(field.elements(), min_size=1, max_size=40))
    p, r = field.p, field.radix
    limbs = ints_to_limbs(values, field.limbs)
    executor.from_canonical(field.curve, field.name, limbs, limbs)
    assert limbs_to_ints(limbs) == [x * r % p for x in values]
    mixed = pointwise(executor, field, "mul", limbs_to_ints(limbs), values)
    assert mixed == [x * x % p for x in values]

    inverses = limbs.copy()
    executor.batch_inverse(field.curve, field.name, inverses)
    assert limbs_to_ints(inverses) == [pow(x, -1, p) * r % p if x else 0 for x in values]
    executor.to_canonical(field.curve, field.name, limbs, limbs)
    assert limbs_to_ints(limbs) == values


def mixed_values(field: FieldFacts, n: int) -> list[int]:
    """n elements with zeros at both ends and in the middle."""
    rng = np.random.default_rng(n)
    values = [int.from_bytes(rng.bytes(8 * field.limbs), "little") % field.p for _ in range(n)]
    for i in {0, n // 2, n - 1}:
        values[i] = 0
    return values


@every_field
@pytest.mark.parametrize("n", [1, 2, 3, 1023, 1024, 1025, 9000])
def test_long_arrays_on_threads(field: FieldFacts, executor: core.Executor, n: int) -> None:
    """Pieces of an array meet without a seam: more elements than a piece, on more threads than cores."""
    threaded = core.Executor(5, executor.isa)
    p, r = field.p, field.radix
    values = mixed_values(field, n)
    limbs = ints_to_limbs((x * r % p for x in values), field.limbs)
    threaded.batch_inverse(field.curve, field.name, limbs)
    for x, inverse in zip(values, limbs_to_ints(limbs), strict=True):
        assert inverse * x % p == (r % p if x else 0)
        assert (inverse == 0) == (x == 0)
    assert threaded.first_not_below_modulus(field.curve, field.name, limbs) == -1
    for i in (n - 1, n // 2, 0):
        limbs[i] = ints_to_limbs([p], field.limbs)[0]
        assert threaded.first_not_below_modulus(field.curve, field.name, limbs) == i


@every_field
def test_first_not_below_modulus_at_the_edge(field: FieldFacts, executor: core.Executor) -> None:
    def first(values: list[int]) -> int:
        return executor.first_not_below_modulus(field.curve, field.name, ints_to_limbs(values, field.limbs))

    assert first([]) == -1
    assert first([0, field.p - 1]) == -1
    assert first([0, field.p]) == 1
    assert first([0, field.p - 1, field.p + 1, field.radix - 1]) == 2
    assert first([field.p + (1 << 64 * (field.limbs - 1)), 0]) == 0


@every_field
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_outputs_may_be_operands(field: FieldFacts, executor: core.Executor, op: str) -> None:
    """out is a, b or both; a lone right operand may lie in out."""
    a, b = mixed_values(field, 9), mixed_values(field, 10)[1:]
    want = pointwise(executor, field, op, a, b)
    want_same = pointwise(executor, field, op, a, a)
    want_lone = pointwise(executor, field, op, a, [a[3]] * 9)

    def run(out: Limbs, x: Limbs, y: Limbs) -> list[int]:
        executor.pointwise(field.curve, field.name, op, out, x, y)
        return limbs_to_ints(out)

    x, y = ints_to_limbs(a, field.limbs), ints_to_limbs(b, field.limbs)
    assert run(x.copy(), x, y) == want
    left, right, both, lone = x.copy(), y.copy(), x.copy(), x.copy()
    assert run(left, left, y) == want
    assert run(right, x, right) == want
    assert run(both, both, both) == want_same
    assert run(lone, lone, lone[3:4]) == want_lone


@pytest.mark.parametrize("isa", core.instruction_sets())
@pytest.mark.parametrize("n", [0, 1, 2, 4095, 4096, 4097, 10000])
def test_powers_and_mul_sub(isa: str, n: int) -> None:
    executor = core.Executor(3, isa)
    for field in (f for f in FIELDS if f.name == "fr"):
        p, r = field.p, field.radix
        first, ratio = 12345678901234567890, p - 2
        out = np.empty((n, field.limbs), np.uint64)
        a, b = (ints_to_limbs([x * r % p], field.limbs) for x in (first, ratio))
        executor.powers(field.curve, out, a, b)
        want, x = [], first * r % p
        for _ in range(n):
            want.append(x)
            x = x * ratio % p
        assert limbs_to_ints(out) == want

        left, right = out, np.ascontiguousarray(out[::-1])
        executor.mul_sub(field.curve, left, left, right, right)
        unit = pow(r, -1, p)
        assert limbs_to_ints(left) == [(x * y * unit - y) % p for x, y in zip(want, want[::-1], strict=True)]
