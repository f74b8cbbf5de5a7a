"""The `snarkline` program: runs a command, and what an error becomes."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

COMMANDS = {
    "prove": "prove",
    "verify": "prove",
    "witness": "witness",
    "setup": "keys",
    "check": "inspect",
    "export": "keys",
    "info": "inspect",
    "estimate": "estimate",
    "profile": "profile",
    "compile": "circuit",
    "demo": "demo",
}
"""Commands that are functions of their own name, and their modules."""

COMPLETION = "_SNARKLINE_COMPLETE"
"""Shells set this variable to ask for completions, which are typer's."""


def main() -> None:
    """Entry point of the `snarkline` command."""
    from snarkline.cli.output import drop_standard_output, echo, fail

    try:
        if not _run_plain(sys.argv[1:]):
            from snarkline.cli.app import app

            _show_warnings_in_a_line()
            app()
        sys.exit(0)
    except KeyboardInterrupt:
        echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        drop_standard_output()
        sys.exit(141)
    except Exception as error:
        sys.exit(fail(error))


def _run_plain(words: list[str]) -> bool:
    """Run a command whose arguments need no typer; False if they do."""
    if not words or words[0] not in COMMANDS or COMPLETION in os.environ:
        return False
    from snarkline.cli.quick import parse

    command = getattr(import_module(f"snarkline.cli.{COMMANDS[words[0]]}"), words[0])
    arguments = parse(command, words[1:])
    if arguments is None:
        return False
    _show_warnings_in_a_line()
    thresholds = gc.get_threshold()
    gc.set_threshold(
        100_000
    )  # importing makes much that stays: looking through it for garbage takes a tenth of the time
    try:
        _import_numpy()
        command(**arguments)
    finally:
        gc.set_threshold(*thresholds)
    return True


def _import_numpy() -> None:
    """NumPy without threads for its linear algebra, which no command uses: starting them takes longer than the rest."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _show_warnings_in_a_line() -> None:
    import warnings

    from snarkline.cli.output import echo

    def show(message: Warning | str, *_: object, **__: object) -> None:
        echo(f"warning: {message}", err=True)

    warnings.showwarning = show
