"""Poseidon as neptune instantiates it over BLS12-381's scalar field: S-box x^5, 128 bits, Cauchy matrices.

Grassi, Khovratovich, Rechberger, Roy, Schofnegger, "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems",
USENIX Security 2021 (eprint 2019/458): the permutation in section 2, the constants' Grain generator in appendix F, the
partial rounds with sparse matrices in appendix B. The state's first element is a domain tag, the hash its second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from snarkline.curves.curve import BLS12_381

R = BLS12_381.r
FULL_ROUNDS = 8
PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57, 16: 59, 24: 59, 36: 60}
"""By arity. What the search of appendix C gives with neptune's security margin."""

Vector = list[int]
Matrix = list[Vector]


@dataclass(frozen=True)
class Sparse:
    """A matrix that is the identity but for its first row and column.

    new[0] = <column, state>, new[j] = state[j] + row[j - 1] * state[0].
    """

    column: tuple[int, ...]
    row: tuple[int, ...]


@dataclass(frozen=True)
class Parameters:
    """The constants for an arity.

    `first` is added before the first S-boxes; `full` after the S-boxes of each full round but the last (t values),
    `partial` after that of each partial round. `dense` follows every full round but the last of the first half, which
    `pre_sparse` follows (applied from the right: new[j] = sum s[i] pre_sparse[i][j]); `sparse` the partial rounds.
    """

    arity: int
    tag: int
    first: tuple[int, ...]
    full: tuple[tuple[int, ...], ...]
    partial: tuple[int, ...]
    dense: tuple[tuple[int, ...], ...]
    pre_sparse: tuple[tuple[int, ...], ...]
    sparse: tuple[Sparse, ...]

    @property
    def width(self) -> int:
        return self.arity + 1


@cache
def parameters(arity: int) -> Parameters:
    """The constants for trees of an arity: the tag is 2^arity - 1. Raises KeyError for an arity without rounds."""
    t, half, n_partial = arity + 1, FULL_ROUNDS // 2, PARTIAL_ROUNDS[arity]
    keys = _round_keys(t, n_partial)
    dense = [[pow(i + j + t, -1, R) for j in range(t)] for i in range(t)]
    inverse = invert(dense)
    carried = list(keys[half + n_partial])
    partial = []
    for i in range(n_partial):
        moved = apply(inverse, carried)
        partial.append(moved[0])
        carried = [(k + m) % R for k, m in zip(keys[half + n_partial - 1 - i], [0, *moved[1:]], strict=True)]
    full = [apply(inverse, keys[i]) for i in range(1, half)]
    full.append(apply(inverse, carried))
    full += [apply(inverse, keys[i]) for i in range(half + n_partial + 1, FULL_ROUNDS + n_partial)]
    sparse, pre_sparse = _factor(dense, n_partial)
    return Parameters(
        arity=arity,
        tag=(1 << arity) - 1,
        first=tuple(keys[0]),
        full=tuple(map(tuple, full)),
        partial=tuple(reversed(partial)),
        dense=tuple(map(tuple, dense)),
        pre_sparse=tuple(map(tuple, pre_sparse)),
        sparse=tuple(sparse),
    )


def poseidon_hash(inputs: Sequence[int]) -> int:
    """The hash of as many elements as there are parameters for, tagged as a tree's node. In Python integers: slow."""
    p = parameters(len(inputs))
    half, t = FULL_ROUNDS // 2, p.width
    state = [(s + k) % R for s, k in zip([p.tag, *inputs], p.first, strict=True)]
    for i in range(half):
        state = [(pow(s, 5, R) + k) % R for s, k in zip(state, p.full[i], strict=True)]
        matrix = p.dense if i < half - 1 else [[p.pre_sparse[k][j] for k in range(t)] for j in range(t)]
        state = apply(matrix, state)
    for constant, m in zip(p.partial, p.sparse, strict=True):
        state[0] = (pow(state[0], 5, R) + constant) % R
        state = [
            sum(w * s for w, s in zip(m.column, state, strict=True)) % R,
            *((s + v * state[0]) % R for s, v in zip(state[1:], m.row, strict=True)),
        ]
    for i in range(half):
        constants = p.full[half + i] if i < half - 1 else [0] * t
        state = apply(p.dense, [(pow(s, 5, R) + k) % R for s, k in zip(state, constants, strict=True)])
    return state[1]


def apply(matrix: Sequence[Sequence[int]], vector: Sequence[int]) -> Vector:
    """matrix * vector."""
    return [sum(m * v for m, v in zip(row, vector, strict=True)) % R for row in matrix]


def invert(matrix: Matrix) -> Matrix:
    """The inverse, by elimination."""
    n = len(matrix)
    rows = [[*row, *(int(i == k) for k in range(n))] for i, row in enumerate(matrix)]
    for c in range(n):
        pivot = next(i for i in range(c, n) if rows[i][c])
        rows[c], rows[pivot] = rows[pivot], rows[c]
        scale = pow(rows[c][c], -1, R)
        rows[c] = [x * scale % R for x in rows[c]]
        for i in range(n):
            if i != c and rows[i][c]:
                factor = rows[i][c]
                rows[i] = [(x - factor * y) % R for x, y in zip(rows[i], rows[c], strict=True)]
    return [row[n:] for row in rows]


def _factor(dense: Matrix, n_partial: int) -> tuple[list[Sparse], Matrix]:
    """The matrices of the partial rounds as sparse ones, in order, after one dense matrix (appendix B)."""
    n = len(dense)
    current, found = dense, []
    for _ in range(n_partial):
        block = [row[1:] for row in current[1:]]
        column = apply(invert(block), [row[0] for row in current[1:]])
        found.append(Sparse((current[0][0], *column), tuple(current[0][1:])))
        kept = [[int(j == 0) for j in range(n)], *([0, *row] for row in block)]
        columns = list(zip(*kept, strict=True))
        current = [[sum(x * y for x, y in zip(row, c, strict=True)) % R for c in columns] for row in dense]
    return found[::-1], current


def _round_keys(t: int, n_partial: int) -> list[Vector]:
    """The constants of every round: 255 bits of Grain's output each, drawn again if they are not below r."""
    bits = _grain(t, n_partial)
    keys: list[Vector] = []
    for _ in range(FULL_ROUNDS + n_partial):
        key: Vector = []
        while len(key) < t:
            value = 0
            for _ in range(255):
                value = value << 1 | next(bits)
            if value < R:
                key.append(value)
        keys.append(key)
    return keys


def _grain(t: int, n_partial: int) -> Iterator[int]:
    """The self-shrinking generator: of each pair of bits the second, if the first is 1."""
    fields = ((1, 2), (1, 4), (255, 12), (t, 12), (FULL_ROUNDS, 10), (n_partial, 10), ((1 << 30) - 1, 30))
    state = deque(value >> i & 1 for value, width in fields for i in reversed(range(width)))

    def step() -> int:
        bit = state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0]
        state.popleft()
        state.append(bit)
        return bit

    for _ in range(160):
        step()
    while True:
        first, second = step(), step()
        if first:
            yield second
