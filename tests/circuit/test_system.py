"""Calls, map and scan: what they record, and that they compute what calls one by one compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from evaluation import satisfied

from snarkline.circuit import Batch, Bit, Builder, ConstraintSystem, Num, UInt8, gadget
from snarkline.circuit.gadgets.pack import num2bits
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_parameters import circom_parameters
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.errors import CircuitError

R = BN254.r


@gadget
def square(cs: Builder, x: Num) -> Num:
    return x * x


@gadget
def multiply_add(cs: Builder, x: Num, y: Num, k: int) -> Num:
    return x * y + k


@gadget
def both_ways(cs: Builder, pair: tuple[Num, Num]) -> tuple[Num, Num]:
    """Fibonacci's step: one of the two is handed on as it is."""
    return pair[1], (pair[0] + pair[1]).allocated()


@gadget
def gates(cs: Builder, a: Bit, b: Bit) -> list[Bit]:
    return [a & b, a ^ b, ~a, b]


def outputs(cs: ConstraintSystem, given: list[int]) -> list[int]:
    r1cs = cs.finish()
    return satisfied(r1cs, given)[1 : 1 + r1cs.n_outputs]


def shape_of(cs: ConstraintSystem) -> list[tuple[str, int]]:
    r1cs = cs.finish()
    return [(r1cs.template_of(run).name, run.count) for run in r1cs.runs]


def test_a_map_is_one_run() -> None:
    cs = ConstraintSystem(BN254)
    numbers = cs.batch([cs.alloc() for _ in range(6)])
    squares = cs.map(square, numbers)
    pairs = cs.map(multiply_add, squares.groups(2).part(0), squares.groups(2).part(1), 7)
    for value in pairs:
        cs.output(value)
    assert shape_of(cs) == [("", 1), ("square", 6), ("multiply_add", 3), ("", 1)]
    assert outputs(cs, [1, 2, 3, 4, R - 1, 0]) == [11, 151, 7]


def test_a_map_over_any_wires_has_a_table() -> None:
    cs = ConstraintSystem(BN254)
    x = [cs.alloc() for _ in range(5)]
    for value in cs.map(square, cs.batch([x[3], x[0], x[4], x[0]])):
        cs.output(value)
    r1cs = cs.finish()
    assert [run.count for run in r1cs.runs] == [1, 4, 1] and r1cs.runs[1].table is not None
    assert outputs(cs, [2, 3, 5, 7, 11]) == [49, 4, 121, 4]


def test_patterns_within_a_map_are_told_apart() -> None:
    """Constants, negations and aliases differ between instances: each stretch has its own template."""
    cs = ConstraintSystem(BN254)
    a, b = cs.alloc_bit(), cs.alloc_bit()
    left = [a, b, ~a, cs.bit(1), cs.bit(0), a, a]
    right = [b, a, b, b, b, a, ~a]
    results = cs.map(gates, cs.batch(left), cs.batch(right))
    for result in results:
        for bit in result:
            cs.output(bit)
    for values in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, y = values
        lefts, rights = [x, y, 1 - x, 1, 0, x, x], [y, x, y, y, y, x, 1 - x]
        pairs = zip(lefts, rights, strict=True)
        assert outputs(cs, list(values)) == [v for p, q in pairs for v in (p & q, p ^ q, 1 - p, q)]


def test_strides_that_meet() -> None:
    """Instance 2 reads one wire twice, the others two: the products are right, and the aliased one is on its own."""
    cs = ConstraintSystem(BN254)
    x = cs.batch([cs.alloc() for _ in range(5)])
    for value in cs.map(multiply_add, x, x[::-1], 0):
        cs.output(value)
    assert shape_of(cs) == [("", 1), ("multiply_add", 2), ("multiply_add", 1), ("multiply_add", 2), ("", 1)]
    assert outputs(cs, [2, 3, 5, 7, 11]) == [22, 21, 25, 21, 22]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("start", ["wires", "constants", "one wire"])
