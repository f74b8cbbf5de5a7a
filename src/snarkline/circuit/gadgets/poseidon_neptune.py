"""neptune's circuit of Poseidon, in the order of allocation and constraints that its keys are made for.

It works on the optimised form of the permutation (eprint 2019/458, appendix B): constants move behind the S-boxes, and
the matrices of the partial rounds become sparse. Values are those of the plain form; wires and constraints are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.poseidon import name_native
from snarkline.circuit.gadgets.poseidon_parameters import Matrix, PoseidonParameters, Vector, neptune_parameters
from snarkline.circuit.recorder import ONE
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Num
from snarkline.curves.curve import BLS12_381
from snarkline.r1cs.program import Op

NO_TAG = -1


@gadget
def neptune_poseidon(cs: Builder, inputs: Sequence[Num], tag: int = NO_TAG) -> Num:
    """The hash of 2, 4, 8, 11, 16, 24 or 36 numbers over BLS12-381, with the tag of a Merkle tree if none is given.

    3 * arity + 4 * t * (RF - 1) + 4 * RP + 1 constraints: 311 for two inputs, 505 for eight.
    """
    if cs.curve is not BLS12_381:
        raise cs.error(f"neptune's Poseidon is over bls12_381, not {cs.curve.name}")
    try:
        parameters = neptune_parameters(len(inputs), None if tag == NO_TAG else tag)
    except KeyError:
        raise cs.error(f"neptune has no Poseidon for {len(inputs)} inputs") from None
    return neptune_permute(cs, parameters, inputs)


def neptune_permute(cs: Builder, parameters: PoseidonParameters, inputs: Sequence[Num]) -> Num:
    """The hash with the given parameters, as one wire."""
    plan, half = optimised(parameters), parameters.full_rounds // 2
    n_rounds = parameters.full_rounds + parameters.partial_rounds
    before, after = plan.first, plan.after_full
    # The tag is a constant: its first S-box is folded.
    tag = pow(parameters.tag + before[0], 5, cs.r) + after[0][0]
    state = [cs.constant(tag)]
    state += [_box(cs, x, p, k) for x, p, k in zip(inputs, before[1:], after[0][1:], strict=True)]
    state = plan.linear(cs, 0, half, state)
    full = 1
    for number in range(1, n_rounds):
        if parameters.is_full(number):
            constants = after[full] if full < len(after) else [None] * parameters.width
            state = [_box(cs, x, 0, k) for x, k in zip(state, constants, strict=True)]
            full += 1
        else:
            state[0] = _box(cs, state[0], 0, plan.after_partial[number - half])
        state = plan.linear(cs, number, half, state)
    output = state[parameters.output].allocated()
    name_native(cs, parameters, inputs, output)
    return output


def _box(cs: Builder, x: Num, before: int, after: int | None) -> Num:
    """(x + before)^5 + after, on a wire: x is allocated first if it is none. `after` None adds nothing."""
    base = (x.allocated() + before).terms
    square, fourth, fifth = ({cs.new(): 1} for _ in range(3))
    rest = {} if after is None else {ONE: -after}
    for a, b, result, constant in ((base, base, square, {}), (square, square, fourth, {}), (base, fourth, fifth, rest)):
        (column,) = result
        cs.emit(Op.SOLVE, column, cs.row(a, b, {**result, **constant}))
    return Num(cs, fifth)


@dataclass(frozen=True)
class Optimised:
    """`first` is added before the first S-boxes; `after_full` behind those of full rounds, `after_partial` behind that
    of a partial round. `pre_sparse` multiplies a row vector, before the partial rounds; each sparse matrix is a first
    column and the rest of a first row."""

    matrix: Matrix
    first: Vector
    after_full: list[Vector]
    after_partial: Vector
    pre_sparse: Matrix
    sparse: list[tuple[Vector, Vector]]

    def linear(self, cs: Builder, number: int, half: int, state: list[Num]) -> list[Num]:
        """The linear layer of a round."""
        t = len(state)
        if number == half - 1:
            return [_dot(cs, [self.pre_sparse[i][j] for i in range(t)], state) for j in range(t)]
        if half <= number < half + len(self.sparse):
            column, row = self.sparse[number - half]
            rest = [_dot(cs, [factor, 1], [state[0], x]) for factor, x in zip(row, state[1:], strict=True)]
            return [_dot(cs, column, state), *rest]
        return [_dot(cs, row, state) for row in self.matrix]


@cache
def optimised(parameters: PoseidonParameters) -> Optimised:
    """The optimised form of a permutation with a symmetric matrix."""
    r, h, partial = parameters.curve.r, parameters.full_rounds // 2, parameters.partial_rounds
    matrix = [list(row) for row in parameters.matrix]
    inverse = _inverse(matrix, r)
    keys = [list(parameters.round_constants(i)) for i in range(parameters.full_rounds + partial)]
    after_full = [_times(inverse, keys[i], r) for i in range(1, h)]
    # Constants of the partial rounds move back through the inverse, all but element 0, which an S-box stops.
    total, after_partial = keys[h + partial], []
    for i in range(partial):
        moved = _times(inverse, total, r)
        after_partial.append(moved[0])
        total = [(a + b) % r for a, b in zip(keys[h + partial - 1 - i], [0, *moved[1:]], strict=True)]
    after_full.append(_times(inverse, total, r))
    after_full += [_times(inverse, keys[i], r) for i in range(h + partial + 1, parameters.full_rounds + partial)]
    pre_sparse, sparse = _factor(matrix, partial, r)
    return Optimised(matrix, keys[0], after_full, after_partial[::-1], pre_sparse, sparse)


def _factor(matrix: Matrix, n: int, r: int) -> tuple[Matrix, list[tuple[Vector, Vector]]]:
    """`n` sparse matrices, and what stands before them, whose product is that of `n` times the matrix."""
    t, current, sparse = len(matrix), matrix, []
    for _ in range(n):
        inner = [row[1:] for row in current[1:]]
        column = _times(_inverse(inner, r), [row[0] for row in current[1:]], r)
        sparse.append(([current[0][0], *column], current[0][1:]))
        bordered = [[int(j == 0) for j in range(t)], *([0, *row] for row in inner)]
        columns = list(zip(*bordered, strict=True))
        current = [[sum(a * b for a, b in zip(row, c, strict=True)) % r for c in columns] for row in matrix]
    return current, sparse[::-1]


def _times(matrix: Matrix, vector: Vector, r: int) -> Vector:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) % r for row in matrix]


def _inverse(matrix: Matrix, r: int) -> Matrix:
    """By Gauss and Jordan."""
    n = len(matrix)
    rows = [[*row, *(int(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for c in range(n):
        pivot = next(i for i in range(c, n) if rows[i][c])
        rows[c], rows[pivot] = rows[pivot], rows[c]
        unit = pow(rows[c][c], -1, r)
        rows[c] = [x * unit % r for x in rows[c]]
        for i in range(n):
            factor = rows[i][c]
            if i != c and factor:
                rows[i] = [(x - factor * y) % r for x, y in zip(rows[i], rows[c], strict=True)]
    return [row[n:] for row in rows]


def _dot(cs: Builder, factors: Sequence[int], numbers: Sequence[Num]) -> Num:
    terms: dict[int, int] = {}
    for factor, number in zip(factors, numbers, strict=True):
        for column, coefficient in number.terms.items():
            terms[column] = (terms.get(column, 0) + factor * coefficient) % cs.r
    return Num(cs, terms)
