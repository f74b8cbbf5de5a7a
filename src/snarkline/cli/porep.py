"""`snarkline porep`: seal a small sector, make development parameters, prove and verify its replication."""

from __future__ import annotations

import secrets
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snarkline.cli.gpu_options import DevicesOption, GpuMemoryOption, device_numbers, gpu_memory_bytes
from snarkline.cli.output import (
    JsonOption,
    QuietOption,
    Report,
    ThreadsOption,
    bytes_at_most,
    named,
    output_stream,
    require_one_stream,
    require_writable,
    source_name,
)
from snarkline.cli.prove import USUAL, BackendName, MaxMemoryOption, ReleaseName
from snarkline.filecoin.registry import PARAMETER_FOLDER

if TYPE_CHECKING:
    from snarkline.filecoin.porep.vanilla import Phase1Output
    from snarkline.filecoin.registry import SectorSize
    from snarkline.r1cs.structured import StructuredR1CS

MAX_PROOF_BYTES = 1 << 16
"""Ten partitions have 1,920 bytes."""

app = typer.Typer(name="porep", help="Filecoin's Proof-of-Replication.", no_args_is_help=True)


class SectorName(StrEnum):
    """Sector sizes with a registered proof."""

    kib2 = "2KiB"
    mib8 = "8MiB"
    mib512 = "512MiB"
    gib32 = "32GiB"
    gib64 = "64GiB"


class VersionName(StrEnum):
    """Versions of the registered proof."""

    v1_0 = "1.0.0"
    v1_1 = "1.1.0"
    v1_2 = "1.2.0"


SizeOption = Annotated[SectorName, typer.Option("--sector-size", help="Sector size.")]
ParametersOption = Annotated[
    Path | None,
    typer.Option("--params", help=f"Parameter file, or the folder of it; {PARAMETER_FOLDER} if not given."),
]
VersionOption = Annotated[
    VersionName, typer.Option("--version", help="Version of the registered proof. 1.1.0 and 1.2.0 are alike here.")
]


