"""Structured systems: rows, places, invariants, and the naive interpreter, against values worked out by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from handmade_templates import Recorder, lc, sparse, system

from snarkline.backend.naive_program import evaluate_naively, run_template
from snarkline.curves.curve import BN254, CURVES, Curve
from snarkline.errors import FormatError, InputError, MismatchError
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import Op
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.template import Template


def mixed(curve: Curve) -> Template:
    """Ports: bits 1 and 2, field element 3. Aux: 4 = 1 xor not 2, 5 = 3 * (3 + 4), 6 = 5 - 7 * 4 as a combination."""
    r = Recorder(curve, [True, True, False])
    d = r.xor(2, 5)
    p = r.product({3: 1}, {3: 1, d: 1})
    q = r.aux(bit=False)
    r.emit(Op.LINEAR, q, r.combination({p: 1, d: -7}))
    r.enforce({p: 1, d: -7}, {0: 1}, {q: 1})
    return r.template("mixed", paths=((0, "xor"), (1, "product"), (2, "")))


def inputs(curve: Curve, n_bits: int, n_values: int) -> Template:
    """Given wires only: bits, then field elements."""
    r = Recorder(curve, [])
    for i in range(n_bits + n_values):
        r.aux(bit=i < n_bits)
    return r.template("inputs")


def small(curve: Curve, count: int = 5) -> StructuredR1CS:
    """A public element, count + 1 bits and `count` elements that are given; `count` instances of `mixed`."""
    n_bits = count + 1
    first = 2
    runs = [
        (inputs(curve, n_bits, count), 1, [], []),
        (mixed(curve), count, [first, first + 1, first + n_bits], [1, 1, 1]),
    ]
    given = [1, *range(first, first + n_bits + count)]
    return system(curve, 1, runs, given, [False, *[True] * n_bits, *[False] * count])


def test_naive_interpreter() -> None:
    s = small(BN254, 2)
    s.check()
    # public 9; bits 1 0 0; values 5 and r - 1
    r = BN254.r
    w = evaluate_naively(s, [9, 1, 0, 0, 5, r - 1])
    # instance 0: 1 xor not 0 = 0, 5 * 5 = 25, 25; instance 1: 0 xor not 0 = 1, (r - 1) * 0 = 0, -7
    assert w == [1, 9, 1, 0, 0, 5, r - 1, 0, 25, 25, 1, 0, r - 7]
    for k in range(s.n_constraints):
        a, b, c = (sum(v * w[i] for i, v in m.row(0)) % r for m in s.rows(k, k + 1))
        assert a * b % r == c


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_rows_are_slices_of_the_flat_system(curve: Curve) -> None:
    s = small(curve)
    flat = s.flatten()
    assert flat.n_constraints == s.n_constraints == 3 * 5
    matrices = (flat.matrices.a, flat.matrices.b, flat.matrices.c)
    for start in range(s.n_constraints + 1):
        for stop in range(start, s.n_constraints + 1):
            for whole, block in zip(matrices, s.rows(start, stop), strict=True):
                assert isinstance(whole, SparseMatrix)
                assert [block.row(k) for k in range(stop - start)] == [whole.row(k) for k in range(start, stop)]
    # Instance 3 of `mixed`: wires 5, 6 are its bits, 11 its element, 13 + 9 its first aux wire.
    assert matrices[0].row(9) == [(5, 2)]
    assert matrices[1].row(9) == [(0, 1), (6, curve.r - 1)]
    assert sorted(matrices[2].row(9)) == [(0, 1), (5, 1), (6, curve.r - 1), (22, curve.r - 1)]
    bound = StructuredMatrices(s)
    assert bound.n_entries == bound.flatten().n_entries
    assert bound.flatten().a.row(15) == [(0, 1)] and bound.flatten().a.row(16) == [(1, 1)]


def test_places_and_names() -> None:
    s = small(BN254)
    assert s.find(0) == (1, 0, 0, "mixed/xor")
    assert s.find(4) == (1, 1, 1, "mixed/product")
    assert s.find(14) == (1, 4, 2, "mixed")
    assert s.wire_path(1) == "1"
    assert s.wire_path(2) == "inputs/aux 0"
    assert s.wire_path(14) == "mixed[0]/aux 1" and s.wire_path(17) == "mixed[1]/aux 1"
    assert 0 < s.nbytes < 1 << 12


@pytest.mark.parametrize("seed", range(4))
def test_every_instruction(seed: int) -> None:
    """Against Python's own operators."""
    curve, rng = BN254, random.Random(seed)
    r = Recorder(curve, [True] * 8 + [False] * 2)
    bit = [rng.randrange(2) for _ in range(8)]
    x, y = rng.choice([0, 1, curve.r - 1, 5]), rng.choice([0, 1, 7, curve.r - 1])
    expected = {}

    def emit(op: Op, value: int, *operands: int, is_bit: bool = True) -> None:
        d = r.aux(bit=is_bit)
        r.emit(op, d, *operands)
        expected[d] = value

    emit(Op.XOR, bit[0] ^ bit[1] ^ 1, 2, 5)
    emit(Op.AND, bit[0] & (1 - bit[1]), 2, 5)
    emit(Op.CH, bit[1] if bit[0] else 1 - bit[2], 2, 4, 7)
    emit(Op.MAJ, int(bit[0] + bit[1] + bit[2] >= 2), 2, 4, 6)
    emit(Op.MAJ, bit[0] | bit[1], 0, 2, 4)
    emit(Op.COPY, 1 - bit[3], 9)
    emit(Op.COPY, 0, 1)
    emit(Op.LINEAR, (3 * x - y + bit[0]) % curve.r, r.combination({9: 3, 10: -1, 1: 1}), is_bit=False)
    emit(Op.INVERSE, pow(x, -1, curve.r) if x else 0, r.combination({9: 1}), is_bit=False)
    emit(Op.IS_ZERO, int(x == y), r.combination({9: 1, 10: -1}))
    emit(Op.DIVIDE, x * pow(y, -1, curve.r) % curve.r if y else 0, 1, r.combination({10: 1}), is_bit=False)
    row = r.enforce({9: 1}, {10: 2}, {0: 5, len(r.bits): 3})
    emit(Op.SOLVE, (2 * x * y - 5) * pow(3, -1, curve.r) % curve.r, row, is_bit=False)
    first = len(r.bits)
    targets = [r.aux(bit=True) for _ in range(5)]
    words = [[2, 4, 6, 8], [10, 12, 1, 0], [3, 3, 3, 3]]
    r.emit(Op.ADD, 5, 3, 4, *targets, *(literal for word in words for literal in word))
    columns = [1, *bit]
    total = sum(sum((columns[li >> 1] ^ (li & 1)) << i for i, li in enumerate(word)) for word in words)
    expected |= {first + i: total >> i & 1 for i in range(5)}
    low = [r.aux(bit=True) for _ in range(7)]
    r.emit(Op.BITS, 7, 1, *low)
    expected |= {column: x >> i & 1 for i, column in enumerate(low)}
    template = r.template("all")
    template.check(curve)
    got = run_template(template, [1, *bit, x, y, *[0] * template.n_aux], curve.r)
    assert {d: got[d] for d in expected} == expected


