"""What circuits compute with: bits, numbers of the scalar field, and arrays of bits.

None of them has a value: a circuit is recorded before there are inputs. Asking one for its truth value, comparing it
with `==` or making an int of it raises CircuitError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, Self, overload

from snarkline.circuit import logic
from snarkline.circuit.recorder import FALSE, ONE, TRUE, Combination, Literal, Recorder
from snarkline.r1cs.program import Op


class Wired:
    """A value that belongs to a constraint system."""

    __slots__ = ("cs",)

    def __init__(self, cs: Recorder) -> None:
        self.cs = cs

    def _no_value(self, what: str, gadget: str) -> NoReturn:
        raise self.cs.error(
            f"{what} depends on the value of a wire, which is not there when a circuit is recorded: use {gadget}"
        )

    def __bool__(self) -> NoReturn:
        self._no_value("a condition", "select(cs, bit, a, b), or &, | and ~ of bits")

    def __int__(self) -> NoReturn:
        self._no_value("a conversion to int", "the number itself, or num2bits(cs, x, n) for its bits")

    __index__ = __float__ = __int__

    def __eq__(self, other: object) -> NoReturn:
        self._no_value("a comparison by == or !=", "is_equal(cs, a, b), or cs.equal(a, b) to require it")

    __hash__ = object.__hash__

    def _less(self, other: object) -> NoReturn:
        self._no_value("a comparison by < or >", "less_than(cs, a, b, n) of numbers below 2^n")

    def _less_equal(self, other: object) -> NoReturn:
        self._no_value("a comparison by <= or >=", "less_equal(cs, a, b, n) of numbers below 2^n")

    __lt__ = __gt__ = _less
    __le__ = __ge__ = _less_equal

    def __truediv__(self, other: object) -> NoReturn:
        self._no_value("a quotient", "divide(cs, a, b), which divides in the scalar field")

    def __floordiv__(self, other: object) -> NoReturn:
        self._no_value("a quotient in whole numbers", "the upper bits of num2bits(cs, x, n) to divide by a power of 2")

    def __mod__(self, other: object) -> NoReturn:
        self._no_value("a remainder", "the lowest bits of num2bits(cs, x, n) for one by a power of 2")

    def __pow__(self, other: object) -> NoReturn:
        self._no_value("a power", "products, as x * x")

    __rtruediv__, __rfloordiv__, __rmod__, __rpow__ = __truediv__, __floordiv__, __mod__, __pow__

    def _of_same_system(self, other: object) -> None:
        if not isinstance(other, Wired):
            raise self.cs.error(f"bits of the circuit are expected; found {_kind(other)}")
        if other.cs is not self.cs:
            raise self.cs.error("a wire of another constraint system, or of another gadget, is used here")


class Bit(Wired):
    """A wire that the constraints make 0 or 1, its negation, or a constant."""

    __slots__ = ("literal",)

    def __init__(self, cs: Recorder, literal: Literal) -> None:
        super().__init__(cs)
        self.literal = literal

    @property
    def is_constant(self) -> bool:
        return self.literal <= FALSE

    def __invert__(self) -> Bit:
        return Bit(self.cs, self.literal ^ 1)

    def __xor__(self, other: Bit | bool | int) -> Bit:
        return Bit(self.cs, logic.xor(self.cs, self.literal, self._literal(other)))

    def __and__(self, other: Bit | bool | int) -> Bit:
        return Bit(self.cs, logic.and_(self.cs, self.literal, self._literal(other)))

    def __or__(self, other: Bit | bool | int) -> Bit:
        return Bit(self.cs, logic.or_(self.cs, self.literal, self._literal(other)))

    __rxor__, __rand__, __ror__ = __xor__, __and__, __or__

    def num(self) -> Num:
        """The bit as a number, at no cost."""
        return Num(self.cs, logic.combine((self.literal, 1)))

    def __add__(self, other: Operand) -> Num:
        return self.num() + other

    def __sub__(self, other: Operand) -> Num:
        return self.num() - other

    def __rsub__(self, other: Operand) -> Num:
        return other - self.num() if isinstance(other, Num) else -self.num() + other

    def __mul__(self, other: Operand) -> Num:
        return self.num() * other

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Num:
        return -self.num()

    def _literal(self, other: Bit | bool | int) -> Literal:
        if isinstance(other, Bit):
            self._of_same_system(other)
            return other.literal
        if isinstance(other, int) and other in (0, 1):
            return TRUE if other else FALSE
        raise self.cs.error(f"a bit is expected, or 0 or 1; found {_kind(other)}")


class Num(Wired):
    """A linear combination of wires. Sums and multiples cost nothing; a product of two that vary is a constraint."""

    __slots__ = ("terms",)

    def __init__(self, cs: Recorder, terms: Combination) -> None:
        super().__init__(cs)
        self.terms = terms

    @property
    def constant(self) -> int | None:
        """The value in [0, r) of a number that does not depend on wires, else None."""
        if any(column != ONE and coefficient % self.cs.r for column, coefficient in self.terms.items()):
            return None
        return self.terms.get(ONE, 0) % self.cs.r

    @property
    def column(self) -> int | None:
        """The wire that the number is, or None for a combination."""
        if len(self.terms) == 1:
            ((column, coefficient),) = self.terms.items()
            if coefficient == 1 and column != ONE:
                return column
        return None

    def allocated(self) -> Num:
        """The number as one wire: the same, or a new wire with a constraint. A constant is allocated too."""
        if self.column is not None:
            return self
        column = self.cs.new()
        row = self.cs.row(self.terms, {ONE: 1}, {column: 1})
        self.cs.emit(Op.SOLVE, column, row)
        return Num(self.cs, {column: 1})

    def __add__(self, other: Operand) -> Num:
        return self._plus(other, 1)

    def __sub__(self, other: Operand) -> Num:
        return self._plus(other, -1)

    def __rsub__(self, other: Operand) -> Num:
        return (-self)._plus(other, 1)

    def __neg__(self) -> Num:
        return self._times(-1)

    def __mul__(self, other: Operand) -> Num:
        if isinstance(other, int):
            return self._times(other)
        terms = self._combination(other)
        for number, factor in ((self, Num(self.cs, terms)), (Num(self.cs, terms), self)):
            constant = factor.constant
            if constant is not None:
                return number._times(constant)
        column = self.cs.new()
        row = self.cs.row(self.terms, terms, {column: 1})
        self.cs.emit(Op.SOLVE, column, row)
        return Num(self.cs, {column: 1})

    __radd__, __rmul__ = __add__, __mul__

    def _plus(self, other: Operand, sign: int) -> Num:
        terms = dict(self.terms)
        for column, coefficient in self._combination(other).items():
            total = (terms.get(column, 0) + sign * coefficient) % self.cs.r
            if total:
                terms[column] = total
            else:
                terms.pop(column, None)
        return Num(self.cs, terms)

    def _times(self, factor: int) -> Num:
        return Num(self.cs, {column: coefficient * factor % self.cs.r for column, coefficient in self.terms.items()})

    def _combination(self, other: Operand) -> Combination:
        if isinstance(other, Num):
            self._of_same_system(other)
            return other.terms
        return combination(self.cs, other)


Operand = Num | Bit | int


def combination(cs: Recorder, value: Operand) -> Combination:
    """The linear combination that a number, a bit or an int is. Raises CircuitError for another system's wires."""
    if isinstance(value, Num):
        terms = value.terms
    elif isinstance(value, Bit):
        terms = logic.combine((value.literal, 1))
    elif isinstance(value, int):
        return {ONE: value}
    else:
        raise cs.error(f"a number, a bit or an int is expected; found {_kind(value)}")
    if value.cs is not cs:
        raise cs.error("a wire of another constraint system, or of another gadget, is used here")
    return terms


