"""Entries of constant tables, by an index in binary."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.circuit import logic
from snarkline.circuit.builder import Builder
from snarkline.circuit.recorder import ONE, TRUE
from snarkline.circuit.values import Bits, Num

MAX_BITS = 10


def lookup(cs: Builder, index: Bits, *tables: Sequence[int]) -> list[Num]:
    """The entry of each table at the index, least significant bit first. 2^k - k - 1 constraints for k bits, once.

    A table is a multilinear polynomial in the bits of the index: once the products of the bits are there, which the
    tables share, each entry is a linear combination of them.
    """
    cs.require_own(index)
    k = len(index)
    if k > MAX_BITS:
        raise cs.error(f"tables have up to 2^{MAX_BITS} entries; an index of {k} bits is asked for")
    if any(len(table) != 1 << k for table in tables):
        raise cs.error(f"tables of {1 << k} entries are needed for an index of {k} bits")
    products = [TRUE]
    for literal in index.literals:
        products += [logic.and_(cs, literal, product) for product in products]
    return [_combined(cs, products, _coefficients(table)) for table in tables]


def _coefficients(table: Sequence[int]) -> list[int]:
    """The coefficients of the products of bits: differences along every bit (Moebius transform)."""
    values = list(table)
    step = 1
    while step < len(values):
        for i in range(len(values)):
            if i & step:
                values[i] -= values[i ^ step]
        step *= 2
    return values


def _combined(cs: Builder, products: Sequence[int], coefficients: Sequence[int]) -> Num:
    terms = {ONE: 0}
    for literal, coefficient in zip(products, coefficients, strict=True):
        logic.add_literal(terms, literal, coefficient)
    return Num(cs, {column: value for column, value in terms.items() if value % cs.r or column == ONE})
