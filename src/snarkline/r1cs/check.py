"""Does a witness fit a circuit: its shape, its values, and the first constraint that it violates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs, limbs_to_ints
from snarkline.errors import FormatError, InputError, MismatchError, UnsatisfiedError, printable
from snarkline.memory import Arena
from snarkline.native import core
from snarkline.r1cs.matrices import R1CS, SparseMatrix
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.threads import usable_threads
from snarkline.trace import span

BLOCK_ROWS = 1 << 15
"""Constraints that are evaluated together: three vectors of 1 MiB, which stay in the second-level cache."""


@dataclass(frozen=True)
class Violation:
    """A constraint that does not hold: `a`, `b`, `c` are <A_k, w>, <B_k, w>, <C_k, w>, integers in [0, r).

    `wires` are the wires that the constraint reads, in ascending order. The three values depend on the witness, which
    is secret: they are not part of the representation and not of the error.
    """

    constraint: int
    a: int = field(repr=False)
    b: int = field(repr=False)
    c: int = field(repr=False)
    wires: tuple[int, ...]
    path: str | None = None
    """The gadget that the constraint belongs to, and its instance, where the circuit is structured."""

    def error(self, names: Mapping[int, str] = MappingProxyType({})) -> UnsatisfiedError:
        """The error that names the constraint and its wires; `names` are the names of wires, where they are known."""
        shown = ", ".join(names.get(wire, str(wire)) for wire in self.wires[:8])
        shown += ", ..." if len(self.wires) > 8 else ""
        where = f"{self.path}: " if self.path else ""
        return UnsatisfiedError(self.constraint, f"{where}<A, w> * <B, w> is not <C, w> (wires {shown or 'none'})")


def check_witness(
    witness: Witness | StructuredWitness, curve: Curve, n_wires: int, *, threads: int | None = None
) -> None:
    """Check the shape and the values of a witness against a circuit of `n_wires` wires.

    Raises MismatchError for another curve or length, FormatError naming the index for a value that is not below r or
    a wire 0 that is not 1, InputError for what is no witness. Values are secret and not shown.
    """
    check_shape(witness, curve, n_wires)
    check_values(witness, threads=threads)


def check_shape(witness: Witness | StructuredWitness, curve: Curve, n_wires: int) -> None:
    """The half of `check_witness` that reads no value."""
    if not isinstance(witness, (Witness, StructuredWitness)):
        raise InputError(f"expected a witness, found {type(witness).__name__}")
    source = None if isinstance(witness, StructuredWitness) else witness.source
    name = "the witness" if source is None else printable(f"{source}: the witness")
    if witness.curve is not curve:
        raise MismatchError(f"{name} is over {witness.curve.name}, the circuit over {curve.name}")
    if len(witness) != n_wires:
        raise MismatchError(f"{name} has {len(witness)} values, the circuit has {n_wires} wires")
    if isinstance(witness, Witness) and witness.values.form is not Form.CANONICAL:
        raise MismatchError(f"{name} is in {witness.values.form.value} form, expected canonical form")


def check_values(witness: Witness | StructuredWitness, *, threads: int | None = None) -> None:
    """The other half of `check_witness`."""
    curve = witness.curve
    if isinstance(witness, StructuredWitness):
        # Private values are in range by their making; the public ones are few, and checked.
        one = FrVector.from_ints(curve, [1], Form.MONTGOMERY).limbs[0]
        if not np.array_equal(witness.publics[0], one):
            raise FormatError(None, "witness value 0", "the constant 1", "another value")
        index = core.Executor(1).first_not_below_modulus(curve.name, "fr", witness.publics)
        if index >= 0:
            raise FormatError(None, f"witness value {index}", "a value below the scalar field's modulus", "one above")
        return
    values = witness.values
    index = core.Executor(threads or usable_threads()).first_not_below_modulus(curve.name, "fr", values.limbs)
    if index >= 0:
        raise FormatError(
            witness.source, f"witness value {index}", "a value below the scalar field's modulus", "one above"
        )
    check_first_wire(witness)


def check_first_wire(witness: Witness) -> None:
    """The part of `check_values` that reads one value."""
    if limbs_to_ints(witness.values.limbs[:1]) != [1]:
        raise FormatError(witness.source, "witness value 0", "the constant 1", "another value")


def first_violation(
    r1cs: R1CS | StructuredR1CS,
    witness: Witness | StructuredWitness,
    *,
    threads: int | None = None,
    arena: Arena | None = None,
) -> Violation | None:
    """The first constraint that a witness violates, or None if it satisfies all of them.

    The witness must have passed `check_witness`. Memory comes from `arena`, or from one made for the call. Raises
    MismatchError for a system without a C matrix.
    """
    arena = arena or Arena()
    if isinstance(r1cs, StructuredR1CS):
        return _first_structured(r1cs, witness, threads, arena)
    if isinstance(witness, StructuredWitness):
        witness = witness.expand(threads=threads, arena=arena)
    return _first_flat(r1cs, witness, threads, arena)


def _first_structured(
    system: StructuredR1CS, witness: Witness | StructuredWitness, threads: int | None, arena: Arena
) -> Violation | None:
    if isinstance(witness, StructuredWitness) and witness.system is not system:
        witness = witness.expand(threads=threads, arena=arena)
    if isinstance(witness, StructuredWitness):
        packed = witness
    else:
        try:
            packed = StructuredWitness.pack(system, witness, threads=threads, arena=arena)
        except UnsatisfiedError:  # of a bit: some constraint says so
            violation = _first_flat(system.flatten(), witness, threads, arena)
            return violation and replace(violation, path=system.find(violation.constraint).path)
    k = system.native.first_violation(threads or usable_threads(), *packed.arrays)
    if k < 0:
        return None
    rows = [matrix.row(0) for matrix in system.rows(k, k + 1)]
    wires = sorted({wire for row in rows for wire, _ in row})
    w = dict(zip(wires, packed.values(wires), strict=True))
    a, b, c = (sum(coefficient * w[wire] for wire, coefficient in row) % system.curve.r for row in rows)
    return Violation(k, a, b, c, tuple(wires), system.find(k).path)


def _first_flat(r1cs: R1CS, witness: Witness, threads: int | None, arena: Arena) -> Violation | None:
    """Works through blocks of constraints, so that memory is constant and an early violation is found early."""
    a, b, c = r1cs.matrices.a, r1cs.matrices.b, r1cs.matrices.c
    if c is None:
        raise MismatchError("the matrices A and B alone do not tell which constraint a witness violates")
    executor = core.Executor(threads or usable_threads())
    shape = (3, min(BLOCK_ROWS, r1cs.n_constraints), r1cs.curve.fr_limbs)
    products = arena.empty(shape, secret=True)
    for start in range(0, r1cs.n_constraints, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, r1cs.n_constraints)
        block = products[:, : stop - start]
        for out, matrix in zip(block, (a, b, c), strict=True):
            _multiply_rows(executor, out, matrix, start, stop, witness)
        executor.mul_sub(r1cs.curve.name, block[0], *block)
        with span("compare with zero"):
            violated = bool(block[0].any())
        if violated:
            return _violation((a, b, c), start + int(block[0].any(axis=1).argmax()), witness)
    return None


def _multiply_rows(
    executor: core.Executor, out: Limbs, matrix: SparseMatrix, start: int, stop: int, witness: Witness
) -> None:
    """out = rows [start, stop) of the matrix times the witness, Montgomery form."""
    row_start = matrix.row_start[start : stop + 1]
    entries = slice(int(row_start[0]), int(row_start[-1]))
    executor.spmv(
        witness.curve.name,
        out,
        row_start - row_start[0],
        matrix.column[entries],
        matrix.value[entries],
        matrix.coefficients.limbs,
        witness.values.limbs,
        "canonical",
    )


def _violation(matrices: Sequence[SparseMatrix], k: int, witness: Witness) -> Violation:
    """Constraint `k` evaluated in Python integers."""
    r = witness.curve.r
    rows = [matrix.row(k) for matrix in matrices]
    wires = sorted({wire for row in rows for wire, _ in row})
    w = dict(zip(wires, limbs_to_ints(witness.values.limbs[wires]), strict=True))
    a, b, c = (sum(coefficient * w[wire] for wire, coefficient in row) % r for row in rows)
    return Violation(k, a, b, c, tuple(wires))
