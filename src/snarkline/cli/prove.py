"""`snarkline prove` and `snarkline verify`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption, require_writable, write_text


class BackendName(StrEnum):
    """Where to prove."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class ReleaseName(StrEnum):
    """What becomes of the prover's large buffers."""

    recycle = "recycle"
    detached = "detached"
    sync = "sync"
    madvise = "madvise"
    clear = "clear"


def prove(
    key: Annotated[Path, typer.Argument(help="Proving key (.zkey).", metavar="KEY.zkey")],
    witness: Annotated[Path, typer.Argument(help="Witness (.wtns).", metavar="WITNESS.wtns")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the proof goes.")] = Path("proof.json"),
    public: Annotated[Path, typer.Option("--public", help="Where the public inputs go.")] = Path("public.json"),
    r1cs: Annotated[Path | None, typer.Option("--r1cs", help="The circuit: a violated constraint is named.")] = None,
    backend: Annotated[BackendName, typer.Option("--backend", help="Where to prove.")] = BackendName.auto,
    threads: ThreadsOption = None,
    release: Annotated[
        ReleaseName, typer.Option("--release", help="How large buffers are given back.")
    ] = ReleaseName.recycle,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write the timeline (.json or .html).")] = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Skip the check of the constraints (the proof is verified all the same).")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse keys that must not be trusted.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Prove that a witness satisfies the circuit of a key."""
    from snarkline import Prover, load_proving_key, load_r1cs, load_witness
    from snarkline.formats.circom import proof_to_json, public_to_json
    from snarkline.trace import Timeline, span

    report = Report(as_json=as_json, quiet=quiet)
    require_writable(output, public, trace)
    with Timeline() as timeline, report.working("proving"), span("snarkline prove"):
        with span("load"):
            proving_key = load_proving_key(key, strict=strict)
            circuit = load_r1cs(r1cs) if r1cs is not None else None
            values = load_witness(witness, curve=proving_key.curve)
        with Prover(proving_key, r1cs=circuit, backend=backend, threads=threads, release=release) as prover:
            proof = prover.prove(values, check=not no_check)
        with span("write"):
            write_text({output: proof_to_json(proof), public: public_to_json(proof.public)})
    if trace is not None:
        timeline.save(trace)
    report.line(f"proof written to {output}, public inputs to {public} ({timeline.wall_s:.2f} s)")
    report.result(
        {
            "proof": str(output),
            "public": str(public),
            "curve": proof.curve.name,
            "n_public": len(proof.public),
            "seconds": round(timeline.wall_s, 6),
            "trace": None if trace is None else str(trace),
        }
    )


def verify(
    vk: Annotated[Path, typer.Argument(help="Verifying key.", metavar="VK.json")],
    files: Annotated[list[Path], typer.Argument(help="Pairs: public inputs, proof.", metavar="PUBLIC.json PROOF.json")],
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
        raise typer.Exit(1)
