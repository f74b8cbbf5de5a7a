"""Every gadget against the real crates: the same wires, rows, terms and order, and the same values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ordered_digest import assignment_digests
from reference import assert_same, bit, number, recorded, vectors

from snarkline.backend.naive_program import evaluate_naively
from snarkline.circuit import logic
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.sha256 import sha256, sha256_compress
from snarkline.circuit.recorder import FALSE, TRUE
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.values import Bits
from snarkline.circuit.words import UInt32
from snarkline.curves.curve import BLS12_381
from snarkline.curves.vector import FrVector
from snarkline.filecoin import gadgets
from snarkline.filecoin.porep.circuit import inclusion
from snarkline.filecoin.porep.merkle import level_arities
from snarkline.filecoin.registry import TreeShape

Recording = Callable[[ConstraintSystem], object]


def kinds(cs: ConstraintSystem) -> list[int]:
    """A bit, its negation, true, false."""
    literal = cs.alloc_bit().literal
    return [literal, literal ^ 1, TRUE, FALSE]


def pairs(cs: ConstraintSystem) -> None:
    x, y = kinds(cs), kinds(cs)
    for a in x:
        for b in y:
            logic.xor(cs, a, b)
            logic.and_(cs, a, b)
    for a, b in ((x[0], y[1]), (x[2], y[1])):
        cs.row({}, {}, logic.combine((a, 1), (b, -1)))


def choices(cs: ConstraintSystem) -> None:
    x, y, z = kinds(cs), kinds(cs), kinds(cs)
    for a in x:
        for b in y:
            for c in z:
                logic.ch(cs, a, b, c)
                logic.maj(cs, a, b, c)


def sums(cs: ConstraintSystem) -> None:
    literals = cs.alloc_bits(320).literals
    words = [literals[32 * i : 32 * i + 32][::-1] for i in range(10)]
    with logic.MultiEq(cs) as equalities:
        for k in range(2, 11):
            operands = list(words[:k])
            logic.add_words(cs, operands, equalities)
            operands[1] = logic.constant(0xDEADBEEF, 32)
            rotated, shifted = words[0][7:] + words[0][:7], words[9][3:] + [FALSE] * 3
            operands[0] = [logic.xor(cs, a, b) for a, b in zip(rotated, shifted, strict=True)]
            logic.add_words(cs, operands, equalities)


def compression(cs: ConstraintSystem) -> None:
    bits = cs.alloc_bits(768)
    state = [UInt32.from_bits_be(bits[512 + 32 * i : 544 + 32 * i]) for i in range(8)]
    cs.call(sha256_compress, state, bits[:512])


def packing(cs: ConstraintSystem) -> None:
    bits = cs.alloc_bits(300)
    for part in (bits[:254], bits[254:]):
        cs.expose(part.num())
    gadgets.pack_bits(cs, bits)
    gadgets.pack_bits(cs, bits[:40])


def hashed(n: int) -> Recording:
    return lambda cs: sha256(cs, cs.alloc_bits(n))


def insertion(log: int) -> Recording:
    def record(cs: ConstraintSystem) -> None:
        bits = list(cs.alloc_bits(log))
        numbers = [cs.alloc() for _ in range(1 << log)]
        gadgets.insert(cs, numbers[0], bits, numbers[1:])

    return record


def poseidon(arity: int) -> Recording:
    return lambda cs: cs.inputize(cs.call(neptune_poseidon, [cs.alloc() for _ in range(arity)]))


GADGETS: dict[str, Recording] = {
    "boolean": pairs, "ch_maj": choices, "addmany": sums, "sha256_compress": compression, "multipack": packing,
    **{f"sha256_{n}": hashed(n) for n in (8, 440, 448, 512, 1024)},
    **{f"insert_{1 << log}": insertion(log) for log in (1, 2, 3)},
    **{f"poseidon_{arity}": poseidon(arity) for arity in (2, 4, 8, 11)},
}  # fmt: skip

KIND_VALUES = {"boolean": [1, 0], "ch_maj": [1, 0, 1]}


@pytest.mark.parametrize("name", GADGETS)
def test_gadget_is_that_of_the_crates(name: str) -> None:
    system, expected = recorded(GADGETS[name]), vectors("gadgets.json")[name]
    assert_same(system, expected)
    bits, numbers = iter(range(len(system.given))), iter(range(len(system.given)))
    given = KIND_VALUES.get(name) or [bit(next(bits)) if b else number(next(numbers)) for b in system.bits]
    values = FrVector.from_ints(BLS12_381, evaluate_naively(system, given))
    assert assignment_digests(system, values) == (expected["inputs_sha256"], expected["aux_sha256"])


SHAPES = {
    "poseidon_2": (TreeShape(2), 64), "poseidon_4": (TreeShape(4), 64), "poseidon_8": (TreeShape(8), 64),
    "poseidon_8_2": (TreeShape(8, 2), 128), "poseidon_8_4_2": (TreeShape(8, 4, 2), 512),
    "poseidon_8_8": (TreeShape(8, 8), 512), "sha256_2": (TreeShape(2), 64),
}  # fmt: skip


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_inclusion_is_that_of_the_crates(name: str, private: bool) -> None:
    shape, leaves = SHAPES[name]

    def record(cs: ConstraintSystem) -> None:
        arities = level_arities(shape, leaves)
        root = inclusion(cs, cs.alloc(), None, arities, binary=name == "sha256_2")
        if not private:
            cs.inputize(root)

    assert_same(recorded(record), vectors("circuits.json")[f"por_{name}" + "_private_root" * private])


def test_constants_fold_to_nothing() -> None:
    """A message of constants has no wires (the crates' test_blank_hash)."""
    system = recorded(lambda cs: sha256(cs, Bits(cs, [])))
    assert (system.n_constraints, system.n_wires) == (0, 1)
