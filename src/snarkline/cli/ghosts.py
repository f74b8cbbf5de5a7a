"""`snarkline ghosts`: finds the functions of any Python program that take long to be over."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from snarkline.trace.ghosts import Found

COLUMNS = ("function", "file", "line", "teardown_s", "released_bytes", "calls")
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def ghosts(
    program: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT.py [ARGS]...", help="The program and its arguments.")
    ] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")] = None,
    native: Annotated[
        bool, typer.Option("--native", help="Also time releases inside native libraries, by a preloaded shim.")
    ] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Watch every return, however busy the program is.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the functions as JSON; the program's own output goes to standard error."),
    ] = False,
) -> None:
    """Run a Python program and list the functions whose teardown cost most.

    Teardown is the time from a function's last statement until its caller goes on: destructors, and memory that is
    given back. Exits with the program's status.
    """
    from snarkline.trace.ghosts import find_ghosts

    arguments = [module, *(program or [])] if module is not None else list(program or [])
    if not arguments:
        raise typer.BadParameter("name a SCRIPT.py, or a module with -m")
    found = find_ghosts(arguments, module=module is not None, native=native, exact=exact, output_to_stderr=as_json)
    if as_json:
        lines = ",\n ".join(json.dumps({k: getattr(g, k) for k in COLUMNS}) for g in found.ghosts)
        typer.echo(f"[{lines}]")
    else:
        _print(found)
    typer.echo(f"watching slows code that does nothing but call down {found.slowdown:.1f} times", err=True)
    raise typer.Exit(found.status)


def _print(found: Found) -> None:
    from rich.console import Console
    from rich.table import Table

    from snarkline.trace.report import amount, duration

    console = Console(highlight=False, soft_wrap=True)
    if not found.ghosts:
        console.print(f"no ghosts: nothing in {duration(found.wall_s)} was slow to be over")
        return
    total = sum(g.teardown_s for g in found.ghosts)
    share = 100 * total / found.wall_s if found.wall_s else 0.0
    title = f"{duration(total)} of {duration(found.wall_s)} ({share:.1f} %) is teardown"
    table = Table(box=None, pad_edge=False, title=title)
    for name, justify in (("function", "left"), ("teardown", "right"), ("released", "right"), ("calls", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("where")
    for g in found.ghosts:
        place = f"{_short(g.file)}:{g.line}"
        table.add_row(g.function, duration(g.teardown_s), amount(g.released_bytes), str(g.calls), place)
    console.print(table)


def _short(file: str) -> str:
    """As seen from the current folder, where that is shorter."""
    below = os.path.relpath(file)
    return below if len(below) < len(file) else file