def test_a_chain(count: int, start: str) -> None:
    cs = ConstraintSystem(BN254)
    x, y = cs.alloc(), cs.alloc()
    pair = {"wires": (x, y), "constants": (cs.constant(1), cs.constant(1)), "one wire": (x, x)}[start]
    first, second = cs.scan(both_ways, pair, count=count)
    cs.output(first)
    cs.output(second)
    a, b = {"wires": (3, R - 1), "constants": (1, 1), "one wire": (3, 3)}[start]
    for _ in range(count):
        a, b = b, (a + b) % R
    assert outputs(cs, [3, R - 1]) == [a, b]
    assert len(cs.finish().runs) <= 6


def test_a_chain_over_values() -> None:
    cs = ConstraintSystem(BN254)
    values = [cs.alloc() for _ in range(6)]
    total = cs.scan(multiply_add, cs.constant(1), cs.batch(values), 1)
    cs.output(total)
    expected, given = 1, [2, 3, 5, 7, 11, R - 1]
    for value in given:
        expected = (expected * value + 1) % R
    assert outputs(cs, given) == [expected]


def test_recording_does_not_depend_on_the_number_of_instances() -> None:
    calls = []

    @gadget
    def counted(cs: Builder, x: Num, y: Num) -> Num:
        calls.append(1)
        return x * y

    cs = ConstraintSystem(BLS12_381)
    n = 1 << 20
    first = cs.new_given(n)
    from snarkline.circuit.compiling import _stretch

    numbers = _stretch(cs, ("Num",), n, first)
    products = cs.map(counted, numbers, numbers)
    last = cs.scan(counted, cs.constant(1), products)
    cs.output(last)
    r1cs = cs.finish()
    assert r1cs.n_constraints == 2 * n  # 1 * x folds: the first instance of the chain has no constraint
    assert len(calls) <= 4 and len(r1cs.runs) <= 6


def test_calls_that_follow_one_another_become_a_run() -> None:
    cs = ConstraintSystem(BN254)
    x = cs.alloc()
    for _ in range(5):
        x = cs.call(square, x)
    cs.output(x)
    assert shape_of(cs) == [("", 1), ("square", 5), ("", 1)]
    assert outputs(cs, [3]) == [3**32]


def test_equal_stretches_of_the_top_level_are_kept_once() -> None:
    cs = ConstraintSystem(BN254)
    for _ in range(4):
        cs.output(cs.call(square, cs.alloc()) + 1)
    r1cs = cs.finish()
    assert len(r1cs.templates) < 5 and outputs(cs, [0, 1, 2, 3]) == [1, 2, 5, 10]


def test_gadgets_called_directly_are_recorded_in_place() -> None:
    cs = ConstraintSystem(BN254)
    cs.output(square(cs, cs.alloc()))
    cs.output(poseidon(cs, [cs.public(), cs.call(square, cs.alloc())]))
    r1cs = cs.finish()
    assert all(template.native is None for template in r1cs.templates)
    assert satisfied(r1cs, [3, 5, 7])[1:3] == [9, circom_parameters(2).hash([5, 49])]


@gadget
def times_given(cs: Builder, x: Num) -> Num:
    return x * cs.alloc() + cs.alloc_bit()


def test_values_can_be_given_within_gadgets() -> None:
    cs = ConstraintSystem(BN254)
    x = cs.alloc()
    cs.output(cs.call(times_given, cs.call(times_given, x)))
    cs.output(cs.scan(times_given, x, count=3))
    for value in cs.map(times_given, cs.batch([x, x, cs.alloc()])):
        cs.output(value)
    r1cs = cs.finish()
    # x; 2 and 3 of the calls; 3 pairs of the chain; the number that was allocated for the batch; 3 pairs of the map
    given = [10, 2, 1, 3, 0, 1, 1, 2, 0, 3, 1, 20, 5, 0, 6, 1, 7, 1]
    assert satisfied(r1cs, given)[1:6] == [63, 67, 50, 61, 141]


def test_public_wires() -> None:
    cs = ConstraintSystem(BN254)
    x = cs.alloc()
    y = cs.public()
    bit = cs.public_bit()
    cs.inputize(x * y + bit)
    r1cs = cs.finish()
    assert (r1cs.n_public, r1cs.n_outputs) == (3, 0)
    wires = satisfied(r1cs, [5, 7, 1])
    assert wires[1:4] == [7, 1, 36]


