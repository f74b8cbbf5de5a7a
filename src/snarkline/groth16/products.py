"""a, b and c of a proof, and how keys come to their polynomials, for each kind of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from snarkline.backend.base import Backend, Domain
from snarkline.curves.vector import FrVector
from snarkline.errors import MismatchError
from snarkline.memory import Arena
from snarkline.r1cs.matrices import R1CS, Matrices, bind_public
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.trace import span

Three = tuple[FrVector, FrVector, FrVector]
Evaluation = tuple[FrVector, FrVector, FrVector, FrVector]
AnyMatrices = Matrices | StructuredMatrices


class Products(Protocol):
    """What a proof needs of matrices and a witness."""

    def evaluate(self, backend: Backend, domain: Domain) -> Evaluation:
        """The witness w, canonical and where the backend reads it fastest, and <A_k, w>, <B_k, w>, <C_k, w> for every
        row k, on the domain."""


@dataclass(frozen=True)
class FlatProducts:
    """Matrices row by row, and a witness in canonical form. Where they have no C, c is a * b."""

    matrices: Matrices
    w: FrVector

    def evaluate(self, backend: Backend, domain: Domain) -> Evaluation:
        """See `Products`."""
        w = backend.resident(self.w)
        a = backend.evaluate(self.matrices.a, w, domain)
        b = backend.evaluate(self.matrices.b, w, domain)
        c = backend.multiply(a, b) if self.matrices.c is None else backend.evaluate(self.matrices.c, w, domain)
        return w, a, b, c


@dataclass(frozen=True)
class StructuredProducts:
    """A packed witness, whose system tells the matrices, and its values in canonical form if they are at hand."""

    witness: StructuredWitness
    wires: FrVector | None = None

    def evaluate(self, backend: Backend, domain: Domain) -> Evaluation:
        """See `Products`."""
        return backend.evaluate_structured(self.witness, domain, wires=self.wires)


class ValuesOutOfRange(Exception):
    """A value of a witness is not below r."""


class RowsViolated(Exception):
    """A row of `CheckedProducts` does not hold."""


@dataclass(frozen=True)
class CheckedProducts:
    """Products whose rows must all hold: where one does not, `evaluate` raises RowsViolated."""

    products: Products

    def evaluate(self, backend: Backend, domain: Domain) -> Evaluation:
        """See `Products`. Rows that bind public wires, and those behind them, hold always: b and c are 0 there."""
        w, a, b, c = self.products.evaluate(backend, domain)
        with span("check constraints"):
            if not backend.rows_hold(a, b, c):
                raise RowsViolated
        return w, a, b, c


@dataclass(frozen=True)
class Assignment:
    """A witness as the stages of a proof take it: `witness` is packed if the circuit is structured."""

    witness: Witness | StructuredWitness
    products: Products


def assign(
    matrices: AnyMatrices, witness: Witness | StructuredWitness, *, threads: int | None, arena: Arena
) -> Assignment:
    """A witness for matrices. The values must have passed `check_witness`.

    Raises UnsatisfiedError for a value other than 0 and 1 of a wire that is a bit.
    """
    system = matrices.system if isinstance(matrices, StructuredMatrices) else None
    if isinstance(witness, StructuredWitness) and witness.system is system:
        return Assignment(witness, StructuredProducts(witness))
    w = written_out(witness, threads=threads, arena=arena)
    if isinstance(matrices, Matrices):
        return Assignment(witness, FlatProducts(matrices, w))
    packed = StructuredWitness.pack(matrices.system, Witness(w), threads=threads, arena=arena)
    return Assignment(packed, StructuredProducts(packed, w))


def written_out(witness: Witness | StructuredWitness, *, threads: int | None, arena: Arena) -> FrVector:
    """The values of all wires in canonical form, on the host."""
    flat = witness if isinstance(witness, Witness) else witness.expand(threads=threads, arena=arena)
    return flat.values


def bind(r1cs: R1CS | StructuredR1CS) -> AnyMatrices:
    """The matrices of a circuit, with the rows that bind its public wires."""
    return StructuredMatrices(r1cs) if isinstance(r1cs, StructuredR1CS) else bind_public(r1cs)


def transposed(backend: Backend, matrices: AnyMatrices, v: FrVector) -> Three:
    """v * A, v * B and v * C. Raises MismatchError for matrices without C."""
    if isinstance(matrices, StructuredMatrices):
        return backend.evaluate_structured_transposed(matrices, v)
    if matrices.c is None:
        raise MismatchError("a key needs all three matrices of the circuit, the third is missing")
    a, b, c = (backend.evaluate_transposed(m, v) for m in (matrices.a, matrices.b, matrices.c))
    return a, b, c
