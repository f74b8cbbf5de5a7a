"""One of several values, chosen by bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snarkline.circuit import logic
from snarkline.circuit.builder import Builder
from snarkline.circuit.recorder import FALSE
from snarkline.circuit.values import Bit, Bits, Num, Operand, combination
from snarkline.r1cs.program import Op


def select(cs: Builder, condition: Bit, a: Any, b: Any) -> Any:
    """a if the condition is 1, else b: for numbers, bits, arrays, and lists of them. One constraint for each item.

    (a - b) * condition = result - b.
    """
    cs.require_own(condition, a, b)
    if isinstance(a, Bit) and isinstance(b, Bit):
        return Bit(cs, logic.ch(cs, condition.literal, a.literal, b.literal))
    if isinstance(a, Bits) and isinstance(b, Bits) and len(a) == len(b) and type(a) is type(b):
        pairs = zip(a.literals, b.literals, strict=True)
        return type(a)(cs, [logic.ch(cs, condition.literal, x, y) for x, y in pairs])
    if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        return [select(cs, condition, x, y) for x, y in zip(a, b, strict=True)]
    if not isinstance(a, Num | Bit | int) or not isinstance(b, Num | Bit | int):
        raise cs.error("select takes two values of the same kind and size")
    return _select_number(cs, condition, a, b)


def _select_number(cs: Builder, condition: Bit, a: Operand, b: Operand) -> Num:
    one, other = (Num(cs, combination(cs, value)) for value in (a, b))
    if condition.is_constant:
        return other if condition.literal == FALSE else one
    difference = one - other
    if difference.constant is not None:
        return condition.num() * difference + other
    column = cs.new()
    row = cs.row(difference.terms, condition.num().terms, (Num(cs, {column: 1}) - other).terms)
    cs.emit(Op.SOLVE, column, row)
    return Num(cs, {column: 1})


def swap(cs: Builder, condition: Bit, a: Num, b: Num) -> tuple[Num, Num]:
    """(b, a) if the condition is 1, else (a, b). One constraint."""
    cs.require_own(condition)
    first = _select_number(cs, condition, b, a)
    return first, a + b - first


def choose(cs: Builder, index: Bits, values: Sequence[Any]) -> Any:
    """values[index], where the index is in binary, least significant bit first. len(values) - 1 selections."""
    if len(values) != 1 << len(index):
        raise cs.error(f"{1 << len(index)} values are needed for an index of {len(index)} bits; found {len(values)}")
    level = list(values)
    for bit in index:
        level = [select(cs, bit, level[i + 1], level[i]) for i in range(0, len(level), 2)]
    return level[0]
