"""Structured systems as arrays of records, for devices (csrc/host/structured_form.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.curves.vector import Limbs
from snarkline.r1cs.structured import StructuredR1CS

Records = npt.NDArray[np.void]

TILE_ROWS = 32
"""Rows, or columns, whose records lie side by side."""

TEMPLATE_FIELDS = (
    "n_rows", "n_aux", "n_bits", "n_wides", "n_sums", "first_row", "first_column", "first_sum", "n_ports", "first_port",
    "n_steps", "n_phases", "first_phase",
)  # fmt: skip
RUN_FIELDS = ("template", "count", "first_row", "first_wire", "words", "bits", "wides", "first_sum", "chain")
PHASE_FIELDS = ("is_bits", "first", "count", "first_input", "n_inputs", "n_registers")
TEMPLATE = np.dtype([(name, "<u4") for name in TEMPLATE_FIELDS])
RUN = np.dtype([(name, "<u8") for name in RUN_FIELDS])
PHASE = np.dtype([(name, "<u4") for name in PHASE_FIELDS])


@dataclass(frozen=True)
class SystemForm:
    """The members of the native struct of this name; records of pairs have shape (n, 2), sums and
    combinations (n, 8), steps (n, 6), streams and instructions over bits (n, 4)."""

    templates: Records
    runs: Records
    rows: npt.NDArray[np.uint32]
    columns: npt.NDArray[np.uint32]
    slots: npt.NDArray[np.uint32]
    sums: npt.NDArray[np.uint32]
    digits: npt.NDArray[np.uint32]
    terms: npt.NDArray[np.uint32]
    coefficients: Limbs
    ports: npt.NDArray[np.uint32]
    combinations: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.uint32]
    phases: Records
    bit_inputs: npt.NDArray[np.uint32]
    bit_streams: npt.NDArray[np.uint32]
    bit_headers: npt.NDArray[np.uint32]
    bit_records: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, system: StructuredR1CS, first_program: int = -1, warps: int = 1) -> SystemForm:
        """The form of a system, with the programs of runs from `first_program` on, unless that is -1, for blocks of so
        many warps. Raises like `StructuredR1CS.native`."""
        members = system.native.form(first_program, warps)

        def words(name: str, width: int = 1) -> npt.NDArray[np.uint32]:
            flat = np.frombuffer(members[name], np.uint32)
            return flat if width == 1 else flat.reshape(-1, width)

        return cls(
            np.frombuffer(members["templates"], TEMPLATE),
            np.frombuffer(members["runs"], RUN),
            words("rows", 2),
            words("columns", 2),
            words("slots"),
            words("sums", 8),
            words("digits", 2),
            words("terms", 2),
            np.frombuffer(members["coefficients"], np.uint64).reshape(-1, system.curve.fr_limbs),
            words("ports", 2),
            words("combinations", 8),
            words("steps", 6),
            np.frombuffer(members["phases"], PHASE),
            words("bit_inputs", 2),
            words("bit_streams", 4),
            words("bit_headers"),
            words("bit_records", 4),
        )
