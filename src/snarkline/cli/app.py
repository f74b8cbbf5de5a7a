"""The program: its commands, and what an error becomes."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

from snarkline.cli import bench, demo, estimate, ghosts, inspect, kernels, keys, prove, trace, witness
from snarkline.cli.output import fail

app = typer.Typer(
    name="snarkline",
    help="Groth16 proofs of circom circuits: fast, checked, and with every millisecond accounted for.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from snarkline import __version__

        typer.echo(f"snarkline {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Groth16 proofs of circom circuits: fast, checked, and with every millisecond accounted for."""


app.command()(prove.prove)
app.command()(prove.verify)
app.command()(witness.witness)
app.command()(keys.setup)
app.command()(inspect.check)
app.command()(keys.export)
app.command()(inspect.info)
app.command()(estimate.estimate)
app.command()(demo.demo)
app.command(context_settings=ghosts.CONTEXT)(ghosts.ghosts)
app.add_typer(trace.app, name="trace")
app.add_typer(bench.app, name="bench")
app.add_typer(kernels.app, name="kernels")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"warning: {message}", err=True)


def main() -> None:
    """Entry point of the `snarkline` command."""
    warnings.showwarning = _show_warning
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        sys.exit(fail(error))
