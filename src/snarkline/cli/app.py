"""All commands as a typer program: help, completion, and every command line that `quick` does not take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from snarkline.cli import bench, ghosts, kernels, porep, trace
from snarkline.cli.entry import COMMANDS
from snarkline.cli.options import Argument, Parameter

app = typer.Typer(
    name="snarkline",
    help="Groth16 proofs of circuits from circom or Python: fast, checked, every millisecond accounted for.",
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
    """Groth16 proofs of circuits from circom or Python: fast, checked, every millisecond accounted for."""


def _with_typers_own(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its annotations as typer knows them."""
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)

    @functools.wraps(command)
    def call(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    parameters = [
        p.replace(annotation=_annotation(hints.get(p.name, p.annotation))) for p in signature.parameters.values()
    ]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    del call.__wrapped__
    return call


def _annotation(hint: Any) -> Any:
    found = getattr(hint, "__metadata__", (None,))[0]
    if not isinstance(found, Parameter):
        return hint
    if isinstance(found, Argument):
        info = typer.Argument(help=found.help, metavar=found.metavar, show_default=found.show_default)
    else:
        info = typer.Option(
            *found.names,
            help=found.help,
            metavar=found.metavar,
            min=found.min,
            max=found.max,
            show_default=found.show_default,
        )
    return Annotated[hint.__origin__, info]


def _convert(program: typer.Typer) -> None:
    for command in program.registered_commands:
        assert command.callback is not None
        command.callback = _with_typers_own(command.callback)
    for group in program.registered_groups:
        assert group.typer_instance is not None
        _convert(group.typer_instance)


for _name, _module in COMMANDS.items():
    app.command()(getattr(import_module(f"snarkline.cli.{_module}"), _name))
app.command(context_settings=ghosts.CONTEXT)(ghosts.ghosts)
app.add_typer(trace.app, name="trace")
app.add_typer(bench.app, name="bench")
app.add_typer(kernels.app, name="kernels")
app.add_typer(porep.app, name="porep")
_convert(app)
