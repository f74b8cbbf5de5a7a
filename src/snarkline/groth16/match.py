"""Whether a key, a circuit and a witness belong together."""

from __future__ import annotations

from snarkline.errors import MismatchError
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.products import AnyMatrices, Assignment, assign
from snarkline.memory import Arena
from snarkline.r1cs.check import check_witness, first_violation
from snarkline.r1cs.matrices import R1CS
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness
from snarkline.r1cs.witness import Witness
from snarkline.trace import span


def with_matrices(key: ProvingKey, r1cs: R1CS | StructuredR1CS | None) -> tuple[ProvingKey, AnyMatrices]:
    """A key that carries matrices, its own or else its circuit's, and these.

    Raises MismatchError if `r1cs` cannot be the key's circuit, or is missing where the key carries none.
    """
    if r1cs is not None:
        _check_pair(key, r1cs)
    if key.matrices is None:
        if r1cs is None:
            raise MismatchError("the key carries no matrices: give the .r1cs of its circuit")
        key = key.attach(r1cs)
    assert key.matrices is not None
    return key, key.matrices


def assign_checked(
    key: ProvingKey,
    r1cs: R1CS | StructuredR1CS | None,
    matrices: AnyMatrices,
    witness: Witness | StructuredWitness,
    *,
    threads: int,
    arena: Arena,
) -> Assignment:
    """A witness, for the matrices, that fits the key and, with an `r1cs`, satisfies it.

    Raises MismatchError, FormatError or UnsatisfiedError for one that does not.
    """
    with span("check witness"):
        check_witness(witness, key.curve, key.n_wires, threads=threads)
        assigned = assign(matrices, witness, threads=threads, arena=arena)
    if r1cs is not None:
        with span("check constraints"):
            require_satisfied(r1cs, assigned.witness, threads=threads, arena=arena)
    return assigned


def require_satisfied(
    r1cs: R1CS | StructuredR1CS, witness: Witness | StructuredWitness, *, threads: int, arena: Arena
) -> None:
    """Raises UnsatisfiedError, naming the constraint, for a witness that violates the circuit."""
    violation = first_violation(r1cs, witness, threads=threads, arena=arena)
    if violation is not None:
        raise violation.error()


def _check_pair(key: ProvingKey, r1cs: R1CS | StructuredR1CS) -> None:
    """Raises MismatchError where the sizes alone say that the key is another circuit's."""
    ours, theirs = names_of(key, r1cs)
    if key.curve is not r1cs.curve:
        raise MismatchError(f"{ours} is over {key.curve.name}, {theirs} over {r1cs.curve.name}")
    if (key.n_wires, key.n_public) != (r1cs.n_wires, r1cs.n_public):
        raise MismatchError(
            f"{ours} is for {key.n_wires} wires, {key.n_public} of them public; "
            f"{theirs} has {r1cs.n_wires} and {r1cs.n_public}"
        )
    if key.domain.size < r1cs.n_constraints + r1cs.n_public + 1:
        raise MismatchError(
            f"the domain of {ours} has {key.domain.size} rows; {theirs} needs "
            f"{r1cs.n_constraints + r1cs.n_public + 1} ({r1cs.n_constraints} constraints)"
        )


def names_of(key: ProvingKey, r1cs: R1CS | StructuredR1CS) -> tuple[str, str]:
    """What messages call the two."""
    return " ".join(["the key", key.path or ""]).rstrip(), " ".join(["the circuit", r1cs.path or ""]).rstrip()