@app.command()
def seal(
    data: Annotated[
        Path, typer.Argument(help="The sector's data, 127/128 of the sector size; - is standard input.", metavar="DATA")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the C1 output goes (.json); or -.")],
    size: SizeOption = SectorName.kib2,
    version: VersionOption = VersionName.v1_1,
    replica: Annotated[Path | None, typer.Option("--replica", help="Where the sealed sector goes; or -.")] = None,
    prover_id: Annotated[
        str, typer.Option("--prover-id", help="32 bytes, hexadecimal; zeros if not given.", show_default=False)
    ] = "00" * 32,
    sector_id: Annotated[int, typer.Option("--sector-id", min=0, help="Number of the sector.")] = 0,
    ticket: Annotated[str | None, typer.Option("--ticket", help="32 bytes, hexadecimal; random if not given.")] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="32 bytes, hexadecimal; random if not given.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Seal a small sector (phases 0 and 1): the replica, and the vanilla proofs that commit phase 2 takes."""
    from contextlib import ExitStack

    from snarkline.cli.output import stage_text
    from snarkline.errors import FormatError
    from snarkline.filecoin.porep.c1 import phase1_to_json
    from snarkline.filecoin.porep.seal import SectorFacts
    from snarkline.filecoin.porep.seal import seal as seal_sector
    from snarkline.filecoin.porep.vanilla import prove_partitions
    from snarkline.filecoin.registry import PorepVersion

    report = Report(as_json=as_json, quiet=quiet, outputs=(output, replica))
    require_writable(output, replica, inputs=[data])
    sector_size = _size(size)
    facts = SectorFacts(
        sector_size, PorepVersion(version.value), _bytes("prover-id", prover_id), sector_id, _bytes("ticket", ticket)
    )
    chosen_seed = _bytes("seed", seed)
    started = time.perf_counter()
    with report.working("sealing"):
        content = bytes_at_most(data, sector_size.unpadded_bytes)
        if len(content) != sector_size.unpadded_bytes:
            expected = f"{sector_size.unpadded_bytes} bytes, what a {size.value} sector holds"
            raise FormatError(source_name(data), "size", expected, f"{len(content)} bytes")
        sealed = seal_sector(facts, content)
        phase1 = prove_partitions(sealed, chosen_seed)
    with ExitStack() as outputs:
        if replica is not None:
            outputs.enter_context(output_stream(replica)).write(sealed.replica.tobytes())
        stage_text(outputs, {output: phase1_to_json(phase1)})
    seconds = time.perf_counter() - started
    report.line(f"sealed: comm_r {sealed.comm_r.hex()}, C1 written to {named(output)} ({seconds:.2f} s)")
    report.result(
        {
            "c1": str(output),
            "comm_d": sealed.comm_d.hex(),
            "comm_r": sealed.comm_r.hex(),
            "replica_id": sealed.replica_id.hex(),
            "ticket": facts.ticket.hex(),
            "seed": chosen_seed.hex(),
            "seconds": round(seconds, 6),
        }
    )


@app.command()
def params(
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder, or the .params file.")] = Path(),
    size: SizeOption = SectorName.kib2,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make DEVELOPMENT parameters and their verifying key: who makes them can forge proofs."""
    from snarkline.filecoin.porep.circuit import porep_circuit
    from snarkline.formats import bellperson
    from snarkline.groth16.layout import bellperson_layout
    from snarkline.groth16.setup import setup

    report = Report(as_json=as_json, quiet=quiet)
    sector_size = _size(size)
    path = output / f"{sector_size.parameter_stem()}.params" if output.is_dir() else output
    vk = path.with_suffix(".vk")
    require_writable(files=(path, vk))
    started = time.perf_counter()
    with report.working("making development parameters"):
        key = setup(porep_circuit(sector_size), layout=bellperson_layout)
        bellperson.save_parameters(key, path)
        bellperson.save_verifying_key(key, vk)
    seconds = time.perf_counter() - started
    report.line(f"development parameters written to {path}, verifying key to {vk} ({seconds:.2f} s)")
    report.result({"params": str(path), "vk": str(vk), "domain": key.domain.size, "seconds": round(seconds, 6)})


@app.command()
def prove(
    c1: Annotated[
        Path, typer.Argument(help="Output of commit phase 1 (.json); - is standard input.", metavar="C1.json")
    ],
    parameters: ParametersOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the proof bytes go; or -.")] = Path("proof.bin"),
    size: SizeOption = SectorName.kib2,
    version: VersionOption = VersionName.v1_1,
    backend: Annotated[BackendName, typer.Option("--backend", help="Where to prove.")] = BackendName.auto,
    devices: DevicesOption = None,
    gpu_memory: GpuMemoryOption = None,
    threads: ThreadsOption = None,
    release: Annotated[
        ReleaseName, typer.Option("--release", help="How large buffers are given back (docs/memory.md).")
    ] = ReleaseName.recycle,
    max_memory: MaxMemoryOption = None,
    classic_host: Annotated[
        bool,
        typer.Option(
            "--classic-host",
            help="All partitions in one call, with a, b, c and the inner function's copies of them in host memory, as "
            "provers behind a language boundary have it.",
        ),
    ] = False,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write the timeline (.json or .html); or -.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Commit phase 2: 192 bytes for each partition of a sector, verified."""
    from contextlib import ExitStack, nullcontext

    from snarkline import Timeline, load_proving_key, span
    from snarkline.cli.output import stage_text
    from snarkline.cli.size import parse_size
    from snarkline.errors import MismatchError
    from snarkline.filecoin.porep.prover import PorepProver, find_parameters, graph_of
    from snarkline.filecoin.porep.vanilla import check_phase1
    from snarkline.filecoin.registry import PorepVersion

    report = Report(as_json=as_json, quiet=quiet, outputs=(output, trace))
    sector_size, porep_version = _size(size), PorepVersion(version.value)
    path = find_parameters(sector_size, parameters or PARAMETER_FOLDER)
    require_writable(output, trace, inputs=(c1, path))
    cap = None if max_memory is None else parse_size(max_memory, "--max-memory")
    gpus, gpu_cap = device_numbers(devices), gpu_memory_bytes(gpu_memory)
    if classic_host and any(option is not None for option in (cap, gpus, gpu_cap)):
        raise MismatchError("--classic-host takes no --max-memory, --devices or --gpu-memory")
    timeline = Timeline() if trace is not None else None
    started = time.perf_counter()
    with ExitStack() as outputs:
        with timeline or nullcontext(), report.working("proving"), span("snarkline porep prove"):
            with span("load"):
                phase1 = _phase1(c1, sector_size)
                check_phase1(phase1, graph_of(sector_size, porep_version))  # before parameters, which take seconds
                circuit = None if cap is None else _circuit_within(sector_size, path, cap, threads)
                key = load_proving_key(path)
            with PorepProver(
                sector_size, key, circuit=circuit, backend=backend, threads=threads, release=release, max_memory=cap,
                devices=gpus, gpu_memory=gpu_cap, classic_host=classic_host,
            ) as prover:  # fmt: skip
                loaded = time.perf_counter()
                proofs = prover.prove_checked(phase1, porep_version)
                proved = time.perf_counter()
        outputs.enter_context(output_stream(output)).write(proofs)
        if timeline is not None and trace is not None:
            stage_text(outputs, {trace: timeline.rendered(trace)})
    note = "" if prover.note == USUAL else f", {prover.note}"
    seconds = f"parameters {loaded - started:.2f} s, proof {proved - loaded:.2f} s"
    report.line(f"{len(proofs)} bytes written to {named(output)} ({seconds}{note})")
    if trace is not None:
        report.line(f"timeline written to {named(trace)}")
    report.result(
        {
            "proof": str(output),
            "params": str(path),
            "bytes": len(proofs),
            "backend": prover.note,
            "load_seconds": round(loaded - started, 6),
            "proof_seconds": round(proved - loaded, 6),
        }
    )


@app.command()
def verify(
    c1: Annotated[
        Path, typer.Argument(help="The sector's commitments and seed: its C1 output; or -.", metavar="C1.json")
    ],
    proof: Annotated[Path, typer.Argument(help="Proof bytes; - is standard input.", metavar="PROOF.bin")],
    vk: Annotated[
        Path | None,
        typer.Option("--vk", help=f"Verifying key file, or the folder of it; {PARAMETER_FOLDER} if not given."),
    ] = None,
    size: SizeOption = SectorName.kib2,
    version: VersionOption = VersionName.v1_1,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Verify the proofs of a sector. Exit code 1 if they do not hold."""
    from snarkline import load_verifying_key
    from snarkline.filecoin.porep.prover import find_parameters, verify_porep
    from snarkline.filecoin.registry import PorepVersion

    report = Report(as_json=as_json, quiet=quiet)
    require_one_stream(c1, proof)
    sector_size = _size(size)
    key = load_verifying_key(find_parameters(sector_size, vk or PARAMETER_FOLDER, ".vk"))
    known = _phase1(c1, sector_size).commitments
    data, name = bytes_at_most(proof, MAX_PROOF_BYTES), source_name(proof)
    holds = verify_porep(key, sector_size, PorepVersion(version.value), known, data, path=name)
    report.line(f"{name}: {'valid' if holds else 'INVALID'}")
    report.result({"valid": holds})
    if not holds:
        raise SystemExit(1)


def _circuit_within(size: SectorSize, parameters: Path, cap: int, threads: int | None) -> StructuredR1CS:
    """The circuit of a partition. Raises BudgetError for parameters that cannot be loaded and used within the cap."""
    from snarkline.filecoin.porep.footprint import least_bytes
    from snarkline.filecoin.porep.prover import recorded
    from snarkline.formats.bellperson import parameter_sizes
    from snarkline.groth16.footprint import require, resident_bytes
    from snarkline.threads import usable_threads

    sizes, circuit = parameter_sizes(parameters), recorded(size)
    needed = least_bytes(circuit, sizes, threads or usable_threads())
    require(resident_bytes() + needed, cap, option="--max-memory", key=str(parameters))
    return circuit


def _phase1(c1: Path, size: SectorSize) -> Phase1Output:
    from snarkline.filecoin.porep.c1 import MAX_BYTES, parse_phase1

    return parse_phase1(bytes_at_most(c1, MAX_BYTES), size, path=source_name(c1))


def _size(name: SectorName) -> SectorSize:
    from snarkline.filecoin.registry import sector_size

    return sector_size(name.value)


def _bytes(name: str, text: str | None) -> bytes:
    """32 bytes from hexadecimal digits, or random ones."""
    from snarkline.errors import InputError

    if text is None:
        return secrets.token_bytes(32)
    try:
        value = bytes.fromhex(text)
    except ValueError:
        raise InputError(f"--{name}: expected hexadecimal digits, found {text!r}") from None
    if len(value) != 32:
        raise InputError(f"--{name}: expected 32 bytes, found {len(value)}")
    return value
