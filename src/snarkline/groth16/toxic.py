"""Toxic waste: the secrets from which a key is made, and from which proofs can be forged."""

from __future__ import annotations

import secrets
from typing import Self

from snarkline.backend.base import Domain
from snarkline.errors import InputError

VALUE_BYTES = 32


class ToxicWaste:
    """tau, alpha, beta, gamma and delta, kept in bytes that `wipe` overwrites.

    The integers that reading a value makes live until the interpreter uses their memory again. Raises InputError for
    values that make a degenerate key: one that is 0 modulo r, gamma = delta (anyone could forge), or a tau on the
    domain or its odd coset (a Lagrange polynomial would vanish at tau or divide by 0).
    """

    def __init__(self, domain: Domain, tau: int, alpha: int, beta: int, gamma: int, delta: int) -> None:
        r = domain.curve.r
        values = (tau, alpha, beta, gamma, delta)
        if not all(0 < v < r for v in values) or gamma == delta or pow(tau, 2 * domain.size, r) == 1:
            raise InputError("toxic waste that makes a degenerate key")
        self._bytes = bytearray().join(v.to_bytes(VALUE_BYTES, "little") for v in values)

    @classmethod
    def draw(cls, domain: Domain) -> Self:
        """Uniform values from the operating system's generator."""
        while True:
            try:
                return cls(domain, *(secrets.randbelow(domain.curve.r) for _ in range(5)))
            except InputError:  # about once in 2^250 / n
                continue

    @property
    def tau(self) -> int:
        """The point at which polynomials are evaluated."""
        return self._value(0)

    @property
    def alpha(self) -> int:
        return self._value(1)

    @property
    def beta(self) -> int:
        return self._value(2)

    @property
    def gamma(self) -> int:
        return self._value(3)

    @property
    def delta(self) -> int:
        return self._value(4)

    def wipe(self) -> None:
        """Overwrite the values. Reading them afterwards gives 0."""
        self._bytes[:] = bytes(len(self._bytes))

    def __repr__(self) -> str:
        return "<ToxicWaste>"

    def _value(self, i: int) -> int:
        return int.from_bytes(self._bytes[VALUE_BYTES * i : VALUE_BYTES * (i + 1)], "little")
