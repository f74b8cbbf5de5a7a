"""Witnesses of structured systems: bits packed 64 to a word, field elements, and the program that computes both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.errors import FormatError, MismatchError, UnsatisfiedError
from snarkline.memory import Arena
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.witness import Witness
from snarkline.threads import usable_threads
from snarkline.trace import span


@dataclass(frozen=True, eq=False)
class StructuredWitness:
    """The values of all wires of a structured system. Secret, like every witness.

    `publics` are wires 0 to n_public, `wides` the field elements, run by run, in batches of 64 instances, column by
    column (both of shape (n, 4), Montgomery form). `bits` holds the columns of bits, run by run, in batches of 64 or
    512 instances: bit l of word k of a column belongs to instance 64 k + l of the batch.
    """

    system: StructuredR1CS
    publics: Limbs
    bits: npt.NDArray[np.uint64]
    wides: Limbs

    @property
    def curve(self) -> Curve:
        return self.system.curve

    @property
    def nbytes(self) -> int:
        return self.publics.nbytes + self.bits.nbytes + self.wides.nbytes

    def __len__(self) -> int:
        return self.system.n_wires

    def __repr__(self) -> str:
        return f"<StructuredWitness {self.curve.name} n={len(self)}>"

    @property
    def arrays(self) -> tuple[Limbs, npt.NDArray[np.uint64], Limbs]:
        """The values as the compiled core takes them."""
        return self.publics, self.bits, self.wides

    def expand(self, *, threads: int | None = None, arena: Arena | None = None) -> Witness:
        """The values of all wires in canonical form, 32 bytes each."""
        out = (arena or Arena()).empty((len(self), self.curve.fr_limbs), secret=True)
        self.system.native.expand(threads or usable_threads(), *self.arrays, out)
        return Witness(FrVector(self.curve, out, Form.CANONICAL))

    @classmethod
    def pack(
        cls, system: StructuredR1CS, witness: Witness, *, threads: int | None = None, arena: Arena | None = None
    ) -> StructuredWitness:
        """The values of a witness that has passed `check_witness`, packed.

        Raises UnsatisfiedError, naming the wire, for a value other than 0 and 1 where the circuit has a bit.
        """
        packed = _empty(system, arena or Arena())
        bad = system.native.pack(threads or usable_threads(), *packed.arrays, witness.values.limbs)
        if bad >= 0:
            raise UnsatisfiedError(
                None, f"wire {bad} ({system.wire_path(bad)}) is a bit and its value is neither 0 nor 1"
            )
        return packed

    def products(self, out: tuple[Limbs, Limbs, Limbs], *, threads: int | None = None) -> None:
        """<A_k, w>, <B_k, w>, <C_k, w> for every constraint k of the system, Montgomery form."""
        self.system.native.evaluate(threads or usable_threads(), [self.arrays], [out])

    @staticmethod
    def products_of(
        witnesses: Sequence[StructuredWitness],
        out: Sequence[tuple[Limbs, Limbs, Limbs]],
        *,
        threads: int | None = None,
    ) -> None:
        """`products` of several witnesses of one system, in one pass over its structure."""
        if any(witness.system is not witnesses[0].system for witness in witnesses) or len(out) != len(witnesses):
            raise MismatchError("products in one pass are of witnesses of one system")
        if witnesses:
            arrays = [witness.arrays for witness in witnesses]
            witnesses[0].system.native.evaluate(threads or usable_threads(), arrays, list(out))

    def values(self, wires: Sequence[int] | npt.NDArray[np.integer]) -> list[int]:
        """The values of some wires."""
        numbers = np.asarray(wires, dtype=np.int64).reshape(-1)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise MismatchError(f"wires are from 0 to {len(self) - 1}")
        out = np.empty((len(numbers), self.curve.fr_limbs), np.uint64)
        self.system.native.read(*self.arrays, numbers.astype(np.uint32), out)
        return FrVector(self.curve, out, Form.CANONICAL).to_ints()

    def value(self, wire: int) -> int:
        """The value of one wire."""
        return self.values([wire])[0]

    def public(self, n_public: int) -> tuple[int, ...]:
        """The values of wires 1 to `n_public`."""
        return tuple(self.values(range(1, n_public + 1)))


@dataclass(frozen=True, eq=False)
class GivenValues:
    """What the program of a system starts from: the values of `system.given`, in that order and canonical. Secret.

    Whoever takes them runs the program where it is fastest.
    """

    system: StructuredR1CS
    values: FrVector

    def __repr__(self) -> str:
        return f"<GivenValues {self.system.curve.name} n={len(self.values)}>"

    def run(self, *, threads: int | None = None, arena: Arena | None = None) -> StructuredWitness:
        """`run_program`."""
        return run_program(self.system, self.values, threads=threads, arena=arena)


@span("witness program")
def run_program(
    system: StructuredR1CS,
    given: FrVector,
    *,
    n_runs: int = -1,
    threads: int | None = None,
    arena: Arena | None = None,
) -> StructuredWitness:
    """The witness from the values that are given, canonical and in the order of `system.given`.

    With `n_runs` the programs of the first runs only, all given wires being public or theirs; `bits` and `wides` then
    end with their values.

    Raises MismatchError for another curve, form or number of values, FormatError naming the index of a value that is
    not a bit where one is expected, or not below r.
    """
    if given.curve is not system.curve or given.form is not Form.CANONICAL:
        raise MismatchError(f"values are given as {given}, expected canonical ones over {system.curve.name}")
    if len(given) != len(system.given):
        raise MismatchError(f"{len(given)} values are given, the circuit takes {len(system.given)}")
    native, threads = system.native, threads or usable_threads()
    witness = _empty(system, arena or Arena(), n_runs)
    bad = native.give(threads, *witness.arrays, system.given, system.bits.view(np.uint8), given.limbs, n_runs)
    if bad >= 0:
        expected = "0 or 1" if system.bits[bad] else "a value below the scalar field's modulus"
        raise FormatError(None, f"given value {bad} (wire {system.given[bad]})", expected, "another value")
    native.run(threads, *witness.arrays, n_runs)
    return witness


def _empty(system: StructuredR1CS, arena: Arena, n_runs: int = -1) -> StructuredWitness:
    n_bits, n_wides = system.native.sizes_of(n_runs)
    limbs = system.curve.fr_limbs
    return StructuredWitness(
        system,
        np.zeros((system.n_public + 1, limbs), np.uint64),
        arena.empty((n_bits,), secret=True),
        arena.empty((n_wides, limbs), secret=True),
    )
