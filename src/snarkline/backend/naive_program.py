"""Witness programs from their definition, in Python integers: the oracle of the compiled interpreter."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.errors import MismatchError
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import Instruction, Op, add_sizes
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.template import Template


def evaluate_naively(system: StructuredR1CS, given: Sequence[int]) -> list[int]:
    """The values of all wires, from those that are given, in the order of `system.given`. Natives are not used.

    Raises MismatchError for another number of values or a value that is not a bit where one is expected.
    """
    if len(given) != len(system.given):
        raise MismatchError(f"{len(given)} values are given, the circuit takes {len(system.given)}")
    wires = [0] * system.n_wires
    wires[0] = 1
    for i, (wire, value) in enumerate(zip(system.given.tolist(), given, strict=True)):
        if not 0 <= value < (2 if system.bits[i] else system.curve.r):
            raise MismatchError(f"given value {i} is out of range")
        wires[wire] = value
    for run in system.runs:
        template = system.template_of(run)
        for i in range(run.count):
            ports = run.ports(i, i + 1)[0].tolist()
            first = run.first_wire + i * template.n_aux
            columns = [0, *ports, *range(first, first + template.n_aux)]
            local = run_template(template, [wires[wire] for wire in columns], system.curve.r)
            local[0] = 1
            for wire, value in zip(columns, local, strict=True):
                wires[wire] = value
    return wires


def run_template(template: Template, columns: list[int], r: int) -> list[int]:
    """The values of all columns of one instance, from those of the ports and given wires."""
    columns = [1, *columns[1:]]
    for instruction in template.program.instructions():
        values = _values(template, instruction, columns, r)
        for target, value in zip(instruction.targets, values, strict=True):
            columns[target] = value
    return columns


def _values(template: Template, instruction: Instruction, columns: list[int], r: int) -> list[int]:
    """What an instruction writes."""
    if instruction.op is Op.SOLVE:
        return [_solve(template, instruction, columns, r)]
    if instruction.rows:
        sums = [_dot(template.program.combinations, row, columns) % r for row in instruction.rows]
        return _from_combinations(instruction, sums, r)
    bits = [columns[literal >> 1] ^ (literal & 1) for literal in instruction.literals]
    if instruction.op is Op.ADD:
        _, m = add_sizes(template.program, instruction)
        words = [bits[i : i + m] for i in range(0, len(bits), m)]
        total = sum(sum(bit << i for i, bit in enumerate(word)) for word in words)
        return [total >> i & 1 for i in range(len(instruction.targets))]
    return [_bit(instruction.op, bits)]


def _bit(op: Op, bits: list[int]) -> int:
    if op is Op.XOR:
        return bits[0] ^ bits[1]
    if op is Op.AND:
        return bits[0] & bits[1]
    if op is Op.CH:
        return bits[1] if bits[0] else bits[2]
    if op is Op.MAJ:
        return int(sum(bits) >= 2)
    return bits[0]


def _from_combinations(instruction: Instruction, sums: list[int], r: int) -> list[int]:
    op = instruction.op
    if op is Op.LINEAR:
        return sums
    if op is Op.INVERSE:
        return [pow(sums[0], -1, r) if sums[0] else 0]
    if op is Op.IS_ZERO:
        return [int(sums[0] == 0)]
    if op is Op.BITS:
        return [sums[0] >> i & 1 for i in range(len(instruction.targets))]
    return [sums[0] * pow(sums[1], -1, r) % r if sums[1] else 0]


def _solve(template: Template, instruction: Instruction, columns: list[int], r: int) -> int:
    (row,), (target,) = instruction.rows, instruction.targets
    product = _dot(template.a, row, columns) * _dot(template.b, row, columns)
    c = dict(template.c.row(row))
    rest = sum(coefficient * columns[column] for column, coefficient in c.items() if column != target)
    return (product - rest) * pow(c[target], -1, r) % r


def _dot(matrix: SparseMatrix, row: int, columns: list[int]) -> int:
    return sum(coefficient * columns[column] for column, coefficient in matrix.row(row))
