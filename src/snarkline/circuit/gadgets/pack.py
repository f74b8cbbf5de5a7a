"""Numbers to bits and back."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.circuit import logic
from snarkline.circuit.builder import Builder
from snarkline.circuit.recorder import ONE, Combination
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bit, Bits, Num, Operand, combination
from snarkline.circuit.words import Word
from snarkline.r1cs.program import Op


@gadget
def num2bits(cs: Builder, number: Num, n: int) -> Bits:
    """The `n` bits of a number, least significant first: the number is below 2^n. n + 1 constraints.

    With as many bits as the modulus has, the bits are those of the value in [0, r): of the two ways in which small
    values could be written, the one above r - 1 is excluded. Raises CircuitError for more bits.
    """
    return to_bits(cs, number, n, f"the value is not below 2^{n}")


def to_bits(cs: Builder, number: Num, n: int, broken: str) -> Bits:
    """`num2bits`, where `broken` says what a larger number means."""
    if not 0 < n <= cs.r.bit_length():
        raise cs.error(f"a number of {cs.curve.name} has 1 to {cs.r.bit_length()} bits; {n} are asked for")
    constant = number.constant
    if constant is not None:
        if constant >> n:
            raise cs.error(f"the constant does not fit {n} bits")
        return Bits(cs, logic.constant(constant, n))
    if n == cs.r.bit_length():
        return _canonical_bits(cs, number)
    columns = []
    for _ in range(n):
        columns.append(cs.new(bit=True))
        logic.constrain_bit(cs, columns[-1])
    cs.emit(Op.BITS, n, cs.sum(number.terms), *columns)
    cs.row(logic.binary(2 * column for column in columns), {ONE: 1}, number.terms, broken)
    return Bits(cs, [2 * column for column in columns])


def _canonical_bits(cs: Builder, number: Num) -> Bits:
    """The bits of the value in [0, r), in bellman's order of allocation and constraints (to_bits_le_strict).

    From the top: while the bits follow the ones of r - 1, a bit where r - 1 has a zero must be 0. So each bit x at a
    zero gets (1 - f - x) * x = 0, where f says whether all bits at ones above it are 1, in place of (1 - x) * x = 0.
    """
    place = cs.position()
    columns: list[int] = []
    run: list[int] = []
    follows: int | None = None
    for i in reversed(range(cs.r.bit_length())):
        if (cs.r - 1) >> i & 1:
            column = cs.new(bit=True)
            logic.constrain_bit(cs, column)
            run.append(2 * column)
        else:
            if run:
                run += [] if follows is None else [follows]
                follows, run = _all_of(cs, run), []
            column = cs.new(bit=True)
            one_of_three: Combination = {ONE: 1, column: -1}
            if follows is not None:
                logic.add_literal(one_of_three, follows, -1)
            cs.row(one_of_three, {column: 1}, {})
        columns.append(column)
    columns.reverse()
    cs.emit_at(place, Op.BITS, len(columns), cs.sum(number.terms), *columns)
    difference = logic.binary(2 * column for column in columns)
    for column, coefficient in number.terms.items():
        difference[column] = difference.get(column, 0) - coefficient
    cs.row({}, {}, difference)
    return Bits(cs, [2 * column for column in columns])


def _all_of(cs: Builder, literals: Sequence[int]) -> int:
    result = literals[0]
    for literal in literals[1:]:
        result = logic.and_(cs, result, literal)
    return result


def range_check(cs: Builder, number: Num, n: int) -> None:
    """The number is below 2^n. n + 1 constraints."""
    cs.call(num2bits, number, n)


def unpack(cs: Builder, number: Num, word: type[Word]) -> Word:
    """The number as a machine word, which it fits."""
    return word(cs, cs.call(num2bits, number, word.WIDTH).literals)


def pack(cs: Builder, bits: Bits) -> list[Num]:
    """As many bits a number as fit below the modulus, first bit least significant. No constraints."""
    capacity = cs.r.bit_length() - 1
    return [bits[start : start + capacity].num() for start in range(0, len(bits), capacity)]


def to_number(cs: Builder, value: Operand | Bits) -> Num:
    """A bit, an array of bits (least significant first) or a constant as a number. No constraints."""
    return value.num() if isinstance(value, Bits | Bit) else Num(cs, combination(cs, value))
