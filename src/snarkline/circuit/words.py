"""Unsigned machine words: arrays of bits, least significant first, that add modulo 2^WIDTH."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from snarkline.circuit import logic
from snarkline.circuit.recorder import FALSE, Literal, Recorder
from snarkline.circuit.values import Bits


class Word(Bits):
    """A word of WIDTH bits. Rotations and shifts cost nothing."""

    __slots__ = ()
    WIDTH: ClassVar[int]

    def __init__(self, cs: Recorder, literals: Sequence[Literal]) -> None:
        super().__init__(cs, literals)
        if len(self.literals) != self.WIDTH:
            raise cs.error(f"a {type(self).__name__} has {self.WIDTH} bits; found {len(self.literals)}")

    @classmethod
    def constant(cls, cs: Recorder, value: int) -> Self:
        """A word that does not vary. Raises CircuitError for a value that does not fit."""
        if not 0 <= value < 1 << cls.WIDTH:
            raise cs.error(f"{value} does not fit a {cls.__name__}")
        return cls(cs, logic.constant(value, cls.WIDTH))

    @classmethod
    def from_bits_be(cls, bits: Bits) -> Self:
        """From bits with the most significant first."""
        return cls(bits.cs, bits.literals[::-1])

    def bits_be(self) -> Bits:
        """The bits with the most significant first."""
        return Bits(self.cs, self.literals[::-1])

    def rotr(self, n: int) -> Self:
        """Rotated right by n."""
        n %= self.WIDTH
        return self._like(self.literals[n:] + self.literals[:n])

    def rotl(self, n: int) -> Self:
        """Rotated left by n."""
        return self.rotr(self.WIDTH - n % self.WIDTH)

    def __rshift__(self, n: int) -> Self:
        n = min(n, self.WIDTH)
        return self._like(self.literals[n:] + [FALSE] * n)

    def __lshift__(self, n: int) -> Self:
        n = min(n, self.WIDTH)
        return self._like([FALSE] * n + self.literals[: self.WIDTH - n])

    def plus(self, *others: Self | int) -> Self:
        """The sum with others modulo 2^WIDTH, in one constraint and one more a bit."""
        words = [self.literals]
        for other in others:
            word = self.constant(self.cs, other) if isinstance(other, int) else other
            if type(word) is not type(self):
                raise self.cs.error(f"a {type(self).__name__} is added to a {type(word).__name__}")
            self._of_same_system(word)
            words.append(word.literals)
        with logic.MultiEq(self.cs) as equalities:
            return self._like(logic.add_words(self.cs, words, equalities))

    def __add__(self, other: Self | int) -> Self:  # type: ignore[override]  # words add, arrays join
        return self.plus(other)


class UInt8(Word):
    """A byte."""

    __slots__ = ()
    WIDTH = 8


class UInt32(Word):
    """A word of 32 bits."""

    __slots__ = ()
    WIDTH = 32


class UInt64(Word):
    """A word of 64 bits."""

    __slots__ = ()
    WIDTH = 64
