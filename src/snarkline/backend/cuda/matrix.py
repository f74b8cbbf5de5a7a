"""Sparse matrices on the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.r1cs.matrices import SparseMatrix

LONG_ROW = 64
"""Rows of more entries are summed by a block, others by a thread."""


@dataclass(frozen=True)
class DeviceMatrix:
    """A CSR matrix on the device, with the indices of its long rows."""

    n_rows: int
    row_start: Array
    column: Array
    value: Array
    coefficients: Array
    long_rows: Array
    n_long: int

    @classmethod
    def upload(cls, device: Device, matrix: SparseMatrix) -> DeviceMatrix:
        return cls._from_csr(device, matrix, matrix.row_start, matrix.column, matrix.value)

    @classmethod
    def upload_transposed(cls, device: Device, matrix: SparseMatrix) -> DeviceMatrix:
        order = np.argsort(matrix.column, kind="stable")
        rows = np.repeat(np.arange(matrix.n_rows, dtype=np.uint32), np.diff(matrix.row_start).astype(np.int64))
        row_start = np.zeros(matrix.n_columns + 1, np.uint64)
        np.cumsum(np.bincount(matrix.column, minlength=matrix.n_columns), out=row_start[1:])
        return cls._from_csr(device, matrix, row_start, rows[order], matrix.value[order])

    @classmethod
    def _from_csr(
        cls, device: Device, matrix: SparseMatrix, row_start: Array, column: Array, value: Array
    ) -> DeviceMatrix:
        long_rows = np.flatnonzero(np.diff(row_start) > LONG_ROW).astype(np.uint32)
        arrays = [device.upload(a) for a in (row_start, column, value, matrix.coefficients.limbs, long_rows)]
        row_start, column, value, coefficients, long_rows_there = arrays
        return cls(len(row_start) - 1, row_start, column, value, coefficients, long_rows_there, len(long_rows))

    def multiply(self, device: Device, module: Module, w: Array, out: Array, factor: Array) -> None:
        """out = factor * matrix * w, zero beyond the rows; NULL is the factor 1."""
        csr = (self.row_start, self.column, self.value, self.coefficients)
        sizes = (self.n_rows, len(out), LONG_ROW)
        device.launch(module, "multiply_rows", blocks(len(out), 256), 256, out, *csr, w, factor, *sizes)
        if self.n_long:
            device.launch(module, "multiply_long_rows", self.n_long, 128, out, *csr, w, factor, self.long_rows)
