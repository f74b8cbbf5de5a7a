"""`snarkline prove` and `snarkline verify`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from snarkline.cli.circuit import SizesOption, is_python_circuit, require_python_circuit, run_circuit
from snarkline.cli.gpu_options import DevicesOption, GpuMemoryOption, device_numbers, gpu_memory_bytes
from snarkline.cli.options import Argument, Option
from snarkline.cli.output import (
    JsonOption,
    QuietOption,
    Report,
    ThreadsOption,
    input_bytes,
    named,
    require_writable,
    stage_text,
)
from snarkline.cli.witness import log_line

if TYPE_CHECKING:
    from snarkline.curves.curve import Curve
    from snarkline.r1cs.matrices import R1CS
    from snarkline.r1cs.structured import StructuredR1CS
    from snarkline.r1cs.structured_witness import StructuredWitness
    from snarkline.r1cs.witness import Witness

USUAL = "on the CPU"
"""A note that says nothing new."""


class BackendName(StrEnum):
    """Where to prove."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class ReleaseName(StrEnum):
    """What becomes of the prover's large buffers."""

    detached = "detached"
    recycle = "recycle"
    sync = "sync"
    madvise = "madvise"
    clear = "clear"


MaxMemoryOption = Annotated[
    str | None, Option("--max-memory", help="Most resident memory, as 512M or 2G: less takes longer.", metavar="SIZE")
]


