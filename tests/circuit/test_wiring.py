"""Maps and chains over any wiring compute what their instances compute one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from evaluation import satisfied
from hypothesis import given, settings
from hypothesis import strategies as st

from snarkline.circuit import Bit, Builder, ConstraintSystem, Num, gadget
from snarkline.circuit.recorder import FALSE, TRUE
from snarkline.circuit.wiring import Wiring, after, beside, segments
from snarkline.curves.curve import BN254

POOL = 8


@gadget
def majority_and(cs: Builder, a: Bit, b: Bit, c: Bit) -> list[Bit]:
    return [(a & b) ^ c, ~a, b]


@gadget
def fold(cs: Builder, carry: list[Any], a: Bit, x: Num) -> list[Any]:
    bit, total = carry
    return [bit ^ a, total * x + a]


@st.composite
def columns(draw: st.DrawFn, count: int) -> list[int]:
    """Literals over the pool: in steps, the same everywhere, or anything."""
    kind = draw(st.sampled_from(["steps", "same", "any"]))
    literal = st.integers(0, 2 * POOL + 1)  # 0 and 1 are constants
    if kind == "any":
        return draw(st.lists(literal, min_size=count, max_size=count))
    if kind == "same":
        return [draw(literal)] * count
    step, negated = draw(st.integers(-1, 1)), draw(st.integers(0, 1))
    start = draw(st.integers(1, POOL))
    return [2 * (1 + (start - 1 + i * step) % POOL) | negated for i in range(count)]


@st.composite
def tables(draw: st.DrawFn, width: int) -> list[list[int]]:
    count = draw(st.integers(1, 7))
    return [draw(columns(count)) for _ in range(width)]


def bit_of(cs: ConstraintSystem, wires: list[Bit], literal: int) -> Bit:
    if literal >> 1 == 0:
        return Bit(cs, TRUE if literal == 0 else FALSE)
    wire = wires[(literal >> 1) - 1]
    return ~wire if literal & 1 else wire


def value_of(values: list[int], literal: int) -> int:
    return (values[(literal >> 1) - 1] if literal >> 1 else 1) ^ literal & 1


@settings(max_examples=60, deadline=None)
@given(tables(3), st.integers(0, (1 << POOL) - 1))
def test_maps(table: list[list[int]], pool: int) -> None:
    cs = ConstraintSystem(BN254)
    wires = list(cs.alloc_bits(POOL))
    batches = [cs.batch([bit_of(cs, wires, literal) for literal in column]) for column in table]
    for result in cs.map(majority_and, *batches):
        for bit in result:
            cs.output(bit)
    r1cs = cs.finish()
    values = [pool >> i & 1 for i in range(POOL)]
    expected = []
    for literals in zip(*table, strict=True):
        a, b, c = (value_of(values, literal) for literal in literals)
        expected += [(a & b) ^ c, 1 - a, b]
    assert satisfied(r1cs, values)[1 : 1 + r1cs.n_outputs] == expected


@settings(max_examples=60, deadline=None)
@given(tables(2), st.integers(0, (1 << POOL) - 1), st.sampled_from([0, 1, 2, 3, 4]))
def test_chains(table: list[list[int]], pool: int, start: int) -> None:
    cs = ConstraintSystem(BN254)
    wires = list(cs.alloc_bits(POOL))
    numbers = [wire.num() + 1 for wire in wires]
    numbers = [number.allocated() for number in numbers]
    first, second = table
    bits = cs.batch([bit_of(cs, wires, literal) for literal in first])
    xs = cs.batch([numbers[(literal >> 1) % POOL] for literal in second])
    bit, total = cs.scan(fold, [bit_of(cs, wires, start), cs.constant(3)], bits, xs)
    cs.output(bit)
    cs.output(total)
    values = [pool >> i & 1 for i in range(POOL)]
    state = [value_of(values, start), 3]
    for a, x in zip(first, second, strict=True):
        added = value_of(values, a)
        state = [state[0] ^ added, (state[1] * (values[(x >> 1) % POOL] + 1) + added) % BN254.r]
    assert satisfied(cs.finish(), values)[1:3] == state


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(-3, 3)), min_size=1, max_size=4), st.integers(1, 9))
def test_stretches_of_one_pattern(steps: list[tuple[int, int]], count: int) -> None:
    """Which wires are the same changes from one stretch to the next, and not within one."""
    base = np.array([2 * (100 + start) for start, _ in steps], dtype=np.int64)
    wiring = Wiring(count, base, np.array([step for _, step in steps], dtype=np.int64), None, {})
    rows = wiring.rows()

    def pattern(i: int) -> list[int]:
        row = rows[i].tolist()
        return [row.index(slot) for slot in row]

    found = segments(wiring)
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])] and found[-1][1] == count
    for start, stop in found:
        assert all(pattern(i) == pattern(start) for i in range(start, stop))
    assert found == segments(Wiring(count, base, wiring.stride, rows, {})) or len(found) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 5))
def test_parts_are_parts(count: int, size: int, cut: int) -> None:
    base = np.array([10, 21, 1], dtype=np.int64)
    wiring = Wiring(count * size, base, np.array([3, -1, 0], dtype=np.int64), None, {})
    rows = wiring.rows()
    assert (wiring.grouped(size).rows() == rows.reshape(count, -1)).all()
    at = min(cut, count * size)
    assert (after([wiring.part(0, at), wiring.part(at, count * size)]).rows() == rows).all()
    assert (beside([wiring.columns(0, 1), wiring.columns(1, 3)]).rows() == rows).all()
    assert (Wiring.of_rows(rows, {}).rows() == rows).all()
