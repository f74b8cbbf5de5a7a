"""SHA-256 (FIPS 180-4): the compression function and whole messages.

Allocation and constraints come in the order of bellman's gadget, so that circuits with existing keys can use it: 26,192
constraints a block, 25,840 for the first block of a message, whose state is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from snarkline.circuit import logic
from snarkline.circuit.builder import Builder
from snarkline.circuit.logic import MultiEq
from snarkline.circuit.recorder import FALSE, Literal
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bits
from snarkline.circuit.words import UInt8, UInt32

Words = list[Literal]
"""32 literals, least significant first."""


def _first_primes(n: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < n:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes


def _cube_root(n: int) -> int:
    """The integer part, by bisection."""
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle)
    return low


# The first 32 bits of the fractional parts of the cube roots and the square roots of the first primes (section 4.2.2,
# 5.3.3): floor(2^32 * p^(1/3)) mod 2^32 = floor((2^96 p)^(1/3)) mod 2^32.
K = tuple(_cube_root(prime << 96) % 2**32 for prime in _first_primes(64))
INITIAL_STATE = tuple(isqrt(prime << 64) % 2**32 for prime in _first_primes(8))


def initial_state(cs: Builder) -> list[UInt32]:
    """The state before the first block."""
    return [UInt32.constant(cs, value) for value in INITIAL_STATE]


@gadget
def sha256_compress(cs: Builder, state: list[UInt32], block: Bits) -> list[UInt32]:
    """The state after a block. `block` has 512 bits, the most significant bit of each word first."""
    if len(block) != 512 or len(state) != 8:
        raise cs.error(f"a block of 512 bits and 8 words of state are needed; found {len(block)} and {len(state)}")
    words = [block.literals[32 * i : 32 * i + 32][::-1] for i in range(16)]
    before = [word.literals for word in state]
    with MultiEq(cs) as equalities:
        with cs.scope("schedule"):
            _extend_schedule(cs, words, equalities)
        with cs.scope("rounds"):
            sums = _rounds(cs, words, before, equalities)
        with cs.scope("output"):
            after = [
                logic.add_words(cs, [*sums[i], before[i]] if i % 4 == 0 else [before[i], *sums[i]], equalities)
                for i in range(8)
            ]
            equalities.flush()
    inputs = [*block.literals, *(literal for word in before for literal in reversed(word))]
    cs.set_native("sha256_compress", inputs, [literal for word in after for literal in reversed(word)])
    return [UInt32(cs, word) for word in after]


def _extend_schedule(cs: Builder, w: list[Words], equalities: MultiEq) -> None:
    """Words 16 to 63 of the message schedule (section 6.2.2, step 1)."""
    for i in range(16, 64):
        s0 = _sigma(cs, w[i - 15], 7, 18, w[i - 15][3:] + [FALSE] * 3)
        s1 = _sigma(cs, w[i - 2], 17, 19, w[i - 2][10:] + [FALSE] * 10)
        w.append(logic.add_words(cs, [w[i - 16], s0, w[i - 7], s1], equalities))


def _rounds(cs: Builder, w: list[Words], state: list[Words], equalities: MultiEq) -> list[list[Words]]:
    """The 64 rounds (step 3). Each of the eight results is a list of words that are still to be added up.

    a and e of a round are added up when the next one needs them, together with what comes then: a sum saved a round.
    """
    a, e = [state[0]], [state[4]]
    b, c, d, f, g, h = *state[1:4], *state[5:]
    for i in range(64):
        (new_e,) = [e[0]] if len(e) == 1 else [logic.add_words(cs, e, equalities)]
        s1 = _sigma(cs, new_e, 6, 11, _rotated(new_e, 25))
        choice = [logic.ch(cs, *bits) for bits in zip(new_e, f, g, strict=True)]
        first = [h, s1, choice, logic.constant(K[i], 32), w[i]]
        (new_a,) = [a[0]] if len(a) == 1 else [logic.add_words(cs, a, equalities)]
        s0 = _sigma(cs, new_a, 2, 13, _rotated(new_a, 22))
        majority = [logic.maj(cs, *bits) for bits in zip(new_a, b, c, strict=True)]
        h, g, f, d_before, d, c, b = g, f, new_e, d, c, b, new_a
        e, a = [*first, d_before], [*first, s0, majority]
    return [a, [b], [c], [d], e, [f], [g], [h]]


def _sigma(cs: Builder, word: Words, i: int, j: int, last: Words) -> Words:
    """rotr(word, i) xor rotr(word, j) xor last."""
    pairs = zip(_rotated(word, i), _rotated(word, j), strict=True)
    first = [logic.xor(cs, a, b) for a, b in pairs]
    return [logic.xor(cs, a, b) for a, b in zip(first, last, strict=True)]


def _rotated(word: Words, n: int) -> Words:
    return word[n:] + word[:n]


def sha256_padding(cs: Builder, n_bits: int) -> Bits:
    """What follows a message of `n_bits` bits so that it fills whole blocks (section 5.1.1): constants."""
    zeros = (447 - n_bits) % 512
    return Bits(cs, logic.constant(1, 1) + [FALSE] * zeros + logic.constant(n_bits, 64)[::-1])


def sha256(cs: Builder, message: Bits | Sequence[UInt8]) -> Bits:
    """The 256 bits of a message's hash, most significant bit of each byte first, as the message's bits are.

    The message is an array of bits or a sequence of bytes; its length is fixed when the circuit is recorded.
    """
    bits = message if isinstance(message, Bits) else Bits(cs, [b for byte in message for b in byte.literals[::-1]])
    padded = bits + sha256_padding(cs, len(bits))
    state = initial_state(cs)
    for start in range(0, len(padded), 512):
        state = cs.call(sha256_compress, state, padded[start : start + 512])
    return Bits(cs, [literal for word in state for literal in reversed(word.literals)])
