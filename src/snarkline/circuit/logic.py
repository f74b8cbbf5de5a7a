"""Boolean operations on literals, with constants and negations folded.

Order of allocation, order of constraints and what folds to what are those of bellman's gadgets, so that circuits with
existing keys can be built from them: a result comes with one new column and its one constraint, a majority with two.
Results need no constraint of their own that makes them bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from snarkline.circuit.recorder import FALSE, ONE, TRUE, Combination, Literal, Recorder
from snarkline.r1cs.program import Op


def add_literal(combination: Combination, literal: Literal, coefficient: int) -> None:
    """combination += coefficient * literal, where a negated bit x is 1 - x."""
    if literal & 1:
        combination[ONE] = combination.get(ONE, 0) + coefficient
        coefficient = -coefficient
    column = literal >> 1
    combination[column] = combination.get(column, 0) + coefficient


def combine(*terms: tuple[Literal, int]) -> Combination:
    """The combination of literals with their coefficients."""
    result: Combination = {}
    for literal, coefficient in terms:
        add_literal(result, literal, coefficient)
    return result


def binary(literals: Iterable[Literal]) -> Combination:
    """The number that literals write in binary, least significant first."""
    result: Combination = {}
    weight = 1
    for literal in literals:
        add_literal(result, literal, weight)
        weight *= 2
    return result


def constrain_bit(cs: Recorder, column: int) -> None:
    """(1 - x) * x = 0."""
    cs.row({ONE: 1, column: -1}, {column: 1}, {}, "the value is neither 0 nor 1")


def xor(cs: Recorder, a: Literal, b: Literal) -> Literal:
    """a + b - 2ab, as 2a * b = a + b - c. Negations move to the result."""
    if a >> 1 == ONE:
        return b ^ a ^ 1
    if b >> 1 == ONE:
        return a ^ b ^ 1
    negated = (a ^ b) & 1
    if negated and a & 1:
        a, b = b, a
    a, b = a & ~1, b & ~1
    c = cs.new(bit=True)
    cs.row({a >> 1: 2}, {b >> 1: 1}, combine((a, 1), (b, 1), (2 * c, -1)))
    cs.emit(Op.XOR, c, a, b)
    return 2 * c + negated


def and_(cs: Recorder, a: Literal, b: Literal) -> Literal:
    """a * b = c. Of a plain and a negated bit the plain one is a."""
    if FALSE in (a, b):
        return FALSE
    if a == TRUE:
        return b
    if b == TRUE:
        return a
    if a & 1 and not b & 1:
        a, b = b, a
    c = cs.new(bit=True)
    cs.row(combine((a, 1)), combine((b, 1)), {c: 1})
    cs.emit(Op.AND, c, a, b)
    return 2 * c


def or_(cs: Recorder, a: Literal, b: Literal) -> Literal:
    """not (not a and not b)."""
    return and_(cs, a ^ 1, b ^ 1) ^ 1


def ch(cs: Recorder, a: Literal, b: Literal, c: Literal) -> Literal:
    """b if a else c, as (b - c) * a = d - c. A constant a with variable b or c is not folded, unless it is false."""
    if max(a, b, c) <= FALSE:
        return b if a == TRUE else c
    if a == FALSE:
        return c
    if b == FALSE:
        return and_(cs, a ^ 1, c)
    if c == FALSE:
        return and_(cs, a, b)
    if c == TRUE:
        return and_(cs, a, b ^ 1) ^ 1
    if b == TRUE:
        return and_(cs, a ^ 1, c ^ 1) ^ 1
    d = cs.new(bit=True)
    cs.row(combine((b, 1), (c, -1)), combine((a, 1)), combine((2 * d, 1), (c, -1)))
    cs.emit(Op.CH, d, a, b, c)
    return 2 * d


def maj(cs: Recorder, a: Literal, b: Literal, c: Literal) -> Literal:
    """The majority of three, as (2bc - b - c) * a = bc - d. d is allocated before bc; its constraint comes after."""
    if max(a, b, c) <= FALSE:
        return TRUE if a + b + c < 2 else FALSE
    if FALSE in (a, b, c):
        if a == FALSE:
            return and_(cs, b, c)
        return and_(cs, a, c if b == FALSE else b)
    if c == TRUE:
        return or_(cs, a, b)
    if b == TRUE:
        return or_(cs, a, c)
    if a == TRUE:
        return or_(cs, b, c)
    d = cs.new(bit=True)
    bc = and_(cs, b, c)
    cs.row(combine((bc, 2), (b, -1), (c, -1)), combine((a, 1)), combine((bc, 1), (2 * d, -1)))
    cs.emit(Op.MAJ, d, a, b, c)
    return 2 * d


class MultiEq:
    """Equalities between sums of bits, several of them in one constraint: each takes its own binary places.

    A context manager: what is left is written at the end of the block. Sums that are equal as integers of n bits must
    be below 2^n on both sides; 253 places fit below the modulus of both curves.
    """

    PLACES = 253

    def __init__(self, cs: Recorder) -> None:
        self._cs = cs
        self._used = 0
        self._left: Combination = {}
        self._right: Combination = {}

    def equal(self, n_bits: int, left: Combination, right: Combination) -> None:
        """left = right, both below 2^n_bits. Raises CircuitError for more bits than fit below the modulus."""
        if n_bits > self.PLACES:
            raise self._cs.error(f"a sum of {n_bits} bits does not fit a constraint, which has {self.PLACES} places")
        if self._used + n_bits > self.PLACES:
            self.flush()
        for total, part in ((self._left, left), (self._right, right)):
            for column, coefficient in part.items():
                total[column] = total.get(column, 0) + (coefficient << self._used)
        self._used += n_bits

    def flush(self) -> None:
        """Writes the constraint for what has come together."""
        if self._used:
            self._cs.row(self._left, {ONE: 1}, self._right)
            self._used, self._left, self._right = 0, {}, {}

    def __enter__(self) -> MultiEq:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()


def constant(value: int, width: int) -> list[Literal]:
    """The bits of a constant, least significant first."""
    return [TRUE if value >> i & 1 else FALSE for i in range(width)]


def add_words(cs: Recorder, words: Sequence[Sequence[Literal]], equalities: MultiEq) -> list[Literal]:
    """The sum of words of the same width, modulo 2^width. The carry is allocated too, and dropped."""
    width = len(words[0])
    if all(literal <= FALSE for word in words for literal in word):
        return constant(sum((literal == TRUE) << i for word in words for i, literal in enumerate(word)), width)
    left: Combination = {}
    for word in words:
        for i, literal in enumerate(word):
            add_literal(left, literal, 1 << i)
    n = (len(words) * ((1 << width) - 1)).bit_length()
    columns = []
    for _ in range(n):
        columns.append(cs.new(bit=True))
        constrain_bit(cs, columns[-1])
    cs.emit(Op.ADD, n, len(words), width, *columns, *(literal for word in words for literal in word))
    equalities.equal(n, left, {column: 1 << i for i, column in enumerate(columns)})
    return [2 * column for column in columns[:width]]