def prove(
    key: Annotated[Path, Argument(help="Proving key (.zkey), or a circuit.", metavar="KEY.zkey | FILE.py:NAME")],
    witness: Annotated[
        Path | None,
        Argument(help="Witness (.wtns); - is standard input.", metavar="WITNESS.wtns", show_default=False),
    ] = None,
    wasm: Annotated[
        Path | None, Option("--wasm", help="In place of a witness: circom's calculator, with --input.")
    ] = None,
    input_: Annotated[Path | None, Option("--input", help="Values of the circuit's input signals (.json).")] = None,
    circuit_key: Annotated[Path | None, Option("--key", help="For a circuit in Python: its proving key.")] = None,
    sizes: SizesOption = None,
    output: Annotated[Path, Option("--output", "-o", help="Where the proof goes; - is standard output.")] = Path(
        "proof.json"
    ),
    public: Annotated[Path, Option("--public", help="Where the public inputs go; or -.")] = Path("public.json"),
    r1cs: Annotated[Path | None, Option("--r1cs", help="The circuit: a violated constraint is named.")] = None,
    backend: Annotated[BackendName, Option("--backend", help="Where to prove.")] = BackendName.auto,
    devices: DevicesOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    release: Annotated[  # one proof has no next one to recycle for: what is pooled would only add to its peak
        ReleaseName, Option("--release", help="How large buffers are given back (docs/memory.md).")
    ] = ReleaseName.detached,
    max_memory: MaxMemoryOption = None,
    trace: Annotated[Path | None, Option("--trace", help="Write the timeline (.json or .html); or -.")] = None,
    no_check: Annotated[
        bool, Option("--no-check", help="Skip the check of the constraints (the proof is verified all the same).")
    ] = False,
    copy_key: Annotated[
        bool, Option("--copy-key", help="Read the key into memory: what happens to its file meanwhile does not matter.")
    ] = False,
    strict: Annotated[bool, Option("--strict", help="Refuse keys that must not be trusted.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Prove that a witness satisfies the circuit of a key."""
    import time
    from contextlib import ExitStack, nullcontext

    import snarkline
    from snarkline import Prover, load_proving_key, span
    from snarkline.formats.circom import proof_to_json, public_to_json

    report = Report(as_json=as_json, quiet=quiet, outputs=(output, public, trace))
    source, key = (key, circuit_key) if circuit_key is not None else (None, key)
    if source is None and not is_python_circuit(key):
        _require_one_witness(witness, wasm, input_)
    else:
        require_python_circuit(source or key, circuit_key, input_, others=(witness, wasm, r1cs))
    require_writable(output, public, trace, inputs=(key, witness, r1cs, wasm, input_))
    gpus, gpu_cap = device_numbers(devices), gpu_memory_bytes(gpu_memory)
    cap = _memory_cap(key, r1cs, max_memory, threads)
    started = time.perf_counter()
    timeline = snarkline.Timeline() if trace is not None else None
    with ExitStack() as outputs:  # proof, public inputs and timeline appear together, or none of them
        with timeline or nullcontext(), report.working("proving"), span("snarkline prove"):
            with span("load"):
                proving_key = load_proving_key(key, strict=strict, threads=threads, copy=copy_key)
                circuit: R1CS | StructuredR1CS | None = None
                values: Witness | StructuredWitness
                if source is not None and input_ is not None:
                    circuit, values = run_circuit(source, proving_key.curve, sizes, input_, check=not no_check)
                    proving_key = proving_key.attach(circuit)
                else:
                    circuit = snarkline.load_r1cs(r1cs, threads=threads) if r1cs is not None else None
                    values = _witness(proving_key.curve, witness, wasm, input_, threads, None if quiet else log_line)
            with Prover(
                proving_key, r1cs=circuit, backend=backend, threads=threads, release=release, max_memory=cap,
                devices=gpus, gpu_memory=gpu_cap,
            ) as prover:  # fmt: skip
                proof = prover.prove(values, check=not no_check and source is None)
            with span("write"):
                stage_text(outputs, {output: proof_to_json(proof), public: public_to_json(proof.public)})
        seconds = time.perf_counter() - started
        if timeline is not None and trace is not None:
            stage_text(outputs, {trace: timeline.rendered(trace)})
    note = "" if prover.note == USUAL else f", {prover.note}"
    report.line(f"proof written to {named(output)}, public inputs to {named(public)} ({seconds:.2f} s{note})")
    if trace is not None:
        report.line(f"timeline written to {named(trace)}")
    report.result(
        {
            "proof": str(output),
            "public": str(public),
            "curve": proof.curve.name,
            "n_public": len(proof.public),
            "seconds": round(seconds, 6),
            "backend": prover.note,
            "trace": None if trace is None else str(trace),
        }
    )


def _memory_cap(key: Path, r1cs: Path | None, max_memory: str | None, threads: int | None) -> int | None:
    """The cap in bytes. Raises BudgetError for a key that cannot be loaded and used within it."""
    if max_memory is None:
        return None
    from snarkline.cli.size import parse_size
    from snarkline.formats.circom.shape import read_shape
    from snarkline.groth16.footprint import Sizes, require, resident_bytes
    from snarkline.threads import usable_threads

    cap, n_threads = parse_size(max_memory, "--max-memory"), threads or usable_threads()
    if key.suffix == ".params":
        from snarkline.formats.bellperson import CURVE, parameter_sizes

        p = parameter_sizes(key)
        sizes = Sizes(CURVE, p.n_wires, p.domain_size, n_threads, n_gathered=p.n_a + p.n_b)
        n_entries = 0 if r1cs is None else read_shape(r1cs).n_entries
        needed = p.n_bytes + sizes.held_bytes(n_entries) + sizes.least_bytes()
    else:
        shape = read_shape(key)
        sizes = Sizes(shape.curve, shape.n_wires, shape.domain_size, n_threads)
        needed = sizes.least_whole_bytes(shape.n_entries)
    require(resident_bytes() + needed, cap, option="--max-memory", key=str(key))
    return cap


def _require_one_witness(witness: Path | None, wasm: Path | None, input_: Path | None) -> None:
    from snarkline.errors import MismatchError

    if (witness is None) != (wasm is not None and input_ is not None) or (wasm is None) != (input_ is None):
        raise MismatchError("give a WITNESS.wtns, or both --wasm CIRCUIT.wasm and --input INPUT.json")


def _witness(
    curve: Curve,
    witness: Path | None,
    wasm: Path | None,
    input_: Path | None,
    threads: int | None,
    log: Callable[[str], None] | None,
) -> Witness:
    from snarkline import load_witness

    if witness is not None:
        return load_witness(input_bytes(witness), curve=curve, threads=threads)
    from snarkline.errors import MismatchError
    from snarkline.formats.circom import calculate_witness

    assert wasm is not None and input_ is not None
    found = calculate_witness(wasm, input_bytes(input_), log=log)
    if found.curve is not curve:
        raise MismatchError(f"the key is over {curve.name}, {wasm} over {found.curve.name}")
    return found


def verify(
    vk: Annotated[Path, Argument(help="Verifying key.", metavar="VK.json")],
    files: Annotated[list[Path], Argument(help="Pairs: public inputs, proof.", metavar="PUBLIC.json PROOF.json")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Verify proofs. Exit code 1 if one of them does not hold."""
    from snarkline import load_verifying_key, proof_from_json, verify, verify_many
    from snarkline.errors import MismatchError
    from snarkline.formats.circom import public_from_json

    report = Report(as_json=as_json, quiet=quiet)
    if len(files) % 2:
        raise MismatchError(f"expected pairs of PUBLIC.json PROOF.json, found {len(files)} files")
    key = load_verifying_key(vk)
    pairs = list(zip(files[::2], files[1::2], strict=True))
    proofs = []
    for public_path, proof_path in pairs:
        public = public_from_json(public_path, curve=key.curve)
        proofs.append((proof_from_json(proof_path, public=public, curve=key.curve), public))
    holds = verify_many(key, proofs)
    valid = [True] * len(proofs) if holds else [verify(key, proof, public) for proof, public in proofs]
    for (_, path), good in zip(pairs, valid, strict=True):
        report.line(f"{path}: {'valid' if good else 'INVALID'}")
    report.result(
        {"valid": all(valid), "proofs": [{"proof": str(p), "valid": v} for (_, p), v in zip(pairs, valid, strict=True)]}
    )
    if not all(valid):
        raise SystemExit(1)
