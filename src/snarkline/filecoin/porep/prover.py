"""Commit phase 2: from the vanilla proofs of a sector to 192 bytes a partition, and their verification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from snarkline.curves.curve import BLS12_381
from snarkline.errors import InputError, InternalError, MismatchError
from snarkline.filecoin.porep.challenges import interactive_challenges
from snarkline.filecoin.porep.circuit import assignment, porep_circuit
from snarkline.filecoin.porep.graph import StackedGraph
from snarkline.filecoin.porep.vanilla import Commitments, Phase1Output, check_phase1
from snarkline.filecoin.registry import PorepVersion, SectorSize, porep_id
from snarkline.formats.bellperson.proof import PROOF_BYTES, proof_from_bytes, proof_to_bytes
from snarkline.groth16.classic import ClassicProver
from snarkline.groth16.keys import Proof, ProvingKey, VerifyingKey
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify_many
from snarkline.memory import Release
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness, run_program
from snarkline.trace import span


def graph_of(size: SectorSize, version: PorepVersion) -> StackedGraph:
    """The graph of a sector size under a version's registered proof."""
    return StackedGraph(size.n_nodes, porep_id(size, version), version)


def public_inputs(size: SectorSize, version: PorepVersion, known: Commitments, partition: int) -> tuple[int, ...]:
    """What the verifier derives for a partition: replica id, comm_d, comm_r, then 18 numbers of nodes a challenge.

    These are, for a challenged node: itself (tree d), its 6 base and 8 expander parents (tree c), and itself three
    times (the label's node, tree r last, tree c).
    """
    graph = graph_of(size, version)
    inputs = [int.from_bytes(element, "little") for element in (known.replica_id, known.comm_d, known.comm_r)]
    nodes = interactive_challenges(size, known.replica_id, known.seed, partition)
    for node, (base, expander) in zip(nodes, graph.parents(nodes), strict=True):
        inputs += [node, *base, *expander, node, node, node]
    return tuple(inputs)


@span("record circuit")
def recorded(size: SectorSize) -> StructuredR1CS:
    """The constraint system of a partition, in the core's form too, which is made once."""
    circuit = porep_circuit(size)
    with span("compile circuit"):
        circuit.native  # noqa: B018
    return circuit


