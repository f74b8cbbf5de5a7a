"""Vectors of scalars: `FrVector` is an array of limbs that knows its curve and its form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve

Limbs = npt.NDArray[np.uint64]


class Form(Enum):
    """How an element a of a field is stored: CANONICAL is a, MONTGOMERY is a * 2^(64 * limbs) mod p; both in [0, p)."""

    CANONICAL = "canonical"
    MONTGOMERY = "montgomery"


def ints_to_limbs(values: Iterable[int], limbs: int) -> Limbs:
    """Integers in [0, 2^(64 * limbs)) as an array of shape (n, limbs), least significant limb first."""
    data = b"".join(v.to_bytes(8 * limbs, "little") for v in values)
    return np.frombuffer(bytearray(data), dtype="<u8").reshape(-1, limbs)


def limbs_to_ints(array: Limbs) -> list[int]:
    """The inverse of `ints_to_limbs`."""
    size = 8 * array.shape[1]
    data = np.ascontiguousarray(array).tobytes()
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


@dataclass(frozen=True, eq=False)
class FrVector:
    """n elements of a curve's scalar field: `limbs` has shape (n, 4), dtype uint64, C order, every element below r."""

    curve: Curve
    limbs: Limbs
    form: Form

    def __len__(self) -> int:
        return len(self.limbs)

    def __repr__(self) -> str:
        return f"<FrVector {self.curve.name} n={len(self)} {self.form.value}>"

    @classmethod
    def from_ints(cls, curve: Curve, values: Iterable[int], form: Form = Form.CANONICAL) -> FrVector:
        """Elements from integers, which are taken modulo r."""
        radix = 1 if form is Form.CANONICAL else 1 << (64 * curve.fr_limbs)
        return cls(curve, ints_to_limbs((v * radix % curve.r for v in values), curve.fr_limbs), form)

    def to_ints(self) -> list[int]:
        """The elements as integers in [0, r)."""
        values = limbs_to_ints(self.limbs)
        if self.form is Form.CANONICAL:
            return values
        unit = pow(1 << (64 * self.curve.fr_limbs), -1, self.curve.r)
        return [v * unit % self.curve.r for v in values]
