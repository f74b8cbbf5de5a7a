"""`snarkline bench release`: what each way of giving memory back costs the caller and everybody else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.threads import usable_threads

if TYPE_CHECKING:
    from snarkline.memory.experiment import Row
    from snarkline.memory.fit import Fit

POLICIES = ("sync", "clear", "clear-capacity", "madvise", "madvise-free", "detached", "recycle")
POLICY_HELP = f"all, or a list with commas of {', '.join(POLICIES)} (docs/memory.md says what each does)"
SWEPT = ("sync", "detached", "recycle")

_HEADINGS = (
    *("policy", "side", "inner\ns", "teardown\nms"),
    *("beyond\ninner %", "given\nback ms", "map stall\nms", "Python\nstall ms"),
)
_COLUMNS = """inner: from the entry of the inner function to its last statement.
teardown: what passes after the last statements, in destructors on both sides.
beyond inner: (wrapper - inner) / inner, the wrapper being the caller's call.
given back: from the end of the work until the memory is the system's or the
next taker's. stalls: what a thread that maps memory and a Python thread wait
meanwhile, 99.9th percentile / longest."""


_SLOPES = """ms a GiB: the median of the slopes between any two sizes. low, high: its
interval of 95 %. Narrow and about zero, it says that the cost does not grow
with the bytes; wide, that the machine was busy. R²: that of least squares."""


class PageSize(Enum):
    SMALL = "4k"
    HUGE = "2m"


def release(
    gib: Annotated[
        float | None, typer.Option("--gib", help="GiB of both sides; a sixth of memory if not given.")
    ] = None,
    pages: Annotated[PageSize, typer.Option("--pages", help="Page size.")] = PageSize.SMALL,
    policies: Annotated[str, typer.Option("--release", help=f"{POLICY_HELP}.")] = "all",
    sweep: Annotated[bool, typer.Option("--sweep", help="Teardown against bytes and page size instead.")] = False,
    numpy: Annotated[bool, typer.Option("--numpy", help="Also arrays that NumPy allocates itself.")] = False,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each kind; medians are shown.")] = 5,
    work: Annotated[float, typer.Option("--work", min=0.01, help="Seconds that the native function works.")] = 0.5,
    window: Annotated[float, typer.Option("--window", min=0.05, help="Seconds for which stalls are counted.")] = 1.0,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time the teardown of a call with large vectors on both sides, for every release policy.

    Each run has a process of its own. Two probes tell what others wait meanwhile: a native thread that maps memory and
    a Python thread that ticks. The control releases nothing.
    """
    from snarkline.memory import experiment
    from snarkline.memory.fit import fits

    report = Report(as_json=as_json, quiet=quiet)
    n_bytes = _n_bytes(gib)
    experiment.require_memory(n_bytes)
    n_threads = threads or usable_threads()
    chosen = chosen_policies(policies, SWEPT if sweep else POLICIES)
    base = experiment.Run("sync", "both", pages.value, n_bytes, n_threads, work, window_s=window)
    if sweep:
        plan = experiment.sweep_plan(chosen, base)
    else:
        plan = experiment.plan([*chosen, experiment.NUMPY] if numpy else chosen, base)
    report.line(_announcement(len(plan), runs, n_bytes, runs * experiment.estimate_s(plan)))
    with report.working("processes") as tell:
        rows = experiment.repeat(plan, runs, experiment.measure_fresh, tell)
    lines = fits(rows) if sweep else []
    title = f"{n_bytes / 2**30:.2f} GiB, {rows[0]['pages']} pages, {of_runs(runs)}"
    report.show(_sweep_table(rows, lines) if sweep else policy_table(rows, title))
    if not sweep and "sync" in chosen and not report.quiet and not report.as_json:
        width = shutil.get_terminal_size((0, 0)).columns
        report.line(f"The timeline of a call with sync:\n\n{experiment.report_fresh(base, width)}")
    report.result({"rows": rows, **({"fits": [asdict(line) for line in lines]} if sweep else {})})


def _announcement(n_kinds: int, runs: int, n_bytes: int, seconds: float) -> str:
    times = "once" if runs == 1 else f"{runs} times each"
    long = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f"{n_kinds} kinds of run, {times}, of up to {n_bytes / 2**30:.2f} GiB: about {long}"


def of_runs(runs: int) -> str:
    """What the figures of a table are."""
    return "one run of each kind" if runs == 1 else f"medians of {runs} runs"


def _n_bytes(gib: float | None) -> int:
    from snarkline.errors import InputError

    if gib is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 6
    if not 0.001 <= gib <= 1 << 20:
        raise InputError(f"--gib: expected a number of GiB from 0.001 to {1 << 20}, found {gib}")
    return int(gib * 2**30)


def chosen_policies(policies: str, every: Sequence[str]) -> list[str]:
    """What `--release` names: `every` of them, or those in a list. Raises InputError."""
    from snarkline.errors import InputError

    if policies == "all":
        return list(every)
    chosen = [name.strip() for name in policies.split(",")]
    for name in chosen:
        if name not in POLICIES:
            raise InputError(f"--release: expected all or {', '.join(POLICIES)}; found {name!r}")
    return chosen


def policy_table(rows: list[Row], title: str) -> Any:
    """The rows of an experiment, each with what its columns mean."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        caption=_COLUMNS,
        box=box.SIMPLE_HEAD,
        padding=0,
    )
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    return [
        row["policy"] + (", wiped" if row["secret"] and "layout" not in row else ""),
        row["side"],
        f"{row['inner_s']:.2f}",
        _figure(row["teardown_s"] * 1e3),
        _figure(100 * (row["wrapper_s"] - row["inner_s"]) / row["inner_s"]),
        _figure(row["reclaimed_s"] * 1e3),
        _stall(row, "map"),
        _stall(row, "python"),
    ]


def _stall(row: Row, name: str) -> str:
    return "/".join(_figure(row[f"stall_{name}_{what}_s"] * 1e3) for what in ("p999", "max"))


def _figure(value: float) -> str:
    """Three digits or more of it."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _sweep_table(rows: list[Row], fits: list[Fit]) -> Any:
    from rich.table import Table

    table = Table(title=f"Teardown in ms, both sides, {of_runs(rows[0]['runs'])}", caption=_SLOPES)
    table.add_column("GiB", justify="right")
    for fit in fits:
        table.add_column(f"{fit.policy}, {fit.pages}", justify="right")
    for size in sorted({row["bytes"] for row in rows}):
        cells = {(row["policy"], row["pages"]): row["teardown_s"] for row in rows if row["bytes"] == size}
        table.add_row(
            f"{size / 2**30:.2f}", *(f"{cells[fit.policy, fit.pages] * 1e3:.2f}" for fit in fits), end_section=False
        )
    table.add_section()
    table.add_row("ms a GiB", *(f"{fit.slope_s_per_gib * 1e3:.2f}" for fit in fits))
    table.add_row("low", *(f"{fit.low_s_per_gib * 1e3:.2f}" for fit in fits))
    table.add_row("high", *(f"{fit.high_s_per_gib * 1e3:.2f}" for fit in fits))
    table.add_row("R²", *(f"{fit.r_squared:.4f}" for fit in fits))
    return table
