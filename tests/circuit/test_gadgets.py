"""Packing, comparison, selection, lookup and Merkle trees, at the edges of their ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from evaluation import satisfied

from snarkline.backend.naive_program import evaluate_naively
from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.compare import divide, enforce_nonzero, is_equal, is_zero, less_equal, less_than
from snarkline.circuit.gadgets.lookup import lookup
from snarkline.circuit.gadgets.merkle import merkle_root, merkle_tree, poseidon_level, poseidon_pair, sha256_level
from snarkline.circuit.gadgets.pack import num2bits, pack, range_check
from snarkline.circuit.gadgets.poseidon_parameters import circom_parameters
from snarkline.circuit.gadgets.select import choose, select, swap
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.values import Bits
from snarkline.circuit.words import UInt8, UInt32, UInt64
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.curves.vector import FrVector
from snarkline.errors import CircuitError
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.structured_witness import run_program
from snarkline.r1cs.witness import Witness

R = BN254.r


def run(build: Callable[[ConstraintSystem], Any], given: list[int]) -> list[int]:
    """The outputs of what `build` makes outputs of."""
    cs = ConstraintSystem(BN254)
    results = build(cs)
    for value in results if isinstance(results, list | tuple | Bits) else [results]:
        cs.output(value.num() if isinstance(value, Bits) else value)
    r1cs = cs.finish()
    return satisfied(r1cs, given)[1 : 1 + r1cs.n_outputs]


def violates(build: Callable[[ConstraintSystem], Any], given: list[int], change: dict[int, int] | None = None) -> bool:
    cs = ConstraintSystem(BN254)
    build(cs)
    r1cs = cs.finish()
    wires = evaluate_naively(r1cs, given)
    for wire, value in (change or {}).items():
        wires[wire] = value % R
    return first_violation(r1cs.flatten(), Witness(FrVector.from_ints(BN254, wires)), threads=1) is not None


@pytest.mark.parametrize("value", [0, 1, 2, 255, 254])
def test_bits_of_numbers_in_range(value: int) -> None:
    assert run(lambda cs: num2bits(cs, cs.alloc(), 8), [value]) == [value >> i & 1 for i in range(8)]
    assert run(lambda cs: pack(cs, num2bits(cs, cs.alloc(), 8)), [value]) == [value]


@pytest.mark.parametrize("value", [256, R - 1, 1 << 253])
def test_numbers_out_of_range(value: int) -> None:
    assert violates(lambda cs: range_check(cs, cs.alloc(), 8), [value])


@pytest.mark.parametrize("value", [0, 1, R - 1, R - 2, (1 << 253) - 1, 1 << 253, 0x5555 << 230])
def test_canonical_bits(value: int) -> None:
    assert run(lambda cs: num2bits(cs, cs.alloc(), 254), [value]) == [value >> i & 1 for i in range(254)]


@pytest.mark.parametrize("value", [0, 1, (1 << 254) - 1 - R])
def test_bits_above_the_modulus_are_refused(value: int) -> None:
    """Writes value + r, which fits 254 bits and is the same number, into the bit wires."""
    cs = ConstraintSystem(BN254)
    bits = num2bits(cs, cs.alloc(), 254)
    r1cs = cs.finish()
    wires = evaluate_naively(r1cs, [value])
    given = FrVector.from_ints(BN254, wires)
    assert first_violation(r1cs.flatten(), Witness(given), threads=1) is None
    for i, literal in enumerate(bits.literals):
        wires[literal >> 1] = (value + R) >> i & 1
    # The wires between the bits are products of them: the same program computes them from the changed bits.
    for instruction in r1cs.templates[0].program.instructions():
        if instruction.op.name == "AND":
            a, b = (wires[literal >> 1] ^ literal & 1 for literal in instruction.literals)
            wires[instruction.targets[0]] = a & b
    assert first_violation(r1cs.flatten(), Witness(FrVector.from_ints(BN254, wires)), threads=1) is not None


def test_canonical_bits_cost_what_bellman_counts() -> None:
    cs = Builder(BLS12_381, "", 0)
    num2bits(cs, cs.alloc(), 255)
    assert (cs.n_own() - 1, len(cs._a)) == (387, 388)  # bellman's to_bits_le_strict


@pytest.mark.parametrize("value", [0, 1, R - 1])
def test_zero(value: int) -> None:
    assert run(lambda cs: is_zero(cs, cs.alloc()), [value]) == [int(value == 0)]
    assert run(lambda cs: is_equal(cs, cs.alloc(), 1), [value]) == [int(value == 1)]
    assert violates(lambda cs: is_zero(cs, cs.alloc()), [value], {2: int(value != 0)})
    assert violates(lambda cs: enforce_nonzero(cs, cs.alloc()), [value]) == (value == 0)


def test_division() -> None:
    assert run(lambda cs: divide(cs, cs.alloc(), cs.alloc()), [6, 3]) == [2]
    assert run(lambda cs: divide(cs, 1, cs.alloc()), [R - 1]) == [R - 1]


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 255), (255, 0), (255, 255), (127, 128), (128, 127)])
def test_comparison(a: int, b: int) -> None:
    given = [a, b]
    assert run(lambda cs: less_than(cs, cs.alloc(), cs.alloc(), 8), given) == [int(a < b)]
    assert run(lambda cs: less_equal(cs, cs.alloc(), cs.alloc(), 8), given) == [int(a <= b)]


@pytest.mark.parametrize("condition", [0, 1])
def test_selection(condition: int) -> None:
    def build(cs: ConstraintSystem) -> list[Any]:
        bit, a, b = cs.alloc_bit(), cs.alloc(), cs.alloc()
        x, y = cs.alloc_bit(), cs.alloc_bit()
        return [select(cs, bit, a, b), *swap(cs, bit, a, b), select(cs, bit, x, ~y), select(cs, bit, a + 1, a)]

    one, other = (10, R - 1) if condition else (R - 1, 10)
    assert run(build, [condition, 10, R - 1, 1, 1]) == [one, other, one, condition, 10 + condition]


@pytest.mark.parametrize("index", [0, 1, 5, 7])
def test_tables(index: int) -> None:
    tables = ([3, 1, 4, 1, 5, 9, 2, R - 6], [0] * 7 + [1])

    def build(cs: ConstraintSystem) -> list[Any]:
        bits = cs.alloc_bits(3)
        return [*lookup(cs, bits, *tables), choose(cs, bits, [cs.constant(value) for value in tables[0]])]

    assert run(build, [index >> i & 1 for i in range(3)]) == [tables[0][index], tables[1][index], tables[0][index]]


@pytest.mark.parametrize(("word", "n"), [(UInt8, 3), (UInt32, 2), (UInt64, 10)])
def test_words(word: Any, n: int) -> None:
    width, top = word.WIDTH, (1 << word.WIDTH) - 1
    for values in ([top] * n, [0] * n, [1 << width - 1] * n, list(range(n))):

        def build(cs: ConstraintSystem) -> list[Any]:
            first, *rest = [word(cs, cs.alloc_bits(width).literals) for _ in range(n)]
            return [first.plus(*rest), first.rotr(3), first.rotl(1), first >> 1, first << 2, first ^ rest[-1], ~first]

        x, y, total = values[0], values[-1], sum(values) & top
        rotations = [(x >> 3 | x << width - 3) & top, (x << 1 | x >> width - 1) & top]
        expected = [total, *rotations, x >> 1, x << 2 & top, x ^ y, top - x]
        assert run(build, [value >> i & 1 for value in values for i in range(width)]) == expected


def test_merkle_path_and_tree_agree() -> None:
    hash_ = circom_parameters(2).hash
    leaves = [0, R - 1, 5, 5, 1, 2, 3, 4]
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([hash_(below[i : i + 2]) for i in range(0, len(below), 2)])
    for leaf in (0, 3, 7):
        siblings = [level[(leaf >> i) ^ 1] for i, level in enumerate(levels[:-1])]

        def build(cs: ConstraintSystem) -> Any:
            values = [cs.alloc() for _ in range(4)]
            return merkle_root(cs, poseidon_level, values[0], values[1:], cs.alloc_bits(3))

        assert run(build, [leaves[leaf], *siblings, *(leaf >> i & 1 for i in range(3))]) == levels[-1]
    tree = run(lambda cs: merkle_tree(cs, poseidon_pair, cs.batch([cs.alloc() for _ in range(8)])), leaves)
    assert tree == levels[-1]


def test_sha256_level() -> None:
    node, sibling = bytes(range(32)), bytes([255] * 32)
    cs = ConstraintSystem(BN254)
    for bit in cs.call(sha256_level, *(cs.alloc_bits(256) for _ in range(2)), cs.alloc_bit()):
        cs.output(bit)
    r1cs = cs.finish()
    given = [byte >> i & 1 for byte in node + sibling for i in range(7, -1, -1)]
    for is_right in (0, 1):
        parent = hashlib.sha256(sibling + node if is_right else node + sibling).digest()
        expected = [byte >> i & 1 for byte in parent for i in range(7, -1, -1)]
        witness = run_program(r1cs, FrVector.from_ints(BN254, [*given, is_right]), threads=1)
        assert first_violation(r1cs, witness, threads=1) is None
        assert list(witness.public(256)) == expected


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda cs: num2bits(cs, cs.alloc(), 255), "1 to 254 bits; 255"),
        (lambda cs: num2bits(cs, cs.constant(256), 8), "does not fit 8 bits"),
        (lambda cs: lookup(cs, cs.alloc_bits(2), [1, 2, 3]), "tables of 4 entries"),
        (lambda cs: less_than(cs, cs.alloc(), cs.alloc(), 253), "numbers of 1 to 252 bits"),
        (lambda cs: merkle_tree(cs, poseidon_pair, cs.batch([cs.alloc()] * 3)), "2\\^k leaves; found 3"),
        (lambda cs: select(cs, cs.alloc_bit(), cs.alloc(), cs.alloc_bits(2)), "same kind"),
        (lambda cs: num2bits(cs, ConstraintSystem(BN254).alloc(), 8), "another constraint system"),
        (lambda cs: select(cs, ConstraintSystem(BN254).alloc_bit(), 1, 2), "another constraint system"),
        (lambda cs: enforce_nonzero(cs, ConstraintSystem(BN254).alloc()), "another constraint system"),
        (lambda cs: lookup(cs, ConstraintSystem(BN254).alloc_bits(1), [1, 2]), "another constraint system"),
        (lambda cs: poseidon_pair(cs, [cs.alloc(), ConstraintSystem(BN254).alloc()]), "another constraint system"),
        (lambda cs: UInt8(cs, cs.alloc_bits(7).literals), "a UInt8 has 8 bits; found 7"),
        (lambda cs: UInt8.constant(cs, 256), "256 does not fit a UInt8"),
    ],
)
def test_misuse_is_named(build: Callable[[ConstraintSystem], Any], message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        build(ConstraintSystem(BN254))
