"""`snarkline bench synthesis`: from a circuit to its witness and a, b, c, in every way that provers do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.threads import usable_threads

if TYPE_CHECKING:
    from snarkline.cli.bench.synthesis_run import Row, SynthesisRun

_CAPTION = """classic: alloc and enforce for each constraint, a circuit a thread.
published: 4-byte columns, 32-byte values, a product for each entry.
codes: a, b, c as one byte each, and what does not fit beside.
peak: over the process before; structure: what a, b, c are made from."""
MAX_FLAT_LOG = 23
"""Flat matrices as published take 220 bytes a constraint, and several times that while they are written out."""


def synthesis(
    sizes: Annotated[
        str, typer.Option("--sizes", help="Logs of constraints, with commas, from 14 to 27.")
    ] = "18,20,22",
    poseidon: Annotated[
        int, typer.Option("--poseidon", min=10, max=24, help="Log of the constraints of the Poseidon tree.")
    ] = 18,
    proof: Annotated[
        int, typer.Option("--proof", min=0, max=24, help="Log of the constraints of the whole proofs; 0: none.")
    ] = 16,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of the recorded paths; the best counts.")] = 3,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time the ways from a circuit to a, b and c: constraint by constraint, flat matrices, templates.

    SHA-256 chains of about 2^SIZE constraints and a Poseidon tree, over BLS12-381; and whole proofs after synthesis
    constraint by constraint. Every run has a process of its own.
    """
    from snarkline.cli.bench import synthesis_proof, synthesis_run
    from snarkline.cli.bench.synthesis_run import CLASSES, CURES, PUBLISHED, RECORDED, TEMPLATES, SynthesisRun

    report, n = Report(as_json=as_json, quiet=quiet), threads or usable_threads()
    plan = [
        SynthesisRun(path, "sha256", log_size, n, runs)
        for log_size in _read_sizes(sizes)
        for path in (*CURES, *RECORDED)
        if path not in (PUBLISHED, CLASSES) or log_size <= MAX_FLAT_LOG
    ]
    plan += [SynthesisRun(path, "poseidon", poseidon, n, runs) for path in (PUBLISHED, TEMPLATES)]
    proofs = [SynthesisRun(path, "sha256", proof, n, runs) for path in synthesis_proof.PROOFS if proof]
    with report.working(f"{len(plan) + len(proofs)} processes"):
        rows = [_fresh(synthesis_run.__name__, run) for run in plan]
        whole = [_fresh(synthesis_proof.__name__, run) for run in proofs]
    report.show(_table(rows))
    if whole:
        report.show(_proof_table(whole))
    report.result({"rows": rows, "proofs": whole})


def _fresh(module: str, run: SynthesisRun) -> Row:
    import json

    from snarkline.memory.fresh import run_fresh

    return dict(json.loads(run_fresh(module, run, "4k")))


def _read_sizes(sizes: str) -> list[int]:
    """The logs of `--sizes`. Raises InputError."""
    from snarkline.errors import InputError

    parts = [part.strip() for part in sizes.split(",")]
    if not all(part.isascii() and part.isdigit() and 14 <= int(part) <= 27 for part in parts):
        raise InputError(f"--sizes: expected numbers from 14 to 27 with commas, found {sizes!r}")
    return [int(part) for part in parts]


def _table(rows: list[Row]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=f"Witness and a, b, c, {rows[0]['threads']} threads", caption=_CAPTION, box=box.SIMPLE_HEAD)
    table.add_column("circuit", no_wrap=True)
    table.add_column("path", no_wrap=True)
    for heading in (
        "witness ms",
        "a, b, c ms",
        "ns a constraint",
        "peak MiB",
        "structure MiB",
        "allocations",
        "freed MiB",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row['circuit']} 2^{row['log_size']}",
            row["path"],
            f"{row['witness_s'] * 1e3:.2f}" if row["witness_s"] else "",
            f"{row['abc_s'] * 1e3:.2f}",
            f"{row['ns_per_constraint']:.1f}",
            f"{row['peak_bytes'] / 2**20:.0f}",
            f"{row['structure_bytes'] / 2**20:.1f}",
            f"{row['allocations']:,}",
            f"{row['bytes_freed'] / 2**20:,.0f}",
        )
    return table


def _proof_table(rows: list[Row]) -> Any:
    from rich import box
    from rich.table import Table

    title = f"Whole proofs of {rows[0]['n_constraints']:,} constraints, {rows[0]['threads']} threads, seconds"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("path", no_wrap=True)
    for heading in ("synthesis", "wrapper", "teardown", "total"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row["path"], *(f"{row[f'{name}_s']:.3f}" for name in ("synthesis", "wrapper", "teardown", "total"))
        )
    return table