def test_gadgets_called_within_gadgets_are_recorded_in_place() -> None:
    @gadget
    def outer(cs: Builder, x: Num) -> Num:
        return cs.call(square, x) + cs.scan(square, x, count=2)

    cs = ConstraintSystem(BN254)
    cs.output(cs.call(outer, cs.alloc()))
    r1cs = cs.finish()
    assert [path for _, path in r1cs.templates[1].paths] == ["square", ""]
    assert outputs(cs, [3]) == [90]


def dependent(cs: Builder, x: Any) -> Any:
    return x * 2 if x else x


def compared(cs: Builder, x: Any) -> Any:
    return x * 2 if x == 0 else x


def converted(cs: Builder, x: Any) -> Any:
    return [x] * int(x)


@pytest.mark.parametrize("function", [dependent, compared, converted])
@pytest.mark.parametrize("kind", ["bit", "number", "word"])
def test_a_template_that_depends_on_values_is_named(function: Callable[..., Any], kind: str) -> None:
    cs = ConstraintSystem(BN254)
    value = {"bit": cs.alloc_bit, "number": cs.alloc, "word": lambda: UInt8(cs, cs.alloc_bits(8).literals)}[kind]()
    line = function.__code__.co_firstlineno + 1
    message = rf"outer/{function.__name__}: .*test_system.py, line {line}: .* depends on the value of a wire"
    with pytest.raises(CircuitError, match=message), cs.scope("outer"):
        cs.call(gadget(function), value)


def test_a_gadget_cannot_reach_around_its_inputs() -> None:
    cs = ConstraintSystem(BN254)
    outside = cs.alloc()

    @gadget
    def reaches(cs: Builder, x: Num) -> Num:
        return num2bits(cs, outside, 8).num() + x

    with pytest.raises(CircuitError, match=r"reaches: .*: a wire of another constraint system, or of another gadget"):
        cs.call(reaches, cs.alloc())


def uncomputed(cs: Builder, x: Num) -> Num:
    return Num(cs, {cs.new(): 1})


def endless(cs: Builder, x: Num) -> Num:
    return cs.call(gadget(endless), x)


def not_a_value(cs: Builder, x: Num) -> object:
    return object()


