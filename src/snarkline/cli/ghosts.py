"""`snarkline ghosts`: finds the functions of any Python program that take long to be over."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from snarkline.trace.ghosts import Found

COLUMNS = ("function", "file", "line", "teardown_s", "released_bytes", "calls")
OWN_OPTIONS = ("--native", "--no-native", "--exact", "--json")
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def ghosts(
    program: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT.py [ARGS]...", help="The program and its arguments.")
    ] = None,
    module: Annotated[str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as python -m does.")] = None,
    native: Annotated[
        bool | None,
        typer.Option(
            "--native/--no-native",
            help="Also time what native code gives back, by a preloaded shim; done where that can be loaded.",
        ),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Watch every return, however busy the program is.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the functions as JSON; the program's own output goes to standard error."),
    ] = False,
) -> None:
    """Run a Python program and list the functions whose teardown cost most.

    Teardown is the time from a function's last statement until its caller goes on: destructors, and memory that is
    given back. Options stand before the program. Exits with the program's status.
    """
    from snarkline.errors import InputError
    from snarkline.trace.ghosts import find_ghosts

    arguments = [module, *(program or [])] if module is not None else list(program or [])
    if not arguments:
        raise InputError("ghosts: expected a SCRIPT.py, or a module with -m; found neither")
    given = {"--exact": exact, "--json": as_json, "--native": native is True, "--no-native": native is False}
    _warn_of_options(arguments, [name for name in OWN_OPTIONS if not given[name]])
    found = find_ghosts(arguments, module=module is not None, native=native, exact=exact, output_to_stderr=as_json)
    if as_json:
        lines = ",\n ".join(json.dumps({k: getattr(g, k) for k in COLUMNS}) for g in found.ghosts)
        typer.echo(f"[{lines}]")
    else:
        _print(found)
    _print_remarks(found, hint=native is None)
    raise typer.Exit(found.status)


def _warn_of_options(arguments: Sequence[str], names: Sequence[str]) -> None:
    """Says which of our own options went to the program, unless they were given to us as well."""
    if behind := [name for name in names if name in arguments[1:]]:
        names_ = ", ".join(behind)
        text = f"warning: {names_} behind {arguments[0]} went to the program; options of ghosts stand before it"
        typer.echo(text, err=True)


def _print_remarks(found: Found, *, hint: bool) -> None:
    from snarkline.trace.report import duration

    if found.status:
        typer.echo(f"the program ended with status {found.status} after {duration(found.wall_s)}", err=True)
    if hint and not found.native:
        typer.echo("native libraries were not looked at: the release shim could not be loaded", err=True)
    if found.slowdown is not None and found.slowdown > 1:
        text = f"code that does nothing but call functions ran {found.slowdown:.1f} times slower for being watched"
        typer.echo(text, err=True)


def _print(found: Found) -> None:
    from rich.console import Console
    from rich.table import Table

    from snarkline.trace.report import amount, duration

    console = Console(highlight=False, soft_wrap=True)
    if not found.ghosts:
        ran = f"(the program ran for {duration(found.wall_s)})" if not found.status else ""
        console.print(f"no ghosts: no function spent noticeable time after its last statement {ran}".rstrip())
        return
    total = sum(g.teardown_s for g in found.ghosts)
    share = 100 * total / found.wall_s if found.wall_s else 0.0
    title = f"{duration(total)} of {duration(found.wall_s)} ({share:.1f} %) is teardown"
    if found.native:
        title += ", or memory that native code gave back"
    console.print(title)
    table = Table(box=None, pad_edge=False)
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
