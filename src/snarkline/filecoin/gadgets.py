"""Gadgets in the form of bellperson, storage-proofs-core and neptune: the same wires and rows in the same order.

Keys exist for circuits that are made of them, so nothing here may allocate or constrain otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.circuit.builder import Builder
from snarkline.circuit.gadget import gadget
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.circuit.logic import and_, combine, constrain_bit
from snarkline.circuit.recorder import FALSE, ONE, Combination, Literal
from snarkline.circuit.values import Bit, Bits, Num
from snarkline.errors import InternalError
from snarkline.filecoin.poseidon import FULL_ROUNDS, R, parameters
from snarkline.r1cs.program import Op

FIELD_BITS, CAPACITY = 255, 254


def to_bits_le(cs: Builder, number: Num) -> Bits:
    """255 bits of a number, least significant first. Not canonical: a value below 2^255 - r has two such writings."""
    bits = []
    for _ in range(FIELD_BITS):
        bits.append(cs.new(bit=True))
        constrain_bit(cs, bits[-1])
    cs.emit(Op.BITS, FIELD_BITS, cs.sum(number.terms), *bits)
    total: Combination = {column: 1 << i for i, column in enumerate(bits)}
    for column, coefficient in number.terms.items():
        total[column] = total.get(column, 0) - coefficient
    cs.row({}, {}, total)
    return Bits(cs, [2 * column for column in bits])


def reverse_within_bytes(bits: Bits) -> Bits:
    """Between least and most significant bit first in each byte; filled up with false to whole bytes."""
    literals = bits.literals + [FALSE] * (-len(bits) % 8)
    return Bits(bits.cs, [literal for i in range(0, len(literals), 8) for literal in literals[i : i + 8][::-1]])


def pack_bits(cs: Builder, bits: Bits) -> Num:
    """The number that the first 254 bits write, least significant first, on a wire of its own."""
    return allocate(cs, combine(*((literal, 1 << i) for i, literal in enumerate(bits.literals[:CAPACITY]))))


def allocate(cs: Builder, terms: Combination) -> Num:
    """A wire with the value of a combination: combination * 1 = wire."""
    column = cs.new()
    cs.emit(Op.SOLVE, column, cs.row(terms, {ONE: 1}, {column: 1}))
    return Num(cs, {column: 1})


def equal(cs: Builder, a: Num, b: Num) -> None:
    """a * 1 = b."""
    cs.row(a.terms, {ONE: 1}, b.terms)


def pick(cs: Builder, condition: Literal, a: Num, b: Num) -> Num:
    """a if the condition holds, else b: (b - a) * condition = b - c."""
    column = cs.new()
    row = cs.row((b - a).terms, combine((condition, 1)), (b - Num(cs, {column: 1})).terms)
    cs.emit(Op.SOLVE, column, row)
    return Num(cs, {column: 1})


def insert(cs: Builder, element: Num, bits: Sequence[Bit], siblings: Sequence[Num]) -> list[Num]:
    """The siblings with the element at the place that the bits write, least significant first. 2, 4 or 8 in all."""
    b = [bit.literal for bit in bits]
    place = {1: _insert_2, 2: _insert_4, 3: _insert_8}.get(len(b))
    if place is None or len(siblings) + 1 != 1 << len(b):
        raise InternalError(f"{len(siblings)} siblings and {len(b)} bits for an insertion")
    return place(cs, element, b, list(siblings))


def _insert_2(cs: Builder, x: Num, b: list[Literal], s: list[Num]) -> list[Num]:
    return [pick(cs, b[0], s[0], x), pick(cs, b[0], x, s[0])]


def _insert_4(cs: Builder, x: Num, bits: list[Literal], siblings: list[Num]) -> list[Num]:
    b0, b1 = bits
    b, c, d = siblings
    return [
        pick(cs, b1, b, pick(cs, b0, b, x)),
        pick(cs, b1, c, pick(cs, b0, x, b)),
        pick(cs, b1, pick(cs, b0, d, x), c),
        pick(cs, b1, pick(cs, b0, x, d), d),
    ]


def _insert_8(cs: Builder, x: Num, bits: list[Literal], siblings: list[Num]) -> list[Num]:
    b0, b1, b2 = bits
    b, c, d, e, f, g, h = siblings
    neither, both = and_(cs, b0 ^ 1, b1 ^ 1), and_(cs, b0, b1)
    return [
        pick(cs, b2, b, pick(cs, neither, x, b)),
        pick(cs, b2, c, pick(cs, b1, c, pick(cs, b0, x, b))),
        pick(cs, b2, d, pick(cs, b1, pick(cs, b0, d, x), c)),
        pick(cs, b2, e, pick(cs, both, x, d)),
        pick(cs, b2, pick(cs, neither, x, f), e),
        pick(cs, b2, pick(cs, b1, g, pick(cs, b0, x, f)), f),
        pick(cs, b2, pick(cs, b1, pick(cs, b0, h, x), g), g),
        pick(cs, b2, pick(cs, both, x, h), h),
    ]


@gadget
def sha256_pair(cs: Builder, left: Num, right: Num) -> Num:
    """SHA-256 of two elements, its two highest bits dropped: the hash of tree d."""
    message = reverse_within_bytes(to_bits_le(cs, left)) + reverse_within_bytes(to_bits_le(cs, right))
    return pack_bits(cs, reverse_within_bytes(sha256(cs, message)))


@gadget
def poseidon(cs: Builder, inputs: list[Num]) -> Num:
    """Poseidon of allocated numbers, with neptune's parameters. Three wires an S-box, sums between are allocated."""
    p = parameters(len(inputs))
    half = FULL_ROUNDS // 2
    # The tag is a constant through the first round.
    state = [cs.constant(pow(p.tag + p.first[0], 5, R) + p.full[0][0])]
    for element, before, after in zip(inputs, p.first[1:], p.full[0][1:], strict=True):
        state.append(_fifth_power(cs, element, before, after))
    state = _linear(cs, state, p.dense)
    for i in range(1, half):
        state = [_sbox(cs, element, k) for element, k in zip(state, p.full[i], strict=True)]
        state = _linear(cs, state, p.dense if i < half - 1 else list(zip(*p.pre_sparse, strict=True)))
    for constant, m in zip(p.partial, p.sparse, strict=True):
        first = _sbox(cs, state[0], constant)
        mixed = _weighted(cs, [first, *state[1:]], m.column)
        state = [mixed, *(element + first * v for element, v in zip(state[1:], m.row, strict=True))]
    for i in range(half):
        constants = p.full[half + i] if i < half - 1 else [0] * p.width
        state = [_sbox(cs, element, k) for element, k in zip(state, constants, strict=True)]
        state = _linear(cs, state, p.dense)
    return _allocated(cs, state[1])