def changes_kind(cs: Builder, x: Num) -> tuple[Num, Num]:
    return x, x


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda cs: cs.call(square, ConstraintSystem(BN254).alloc()), "wire of another constraint system"),
        (lambda cs: cs.alloc() + ConstraintSystem(BN254).alloc(), "wire of another constraint system"),
        (lambda cs: cs.enforce(ConstraintSystem(BN254).alloc_bit(), 1, 1), "wire of another constraint system"),
        (lambda cs: cs.map(square, ConstraintSystem(BN254).batch([cs.constant(1)])), "another"),
        (lambda cs: cs.alloc_bit() ^ cs.alloc(), "a bit is expected, or 0 or 1; found a number"),
        (lambda cs: cs.alloc_bit() & 2, "a bit is expected, or 0 or 1"),
        (lambda cs: cs.alloc_bits(2) ^ cs.alloc_bits(3), "arrays of 2 and 3 bits"),
        (lambda cs: cs.alloc_bits(254).num(), "254 bits do not fit a number of bn254"),
        (lambda cs: cs.equal(cs.constant(1), 2), "two constants that differ"),
        (lambda cs: cs.equal(cs.alloc_bits(2), cs.alloc_bits(3)), "two arrays of the same length"),
        (
            lambda cs: cs.call(dependent, cs.alloc()),
            "functions with @gadget; found dependent, which is a function without",
        ),
        (lambda cs: cs.call(gadget(uncomputed), cs.alloc()), "uncomputed: 1 of its wires are allocated but neither"),
        (lambda cs: cs.call(gadget(endless), cs.alloc()), "endless: .*line [0-9]+: it calls itself without end"),
        (lambda cs: cs.call(gadget(not_a_value), cs.alloc()), "values of type object"),
        (lambda cs: cs.scan(gadget(changes_kind), cs.alloc(), count=2), "must return what it is to take next"),
        (lambda cs: cs.map(square, cs.alloc()), "batches of one length are needed among the inputs; found no batch"),
        (lambda cs: cs.map(square, cs.batch([cs.alloc()] * 2), cs.batch([cs.alloc()] * 3)), "found 2 and 3"),
        (lambda cs: cs.batch([]), "at least one value"),
        (lambda cs: cs.alloc() * 0.5, "a number, a bit or an int is expected; found a value of type float"),
        (lambda cs: cs.alloc_bits(2) + 1, "bits of the circuit are expected; found a value of type int"),
        (lambda cs: cs.alloc() < 3, r"use less_than\(cs, a, b, n\)"),
        (lambda cs: cs.alloc_bit() <= 3, r"use less_equal\(cs, a, b, n\)"),
        (lambda cs: cs.alloc_bits(8) > cs.alloc_bits(8), r"use less_than\(cs, a, b, n\)"),
        (lambda cs: 1 / cs.alloc(), r"use divide\(cs, a, b\)"),
        (lambda cs: cs.alloc() // 2, r"the upper bits of num2bits\(cs, x, n\)"),
        (lambda cs: cs.alloc() % 2, r"the lowest bits of num2bits\(cs, x, n\)"),
        (lambda cs: cs.alloc() ** 2, r"use products, as x \* x"),
        (lambda cs: float(cs.alloc()), "a conversion to int"),
        (lambda cs: cs.alloc() != 1, r"use is_equal\(cs, a, b\)"),
        (lambda cs: square(cs.alloc()), "square: its first argument is the circuit's cs; found a Num"),
        (lambda cs: cs.batch([cs.alloc(), cs.alloc_bit()]), "value 1 of a batch has another shape"),
        (lambda cs: cs.batch([cs.alloc(), cs.constant(1)]), "constant numbers of value 1"),
        (lambda cs: cs.batch([cs.alloc()] * 3).groups(2), "do not go into groups of 2"),
    ],
)
def test_misuse_is_named(build: Callable[[ConstraintSystem], Any], message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        build(ConstraintSystem(BN254))


def test_more_constraints_than_the_field_has_domains_for() -> None:
    cs = ConstraintSystem(BN254)
    message = r"top/square: 134217728 constraints .* domains up to 2\^27"
    with pytest.raises(CircuitError, match=message), cs.scope("top"):
        cs.scan(square, cs.alloc(), count=1 << 27)


def test_adding_nothing_is_the_same_wire() -> None:
    cs = ConstraintSystem(BN254)
    x, y = cs.alloc(), cs.alloc()
    for same in (x + 0, x - 0, x * 1, x + y - y, 0 + x, 0 - (0 - x), x - cs.constant(0)):
        assert same.allocated().terms == x.terms
    assert (x - x).constant == 0 and (x * 0).constant == 0 and (x + (R - 1) * x).constant == 0
    assert cs.finish().n_constraints == 0


@gadget
def product(cs: Builder, factors: list[Num]) -> Num:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


def test_a_batch_is_a_list_to_a_gadget() -> None:
    cs = ConstraintSystem(BN254)
    numbers = cs.batch([cs.alloc() for _ in range(4)])
    cs.output(cs.call(product, numbers))
    cs.output(cs.scan(square, cs.call(product, list(numbers[1:3])), count=1))
    assert outputs(cs, [2, 3, 5, 7]) == [210, 225]


def test_a_batch_is_a_sequence() -> None:
    cs = ConstraintSystem(BN254)
    batch = Batch.of(cs, [cs.alloc() for _ in range(4)])
    assert len(batch) == 4 and len(batch[1:3]) == 2 and len(batch[::2]) == 2
    assert batch[-1].terms == batch[3].terms and batch[::-1][0].terms == batch[3].terms
    with pytest.raises(IndexError, match="value 4 of a batch of 4"):
        batch[4]


def test_a_gadget_that_constrains_the_circuit_around_it_is_refused() -> None:
    """Its template is recorded once, so the constraint would be missing for all other instances."""
    cs = ConstraintSystem(BN254)
    numbers = [cs.alloc() for _ in range(4)]

    @gadget
    def reaches_out(inner: Builder, x: Num) -> Num:
        cs.enforce(numbers[0], 1, 5)
        return x * x

    with pytest.raises(CircuitError, match="constrains the circuit around it"):
        cs.map(reaches_out, cs.batch(numbers))
    cs.enforce(numbers[0], 1, 5)
