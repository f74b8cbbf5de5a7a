"""Structured systems in the compiled core."""

from __future__ import annotations

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Limbs
from snarkline.native import core
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.template import Native


def compile_system(system: StructuredR1CS, isa: str = "auto", lanes: str = "auto") -> core.StructuredSystem:
    """The system as the compiled core executes it. Checks the system: damaged ones raise InputError."""
    system.check()
    native = core.StructuredSystem(system.curve.name, system.n_wires, system.n_public, isa, lanes)
    for t in system.templates:
        matrices = [_arrays(matrix) for matrix in (t.a, t.b, t.c, t.program.combinations)]
        code = np.ascontiguousarray(t.program.code).view(np.uint32)
        native.add_template(t.n_ports, t.n_aux, t.bits.view(np.uint8), matrices, code, *_native(system.curve, t.native))
    no_table = np.zeros(0, np.uint32)
    for run in system.runs:
        base, stride = (np.ascontiguousarray(wires).view(np.uint64) for wires in (run.base, run.stride))
        table = no_table if run.table is None else np.ascontiguousarray(run.table).reshape(-1)
        native.add_run(run.template, run.count, run.first_row, run.first_wire, base, stride, table)
    return native


def _arrays(matrix: SparseMatrix) -> tuple[Limbs, core.U32, core.U32, Limbs]:
    return matrix.row_start, matrix.column, matrix.value, np.ascontiguousarray(matrix.coefficients.limbs)


def _native(curve: Curve, native: Native | None) -> tuple[str, core.U32, core.U32, Limbs]:
    """Name, inputs, outputs and parameters."""
    if native is None:
        none = np.zeros(0, np.uint32)
        return "", none, none, np.zeros((0, curve.fr_limbs), np.uint64)
    parameters = np.zeros((0, curve.fr_limbs), np.uint64) if native.parameters is None else native.parameters.limbs
    inputs, outputs = (np.ascontiguousarray(x).view(np.uint32) for x in (native.inputs, native.outputs))
    return native.name, inputs, outputs, np.ascontiguousarray(parameters)