def _sbox(cs: Builder, element: Num, constant: int) -> Num:
    return _fifth_power(cs, _allocated(cs, element), 0, constant)


def _allocated(cs: Builder, element: Num) -> Num:
    return element if element.column is not None else allocate(cs, element.terms)


def _fifth_power(cs: Builder, element: Num, before: int, after: int) -> Num:
    """(element + before)^5 + after, in three wires."""
    base = element + before if before else element
    square, fourth = cs.new(), cs.new()
    cs.emit(Op.SOLVE, square, cs.row(base.terms, base.terms, {square: 1}))
    cs.emit(Op.SOLVE, fourth, cs.row({square: 1}, {square: 1}, {fourth: 1}))
    fifth = cs.new()
    cs.emit(Op.SOLVE, fifth, cs.row(base.terms, {fourth: 1}, {fifth: 1, ONE: -after}))
    return Num(cs, {fifth: 1})


def _linear(cs: Builder, state: list[Num], matrix: Sequence[Sequence[int]]) -> list[Num]:
    return [_weighted(cs, state, row) for row in matrix]


def _weighted(cs: Builder, state: list[Num], weights: Sequence[int]) -> Num:
    """The sum of weight * element."""
    total: Combination = {}
    for element, weight in zip(state, weights, strict=True):
        for column, coefficient in element.terms.items():
            total[column] = (total.get(column, 0) + coefficient * weight) % R
    return Num(cs, total)