@dataclass(frozen=True)
class Sized:
    """An array type: `size` values of the type `item`. A size is a number or the name of a circuit's parameter."""

    item: object
    size: int | str


class Bits(Wired):
    """An array of bits. Operators work bit by bit; slices and joins cost nothing.

    As a type of inputs it is written `Bits[n]`.
    """

    __slots__ = ("literals",)

    def __init__(self, cs: Recorder, literals: Sequence[Literal]) -> None:
        super().__init__(cs)
        self.literals = list(literals)

    def __class_getitem__(cls, size: int | str) -> Sized:
        return Sized(cls, size)

    @classmethod
    def of(cls, bits: Sequence[Bit]) -> Bits:
        """The bits as an array; there must be at least one."""
        result = Bits(bits[0].cs, [])
        result.literals = [result._same(bit).literal for bit in bits]
        return result

    def __len__(self) -> int:
        return len(self.literals)

    def __iter__(self) -> Iterator[Bit]:
        return (Bit(self.cs, literal) for literal in self.literals)

    @overload
    def __getitem__(self, index: int) -> Bit: ...
    @overload
    def __getitem__(self, index: slice) -> Bits: ...
    def __getitem__(self, index: int | slice) -> Bit | Bits:
        if isinstance(index, slice):
            return Bits(self.cs, self.literals[index])
        return Bit(self.cs, self.literals[index])

    def __add__(self, other: Bits) -> Bits:
        self._of_same_system(other)
        return Bits(self.cs, self.literals + other.literals)

    def __invert__(self) -> Self:
        return self._like([literal ^ 1 for literal in self.literals])

    def __xor__(self, other: Bits) -> Self:
        return self._each(logic.xor, other)

    def __and__(self, other: Bits) -> Self:
        return self._each(logic.and_, other)

    def __or__(self, other: Bits) -> Self:
        return self._each(logic.or_, other)

    def num(self) -> Num:
        """The number that the bits write in binary, least significant first, at no cost."""
        if len(self) >= self.cs.r.bit_length():
            raise self.cs.error(f"{len(self)} bits do not fit a number of {self.cs.curve.name}")
        return Num(self.cs, logic.binary(self.literals))

    def _like(self, literals: list[Literal]) -> Self:
        return type(self)(self.cs, literals)

    def _each(self, operation: Callable[[Recorder, Literal, Literal], Literal], other: Bits) -> Self:
        if not isinstance(other, Bits):
            raise self.cs.error(f"an array of bits is expected; found {_kind(other)}")
        self._of_same_system(other)
        if len(other) != len(self):
            raise self.cs.error(f"arrays of {len(self)} and {len(other)} bits do not go together")
        pairs = zip(self.literals, other.literals, strict=True)
        return self._like([operation(self.cs, a, b) for a, b in pairs])

    def _same(self, bit: object) -> Bit:
        if not isinstance(bit, Bit):
            raise self.cs.error(f"a bit is expected; found {_kind(bit)}")
        self._of_same_system(bit)
        return bit


def _kind(value: object) -> str:
    """What a value is, for messages, without showing it."""
    if isinstance(value, Num):
        return "a number (make bits of it with num2bits)"
    return f"a value of type {type(value).__name__}"
