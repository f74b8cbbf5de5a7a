"""The matrices of structured systems as provers take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.r1cs.matrices import Matrices, bind_public
from snarkline.r1cs.structured import StructuredR1CS

ROWS_AT_ONCE = 1 << 18
"""Of a system, that are written out at a time where all of them are looked at: some 30 MB."""


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

    def wires_read(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The wires that rows of A read, and those of B, ascending."""
        system = self.system
        in_a, in_b = (np.zeros(system.n_wires, dtype=np.bool_) for _ in range(2))
        in_a[: system.n_public + 1] = True
        for start in range(0, system.n_constraints, ROWS_AT_ONCE):
            a, b, _ = system.rows(start, min(start + ROWS_AT_ONCE, system.n_constraints))
            a.mark(in_a)
            b.mark(in_b)
        return np.flatnonzero(in_a).astype(np.uint32), np.flatnonzero(in_b).astype(np.uint32)

    def flatten(self) -> Matrices:
        """The matrices row by row."""
        return bind_public(self.system.flatten())
