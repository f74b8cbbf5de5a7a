"""`snarkline bench porep`: commit phase 2 under release policies, on the product's path and in the classic layout."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snarkline.cli.bench.release import POLICIES, POLICY_HELP, PageSize, chosen_policies, of_runs
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.cli.porep import ParametersOption, SectorName, SizeOption
from snarkline.filecoin.registry import PARAMETER_FOLDER
from snarkline.threads import usable_threads

if TYPE_CHECKING:
    from snarkline.cli.bench.classic import ClassicRun
    from snarkline.memory.experiment import Row

BEFORE, AFTER = "sync", "detached"
GHOST_SHARE = 0.002
"""Of a call: what takes less is left out of the timelines that are printed."""

_HEADINGS = (
    *("layout", "policy", "kernels\ns", "inner\ns", "wrapper\ns"),
    *("teardown\nms", "beyond\ninner %", "whole\ns"),
)
_COLUMNS = """kernels: transforms and sums; of the product's path also the check of the
witness and a, b, c. inner: from the entry of the inner function to its last
statement. wrapper: the caller's call. teardown: what passes after the last
statements, in destructors on both sides. beyond inner: (wrapper - inner) /
inner. whole: from the vanilla proofs to proofs that are verified. Spans of
the timelines: wrapper, within it inner."""


def porep(
    c1: Annotated[Path, typer.Argument(help="Output of commit phase 1 (.json).", metavar="C1.json")],
    parameters: ParametersOption = None,
    size: SizeOption = SectorName.kib2,
    classic_host: Annotated[
        bool,
        typer.Option(
            "--classic-host", help="Also the classic layout: a, b, c and the inner function's copies in host memory."
        ),
    ] = False,
    policies: Annotated[
        str, typer.Option("--release", help=f"Release policies to compare: {POLICY_HELP}.")
    ] = "sync,detached,recycle",
    circuits: Annotated[int, typer.Option("--circuits", min=1, help="Circuits in one call.")] = 10,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each kind.")] = 1,
    pages: Annotated[PageSize, typer.Option("--pages", help="Page size.")] = PageSize.SMALL,
    backend: Annotated[str, typer.Option("--backend", help="Where to prove: auto, cpu or cuda.")] = "auto",
    threads: ThreadsOption = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A folder for each run's timeline, as data (.json) and page (.html).")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time after return on a real sector: the inner function, its wrapper, and what passes after the last statements.

    Under each release policy first the path of `porep prove`, which holds no vectors of a circuit beyond the stage that
    needs them; with --classic-host then calls whose caller holds a, b, c of all circuits in host memory and drops them
    after the call, beside a control that releases nothing. Each run has a process of its own. Proofs have fixed
    blinding, must be the same bytes in every row, and are verified.
    """
    from snarkline.cli.bench import classic
    from snarkline.filecoin.porep.c1 import load_phase1
    from snarkline.filecoin.porep.prover import find_parameters
    from snarkline.filecoin.registry import sector_size
    from snarkline.memory import experiment

    report = Report(as_json=as_json, quiet=quiet)
    chosen = chosen_policies(policies, POLICIES)
    key = find_parameters(sector_size(size.value), parameters or PARAMETER_FOLDER)
    load_phase1(c1, sector_size(size.value))  # what is wrong with the input is told here, not by a process
    needed_bytes = _needed_bytes(key, circuits)
    with tempfile.TemporaryDirectory(prefix="snarkline-bench-") as folder:
        base = classic.ClassicRun(
            policy="",
            key=str(key.resolve()),
            witness=str(c1.resolve()),
            circuits=circuits,
            threads=threads or usable_threads(),
            backend=backend,
            pages=pages.value,
            host_copies=True,
            sector_size=size.value,
        )
        if classic_host:
            experiment.require_memory(needed_bytes)
        plan = _plan(base, chosen, trace or Path(folder), classic_host=classic_host)
        with report.working(f"{runs} times {len(plan)} processes that prove {circuits} circuits") as tell:
            rows = experiment.repeat(plan, runs, classic.measure_fresh, tell)
        classic.require_equal_proofs(rows)
        report.show(_table(rows, f"{size.value}, {circuits} circuits a call, {base.pages} pages, {of_runs(runs)}"))
        for line in _summary(rows):
            report.line(line)
        _show_timelines(report, plan)
    if trace is not None:
        report.line(f"timelines written to {trace}")
    facts = {"sector": size.value, "backend": backend, "runs": runs, "circuits": circuits}
    report.result({**facts, "trace": None if trace is None else str(trace), "rows": rows})


def _plan(base: ClassicRun, policies: Sequence[str], folder: Path, *, classic_host: bool) -> list[ClassicRun]:
    """The product's path under each policy; the classic layout beside its control."""
    from snarkline.cli.bench.classic import CLASSIC, PRODUCT
    from snarkline.memory.experiment import CONTROL

    folder.mkdir(parents=True, exist_ok=True)
    kinds = [(PRODUCT, policy) for policy in policies]
    if classic_host:
        kinds += [(CLASSIC, policy) for policy in (CONTROL, *policies)]
    return [
        replace(base, layout=layout, policy=policy, timeline=str(folder.resolve() / f"{layout}-{policy}"))
        for layout, policy in kinds
    ]


def _needed_bytes(key: Path, circuits: int) -> int:
    """Of the classic layout: the key, and for each circuit a, b, c, their copies and the witness."""
    from snarkline.formats.bellperson import parameter_sizes

    sizes = parameter_sizes(key)
    return key.stat().st_size + 32 * circuits * (2 * 3 * sizes.domain_size + sizes.n_wires)


def _table(rows: Sequence[Row], title: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, caption=_COLUMNS, box=box.SIMPLE_HEAD, padding=0)
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="left" if number < 2 else "right")
    for row in rows:
        seconds = [f"{row[name]:.2f}" for name in ("kernels_s", "inner_s", "wrapper_s")]
        beyond = (row["wrapper_s"] - row["inner_s"]) / row["inner_s"]
        table.add_row(
            *(row["layout"], row["policy"], *seconds, f"{row['teardown_s'] * 1e3:.1f}"),
            *(f"{beyond:.2%}", f"{row['whole_s']:.2f}"),
        )
    return table


def _summary(rows: Sequence[Row]) -> list[str]:
    """Before and after, where both were measured."""
    found = {(row["layout"], row["policy"]): row for row in rows}
    lines = []
    for word, policy in (("Before", BEFORE), ("After", AFTER)):
        row = found.get(("classic", policy))
        if row is not None:
            lines.append(
                f"{word} ({policy}): {row['inner_s']:.2f} s inside, {row['wrapper_s']:.2f} s outside; "
                f"{row['teardown_s']:.4f} s of that after the last statements."
            )
    return [*lines, "Every proof verifies, and all rows give the same bytes."]


def _show_timelines(report: Report, plan: Sequence[ClassicRun]) -> None:
    """The calls before and after, as their timelines have it: who owned the time, and the ghost unasked."""
    from snarkline import Timeline

    if report.quiet or report.as_json:
        return
    width = shutil.get_terminal_size((0, 0)).columns
    for run in plan:
        if run.layout == "classic" and run.policy in (BEFORE, AFTER):
            report.line("\n" + Timeline.load(run.timeline + ".json").report(GHOST_SHARE, width))