def test_outputs_are_written_through_ports() -> None:
    """A public wire that nobody gives is written by the program of a run of one instance."""
    r = Recorder(BN254, [False, False])
    r.emit(Op.LINEAR, 2, r.combination({1: 3, 0: 1}))
    r.enforce({1: 3, 0: 1}, {0: 1}, {2: 1})
    out = r.template("output")
    s = system(BN254, 2, [(out, 1, [2, 1], [0, 0])], [2], [False], n_outputs=1)
    s.check()
    assert evaluate_naively(s, [4]) == [1, 13, 4]
    with pytest.raises(FormatError, match="nobody else"):
        system(BN254, 2, [(out, 1, [2, 1], [0, 0])], [1, 2], [False, False]).check()
    with pytest.raises(InputError):
        system(BN254, 2, [(out, 2, [2, 1], [0, 0])], [2], [False]).check()


def test_values_are_checked() -> None:
    s = small(BN254, 1)
    for values in ([1, 2, 0, 5], [1, 1, 0, BN254.r], [1, 1, 0]):
        with pytest.raises(MismatchError):
            evaluate_naively(s, values)


def damaged(s: StructuredR1CS) -> dict[str, tuple[StructuredR1CS, str]]:
    """Systems with one thing wrong, and what the message says."""
    run, template = s.runs[1], s.templates[1]

    def with_run(**changes: object) -> StructuredR1CS:
        return replace(s, runs=(s.runs[0], replace(run, **changes)))

    def with_template(**changes: object) -> StructuredR1CS:
        return replace(s, templates=(s.templates[0], replace(template, **changes)))

    def with_code(*code: int) -> StructuredR1CS:
        program = replace(template.program, code=np.array(code, np.int32))
        return with_template(program=program)

    rows = sparse(s.curve, template.n_columns, [{1: 1}])
    return {
        "row": (with_run(first_row=1), "run 1"),
        "wire": (with_run(first_wire=5), "run 1"),
        "count": (with_run(count=0), "run 1"),
        "template": (with_run(template=2), "a template below 2"),
        "port ahead": (with_run(base=run.base + 100), "port 0"),
        "port of its own": (with_run(base=np.array([run.first_wire, 3, 8])), "instance 0, port 0"),
        "constant port": (with_run(base=np.array([0, 3, 8])), "instance 0, port 0"),
        "one twice": (with_run(base=np.array([3, 3, 8])), "distinct"),
        "one twice later": (with_run(stride=np.array([3, 1, 1]), base=np.array([2, 4, 8])), "instance 1"),
        "no bit": (with_run(base=np.array([8, 3, 9])), "a wire that is a bit"),
        "few ports": (with_run(base=run.base[:2]), "3 ports"),
        "table": (with_run(table=np.zeros((4, 3), np.uint32)), "a table"),
        "wires": (replace(s, n_wires=s.n_wires + 1), "wires"),
        "public": (replace(s, n_public=2, n_wires=s.n_wires + 1), "run 0"),
        "given twice": (replace(s, given=np.full(len(s.given), 1, np.uint32)), "distinct"),
        "given out": (replace(s, given=s.given + np.uint32(1000)), "given wires"),
        "given bits": (replace(s, bits=~s.bits), "run 0"),
        "rows": (with_template(a=rows), "the same number of rows"),
        "columns": (with_template(a=replace(template.a, n_columns=3)), "7 columns"),
        "column": (with_template(a=replace(template.a, column=template.a.column + np.uint32(6))), "in range"),
        "column twice": (with_template(c=replace(template.c, column=template.c.column * np.uint32(0))), "column twice"),
        "bits": (with_template(bits=~template.bits), "booleans"),
        "opcode": (with_code(99, 1), "word 0"),
        "cut": (with_code(Op.XOR, 4, 2), "word 0"),
        "add": (with_code(Op.ADD, 1, 200, 1, 4, 2), "word 0"),
        "unwritten": (with_code(Op.XOR, 4, 2, 5), "not column 5"),
        "twice": (with_code(Op.XOR, 4, 2, 5, Op.XOR, 4, 2, 5), "word 4"),
        "early": (with_code(Op.SOLVE, 5, 1, Op.XOR, 4, 2, 5), "column 4"),
        "port": (with_code(Op.XOR, 1, 2, 5), "word 0"),
        "literal": (with_code(Op.XOR, 4, 2, 6), "literals of bit columns"),
        "bit": (with_code(Op.XOR, 5, 2, 5), "a bit column"),
        "row number": (with_code(Op.LINEAR, 6, 1), "a row below 1"),
        "constraint": (with_code(Op.SOLVE, 6, 3), "a constraint below 3"),
        "solve": (with_code(Op.XOR, 4, 2, 5, Op.SOLVE, 6, 1), "in C and not in A and B"),
        "paths": (with_template(paths=((2, "x"), (1, "y"))), "paths"),
    }


@pytest.mark.parametrize("name", damaged(small(BN254)))
def test_damage_is_named(name: str) -> None:
    broken, text = damaged(small(BN254))[name]
    with pytest.raises(InputError, match=text):
        broken.check()


def test_literals() -> None:
    assert lc((3, 2), (4, 1)) == {0: 2, 1: -2, 2: 1}


@pytest.mark.parametrize("count", [2**33, 2**63 - 1, 2**64 - 1])
def test_absurd_counts_are_refused_at_once(count: int) -> None:
    """Before anything goes through the instances."""
    s = small(BN254)
    runs = (*s.runs[:-1], replace(s.runs[-1], count=count))
    with pytest.raises((FormatError, MismatchError)):
        replace(s, runs=runs).check()
