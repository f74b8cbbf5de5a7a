"""Gadgets in the form of bellperson and storage-proofs-core: the same wires and rows in the same order.

SHA-256 and neptune's Poseidon are among the general gadgets (`snarkline.circuit.gadgets`), in that form already.

Keys exist for circuits that are made of them, so nothing here may allocate or constrain otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.circuit.logic import and_, combine, constrain_bit
from snarkline.circuit.recorder import FALSE, ONE, Combination, Literal
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bit, Bits, Num
from snarkline.errors import InternalError
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
