"""Parameters of the Poseidon hash (Grassi et al., eprint 2019/458): rounds, round constants and matrices.

Two instances are in wide use. circom's, over BN254, takes its matrix from the same generator as its constants, starts
from a state whose element 0 is 0 and returns element 0. neptune's, over BLS12-381, has the matrix 1 / (i + j + t),
starts from a domain tag and returns element 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from snarkline.curves.curve import BLS12_381, BN254, Curve

Vector = list[int]
Matrix = list[Vector]

FULL_ROUNDS = 8
# For 128 bits of security with x^5, by width t from 2 on: eprint 2019/458, table 2 and the authors' script.
CIRCOM_PARTIAL_ROUNDS = (56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68)
CIRCOM_MAX_ARITY = len(CIRCOM_PARTIAL_ROUNDS)
NEPTUNE_PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57, 16: 59, 24: 59, 36: 60}


@dataclass(frozen=True)
class PoseidonParameters:
    """A permutation of `width` elements and how it becomes a hash.

    `constants` are added before the S-boxes, round after round; `matrix` multiplies the state as a column. Element 0 of
    the state begins as `tag`, the others as the inputs; element `output` of the last state is the hash.
    """

    curve: Curve
    width: int
    full_rounds: int
    partial_rounds: int
    constants: tuple[int, ...]
    matrix: tuple[tuple[int, ...], ...]
    tag: int
    output: int

    @property
    def arity(self) -> int:
        return self.width - 1

    def round_constants(self, number: int) -> tuple[int, ...]:
        """The constants of a round."""
        return self.constants[number * self.width : (number + 1) * self.width]

    def is_full(self, number: int) -> bool:
        """Whether all elements pass an S-box in a round; else element 0 alone does."""
        half = self.full_rounds // 2
        return number < half or number >= half + self.partial_rounds

    def hash(self, inputs: list[int]) -> int:
        """The hash of `arity` numbers."""
        r = self.curve.r
        state = [self.tag, *inputs]
        for number in range(self.full_rounds + self.partial_rounds):
            state = [(x + k) % r for x, k in zip(state, self.round_constants(number), strict=True)]
            n_boxes = self.width if self.is_full(number) else 1
            state[:n_boxes] = [pow(x, 5, r) for x in state[:n_boxes]]
            state = [sum(m * x for m, x in zip(row, state, strict=True)) % r for row in self.matrix]
        return state[self.output]


@cache
def circom_parameters(arity: int) -> PoseidonParameters:
    """circomlib's Poseidon for 1 to 16 inputs, over BN254. Raises KeyError for another arity."""
    if not 1 <= arity <= CIRCOM_MAX_ARITY:
        raise KeyError(arity)
    width, partial, r = arity + 1, CIRCOM_PARTIAL_ROUNDS[arity - 1], BN254.r
    stream = _grain(BN254, 0, width, partial)
    constants = tuple(islice(_below(stream, r), (FULL_ROUNDS + partial) * width))
    matrix: tuple[tuple[int, ...], ...] = ()
    while not matrix:
        points = [_number(stream, r.bit_length()) % r for _ in range(2 * width)]
        xs, ys = points[:width], points[width:]
        if len(set(points)) == 2 * width and all((x + y) % r for x in xs for y in ys):
            matrix = tuple(tuple(pow(x + y, -1, r) for y in ys) for x in xs)
    return PoseidonParameters(BN254, width, FULL_ROUNDS, partial, constants, matrix, 0, 0)


def neptune_parameters(arity: int, tag: int | None = None, *, strengthened: bool = False) -> PoseidonParameters:
    """neptune's Poseidon over BLS12-381 for 2, 4, 8, 11, 16, 24 or 36 inputs.

    `tag` is that of a Merkle tree, 2^arity - 1, if none is given. `strengthened` has a quarter more partial rounds.
    Raises KeyError for another arity.
    """
    partial = NEPTUNE_PARTIAL_ROUNDS[arity]
    if strengthened:
        partial = -(-partial * 5 // 4)
    return _neptune_parameters(arity, (1 << arity) - 1 if tag is None else tag, partial)


@cache
def _neptune_parameters(arity: int, tag: int, partial: int) -> PoseidonParameters:
    width, r = arity + 1, BLS12_381.r
    stream = _grain(BLS12_381, 1, width, partial)
    constants = tuple(islice(_below(stream, r), (FULL_ROUNDS + partial) * width))
    matrix = tuple(tuple(pow(i + j + width, -1, r) for j in range(width)) for i in range(width))
    return PoseidonParameters(BLS12_381, width, FULL_ROUNDS, partial, constants, matrix, tag, 1)


def parameters_for(curve: Curve, arity: int) -> PoseidonParameters:
    """The instance in use over a curve: circom's over BN254, neptune's for Merkle trees over BLS12-381."""
    return circom_parameters(arity) if curve is BN254 else neptune_parameters(arity)


def _grain(curve: Curve, sbox: int, width: int, partial_rounds: int) -> Iterator[str]:
    """The bits, as digits, of the Grain LFSR in self-shrinking mode (eprint 2019/458, appendix E).

    The 80 bits of the state describe the instance: prime field, `sbox` (the number of x^5, on which implementations
    differ), bits of the modulus, width, rounds, and ones.
    """
    fields = ((1, 2), (sbox, 4), (curve.r.bit_length(), 12), (width, 12), (FULL_ROUNDS, 10), (partial_rounds, 10))
    state = 0
    for value, n_bits in (*fields, ((1 << 30) - 1, 30)):
        state = state << n_bits | value

    def block() -> int:
        """The next 16 bits, the first of them topmost: they depend on the state alone, as no tap is beyond 80 - 16."""
        nonlocal state
        bits = 0
        for tap in (62, 51, 38, 23, 13, 0):  # bit 0 of the register, the oldest, is the topmost of `state`
            bits ^= state >> (64 - tap)
        bits &= 0xFFFF
        state = (state << 16 | bits) & ((1 << 80) - 1)
        return bits

    for _ in range(160 // 16):
        block()
    while True:
        bits = block()
        yield from _KEPT[bits >> 8]
        yield from _KEPT[bits & 0xFF]


# Of the pairs of bits in a byte, the second ones of those whose first is 1, as digits.
_KEPT = tuple("".join(f"{byte >> i & 1}" for i in (6, 4, 2, 0) if byte >> (i + 1) & 1) for byte in range(256))


def _number(bits: Iterator[str], n_bits: int) -> int:
    return int("".join(islice(bits, n_bits)), 2)


def _below(bits: Iterator[str], r: int) -> Iterator[int]:
    """Numbers below r, others drawn again."""
    while True:
        value = _number(bits, r.bit_length())
        if value < r:
            yield value
