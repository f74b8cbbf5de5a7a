"""The witness: the values of all wires."""

from __future__ import annotations

from dataclasses import dataclass

from snarkline.curves.curve import Curve
from snarkline.curves.vector import FrVector


@dataclass(frozen=True, eq=False)
class Witness:
    """The values of all wires in canonical form; wire 0 is 1. Secret: its values are never logged or shown."""

    values: FrVector
    source: str | None = None
    """The file that the values come from, for messages."""

    @property
    def curve(self) -> Curve:
        return self.values.curve

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Witness {self.curve.name} n={len(self)}>"

    def public(self, n_public: int) -> tuple[int, ...]:
        """The values of wires 1 to `n_public`."""
        return tuple(FrVector(self.curve, self.values.limbs[1 : n_public + 1], self.values.form).to_ints())
