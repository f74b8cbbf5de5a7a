"""Comparison of numbers."""

from __future__ import annotations

from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.pack import to_bits
from snarkline.circuit.recorder import FALSE, ONE, TRUE
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bit, Num, Operand, combination
from snarkline.r1cs.program import Op


@gadget
def is_zero(cs: Builder, number: Num) -> Bit:
    """Whether a number is 0. Two constraints: x * inverse = 1 - result, x * result = 0."""
    constant = number.constant
    if constant is not None:
        return Bit(cs, FALSE if constant else TRUE)
    result, inverse = cs.new(bit=True), cs.new()
    terms = cs.sum(number.terms)
    cs.emit(Op.IS_ZERO, result, terms)
    cs.emit(Op.INVERSE, inverse, terms)
    cs.row(number.terms, {inverse: 1}, {ONE: 1, result: -1})
    cs.row(number.terms, {result: 1}, {})
    return Bit(cs, 2 * result)


def is_equal(cs: Builder, a: Operand, b: Operand) -> Bit:
    """Whether two numbers are equal. Two constraints."""
    return is_zero(cs, Num(cs, combination(cs, a)) - b)


def enforce_nonzero(cs: Builder, number: Num) -> Num:
    """The inverse of a number, which cannot be 0. One constraint: x * inverse = 1."""
    cs.require_own(number)
    inverse = cs.new()
    cs.emit(Op.INVERSE, inverse, cs.sum(number.terms))
    cs.row(number.terms, {inverse: 1}, {ONE: 1}, "a value that must not be 0 is 0")
    return Num(cs, {inverse: 1})


def divide(cs: Builder, a: Operand, b: Num) -> Num:
    """a / b. b cannot be 0. Two constraints."""
    return enforce_nonzero(cs, b) * Num(cs, combination(cs, a))


@gadget
def less_than(cs: Builder, a: Num, b: Num, n: int) -> Bit:
    """Whether a < b, for numbers below 2^n, which is up to the caller to check. n + 2 constraints.

    2^n + a - b has n + 1 bits; the topmost says whether a >= b.
    """
    if not 0 < n <= cs.r.bit_length() - 2:
        raise cs.error(f"numbers of 1 to {cs.r.bit_length() - 2} bits can be compared; {n} are asked for")
    return ~to_bits(cs, a - b + (1 << n), n + 1, f"a value that is compared is not below 2^{n}")[n]


def less_equal(cs: Builder, a: Num, b: Num, n: int) -> Bit:
    """Whether a <= b, for numbers below 2^n, which is up to the caller to check. n + 2 constraints."""
    return ~cs.call(less_than, b, a, n)
