"""Witness programs: how every wire of a template is computed from its ports.

A program is a flat list of instructions over the template's columns. A *literal* is 2 * column + negated and stands for
a bit: literal 0 is true, since column 0 is the constant 1, and literal 1 is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from snarkline.errors import FormatError
from snarkline.r1cs.matrices import SparseMatrix

MAX_ADD_TERMS = 64
"""Terms of one ADD: what the carries of bit-sliced sums are written for."""


class Op(IntEnum):
    """Opcodes with their operands: d a column that is written, a b c e f g literals, r s rows of `combinations`."""

    XOR = 1  # d a b
    AND = 2  # d a b
    CH = 3  # d e f g: e ? f : g
    MAJ = 4  # d a b c
    COPY = 5  # d a
    ADD = 6  # n k m, d * n, literals * (k * m): the n low bits of the sum of k words of m bits, least significant first
    SOLVE = 7  # d r: d from constraint r, whose row of C is coefficient * d + rest; d is not in its rows of A and B
    LINEAR = 8  # d r: combination r
    INVERSE = 9  # d r: 1 / combination r, 0 for 0
    IS_ZERO = 10  # d r: the bit whether combination r is 0
    BITS = 11  # n r, d * n: the n low bits of the canonical value of combination r
    DIVIDE = 12  # d r s: combination r / combination s, 0 where s is 0


LITERAL_COUNT = {Op.XOR: 2, Op.AND: 2, Op.CH: 3, Op.MAJ: 3, Op.COPY: 1}
"""Literals of the instructions over bits whose size is fixed."""

ROW_COUNT = {Op.SOLVE: 1, Op.LINEAR: 1, Op.INVERSE: 1, Op.IS_ZERO: 1, Op.DIVIDE: 2}

WRITES_BITS = frozenset({Op.XOR, Op.AND, Op.CH, Op.MAJ, Op.COPY, Op.ADD, Op.IS_ZERO, Op.BITS})


class Instruction(NamedTuple):
    """One instruction. `words` is its length in the code; `rows` are rows of combinations, for SOLVE a constraint."""

    offset: int
    op: Op
    targets: tuple[int, ...]
    literals: tuple[int, ...]
    rows: tuple[int, ...]
    words: int


@dataclass(frozen=True, eq=False)
class Program:
    """`code` has dtype int32; rows of `combinations` are linear combinations over the template's columns."""

    code: npt.NDArray[np.int32]
    combinations: SparseMatrix

    @property
    def nbytes(self) -> int:
        return self.code.nbytes + self.combinations.nbytes

    def instructions(self, where: str = "program") -> Iterator[Instruction]:
        """The instructions in order. Raises FormatError, naming `where`, for code that is none."""
        code, at = self.code.tolist(), 0
        while at < len(code):
            instruction = _decode(code, at)
            if instruction is None:
                raise FormatError(None, f"{where}, word {at}", "an instruction", code[at : at + 4])
            yield instruction
            at += instruction.words


def _decode(code: list[int], at: int) -> Instruction | None:
    """The instruction at an offset, None where there is none."""
    try:
        op = Op(code[at])
    except ValueError:
        return None
    if op in LITERAL_COUNT:
        n_targets, n_literals, n_rows, head = 1, LITERAL_COUNT[op], 0, 1
    elif op in ROW_COUNT:
        n_targets, n_literals, n_rows, head = 1, 0, ROW_COUNT[op], 1
    elif op is Op.ADD:
        sizes = code[at + 1 : at + 4]
        if len(sizes) != 3 or min(sizes) < 1 or sizes[1] > MAX_ADD_TERMS:
            return None
        n_targets, n_literals, n_rows, head = sizes[0], sizes[1] * sizes[2], 0, 4
    else:  # BITS: the row stands before the targets
        if len(code) < at + 3 or code[at + 1] < 1:
            return None
        n_targets, n_literals, n_rows, head = code[at + 1], 0, 0, 3
    words = head + n_targets + n_literals + n_rows
    if at + words > len(code):
        return None
    first = at + head
    targets = tuple(code[first : first + n_targets])
    rest = tuple(code[first + n_targets : at + words])
    rows = (code[at + 2],) if op is Op.BITS else rest[n_literals:]
    return Instruction(at, op, targets, rest[:n_literals], rows, words)


def add_sizes(program: Program, instruction: Instruction) -> tuple[int, int]:
    """(k, m) of an ADD: its words, and the bits of each."""
    k, m = program.code[instruction.offset + 2 : instruction.offset + 4].tolist()
    return k, m
