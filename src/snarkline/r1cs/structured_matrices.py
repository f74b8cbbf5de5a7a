"""The matrices of structured systems as provers take them."""

from __future__ import annotations

from dataclasses import dataclass

from snarkline.r1cs.matrices import Matrices, bind_public
from snarkline.r1cs.structured import StructuredR1CS


@dataclass(frozen=True, eq=False)
class StructuredMatrices:
    """The rows of a system, and behind them those that bind its public wires (`bind_public`): wire i in A, for i from 0
    to n_public, and nothing in B and C."""

    system: StructuredR1CS

    @property
    def n_entries(self) -> tuple[int, ...]:
        """The entries of each matrix."""
        counts = [0, 0, 0]
        for run in self.system.runs:
            template = self.system.template_of(run)
            for side, matrix in enumerate((template.a, template.b, template.c)):
                counts[side] += run.count * matrix.n_entries
        return counts[0] + self.system.n_public + 1, counts[1], counts[2]

    @property
    def packed_bytes(self) -> int:
        """Of a packed witness on a device, with its field elements once more in another form."""
        n_bits, n_wides, _ = self.system.native.sizes
        return 8 * n_bits + 8 * self.system.curve.fr_limbs * (2 * n_wides + self.system.n_public + 1)

    @property
    def structure_bytes(self) -> int:
        """Of the system on a device, at most."""
        return 5 * self.system.native.nbytes + 1024 * len(self.system.templates) + self.system.n_constraints // 8

    def flatten(self) -> Matrices:
        """The matrices row by row."""
        return bind_public(self.system.flatten())