class PorepProver:
    """Proves sectors of one size with parameters that stay resident. A context manager.

    `circuit` is the constraint system of a partition (`recorded`), which is made here unless it is given. The other
    arguments are those of `Prover`. With `classic_host` all partitions are proven in one call, which holds a, b and c
    of all of them and copies in host memory (`ClassicProver`); `release` says how that is given back. Raises
    MismatchError for parameters of another circuit, and for what the classic layout does not take: a cap on memory,
    devices.
    """

    def __init__(
        self,
        size: SectorSize,
        key: ProvingKey,
        *,
        circuit: StructuredR1CS | None = None,
        backend: str = "auto",
        threads: int | None = None,
        release: Release | str = Release.RECYCLE,
        max_memory: int | None = None,
        devices: Sequence[int] | None = None,
        gpu_memory: int | None = None,
        classic_host: bool = False,
    ) -> None:
        if classic_host and any(option is not None for option in (max_memory, devices, gpu_memory)):
            raise MismatchError("the classic layout takes no cap on memory, and no choice of devices")
        what = " ".join(["the key", key.path or ""]).rstrip()
        if key.curve is not BLS12_381 or key.n_public != size.n_public_inputs:
            raise MismatchError(
                f"{what} has {key.n_public} public inputs over {key.curve.name}; "
                f"the circuit of {size.name} has {size.n_public_inputs} over {BLS12_381.name}"
            )
        self.size = size
        self.circuit = circuit or recorded(size)
        if key.n_wires != self.circuit.n_wires:
            raise MismatchError(
                f"{what} is for {key.n_wires} wires; the circuit of {size.name} has {self.circuit.n_wires}"
            )
        with span("attach key"):
            # A key that has matrices gets these too: witnesses of another recording would be packed for each proof.
            key = key.attach(self.circuit)
        self._prover: Prover | ClassicProver
        if classic_host:
            self._prover = ClassicProver(
                key, r1cs=self.circuit, backend=backend, threads=threads, release=release, host_copies=True
            )
        else:
            self._prover = Prover(
                key, r1cs=self.circuit, backend=backend, threads=threads, release=release, max_memory=max_memory,
                devices=devices, gpu_memory=gpu_memory,
            )  # fmt: skip

    @property
    def note(self) -> str:
        """Where proofs are made, and why not elsewhere."""
        return self._prover.note

    def prove(
        self,
        output: Phase1Output,
        version: PorepVersion,
        *,
        blinding_for_tests: tuple[int, int] | None = None,
    ) -> bytes:
        """The proofs of all partitions, 192 bytes each, verified.

        Raises InputError for vanilla proofs that do not hold, before any of the work; it names partition and challenge.
        """
        if output.size != self.size:
            raise InputError(f"vanilla proofs of a {output.size.name} sector; the prover is for {self.size.name}")
        check_phase1(output, graph_of(self.size, version))
        return self.prove_checked(output, version, blinding_for_tests=blinding_for_tests)

    def prove_checked(
        self, output: Phase1Output, version: PorepVersion, *, blinding_for_tests: tuple[int, int] | None = None
    ) -> bytes:
        """`prove`, of vanilla proofs of the prover's sector size for which `check_phase1` has held."""
        return b"".join(proof_to_bytes(proof) for proof in self._proofs(output, version, blinding_for_tests))

    def _proofs(self, output: Phase1Output, version: PorepVersion, blinding: tuple[int, int] | None) -> list[Proof]:
        """The partitions one after another, or in one call."""
        prover, partitions = self._prover, range(self.size.n_partitions)
        if isinstance(prover, ClassicProver):
            witnesses = [self._synthesis(output, version, k) for k in partitions]
            return prover.prove(witnesses, blinding_for_tests=blinding)
        proofs = []
        for k in partitions:
            with span("partition", index=k):
                witness = self._synthesis(output, version, k)
                # The openings hold, so the witness does. Where a fault of the machine spoilt it, the self-check tells,
                # and then the constraint is named.
                proofs.append(prover.prove(witness, check=False, blinding_for_tests=blinding))
        return proofs

    @span("synthesis")
    def _synthesis(self, output: Phase1Output, version: PorepVersion, k: int) -> StructuredWitness:
        """The witness of a partition."""
        prover = self._prover
        witness = run_program(self.circuit, assignment(output, k), threads=prover.threads, arena=prover.arena)
        if witness.public(self.size.n_public_inputs) != public_inputs(self.size, version, output.commitments, k):
            raise InternalError(f"partition {k}: the circuit's public inputs are not those of the verifier")
        return witness

    def close(self) -> None:
        """Give everything back."""
        self._prover.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def verify_porep(
    vk: VerifyingKey,
    size: SectorSize,
    version: PorepVersion,
    known: Commitments,
    proofs: bytes,
    *,
    path: str | None = None,
) -> bool:
    """Whether the proofs of all partitions hold for what the chain knows of a sector.

    Raises FormatError for bytes that are no proofs (`path` is named in it), MismatchError for another circuit's key.
    """
    if vk.curve is not BLS12_381 or vk.n_public != size.n_public_inputs:
        raise MismatchError(
            f"the key has {vk.n_public} public inputs over {vk.curve.name}, {size.name} {size.n_public_inputs}"
        )
    expected = PROOF_BYTES * size.n_partitions
    if len(proofs) != expected:
        raise InputError(f"{path or 'proof'}: expected {expected} bytes for {size.name}, found {len(proofs)}")
    pairs = []
    for k in range(size.n_partitions):
        public = public_inputs(size, version, known, k)
        data = proofs[PROOF_BYTES * k : PROOF_BYTES * (k + 1)]
        pairs.append((proof_from_bytes(data, public, path=path), public))
    return verify_many(vk, pairs)


def find_parameters(size: SectorSize, place: Path, suffix: str = ".params") -> Path:
    """A parameter file: `place` itself, or the file of the registered name in the folder `place`.

    Raises InputError that says the name and where it was looked for.
    """
    made = "`snarkline porep params` makes one for development; --params and --vk take a file or a folder"
    if place.is_dir():
        path = place / (size.parameter_stem() + suffix)
        if not path.exists():
            raise InputError(f"no {path.name} in {place}: {made}")
        return path
    if not place.exists():
        raise InputError(f"{place}: no such file; {size.name} needs {size.parameter_stem()}{suffix}: {made}")
    if place.suffix != suffix:
        raise InputError(f"{place}: expected a {suffix} file")
    return place
