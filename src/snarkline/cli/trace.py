"""`snarkline trace`: looks at saved timelines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Look at timelines that Timeline.save wrote.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A timeline's JSON.")]


@app.command()
def show(
    file: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write a page (.html) or Perfetto's format (.trace.json) instead."),
    ] = None,
) -> None:
    """Print a timeline's table, or write it in another form."""
    from rich.console import Console

    from snarkline.trace import Timeline
    from snarkline.trace.report import table

    timeline = Timeline.load(file)
    if output is not None:
        timeline.save(output)
        typer.echo(f"wrote {output}")
        return
    Console(highlight=False, soft_wrap=True).print(table(timeline))


@app.command()
def diff(
    before: FileArgument,
    after: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Another one.")],
) -> None:
    """Compare two timelines, line by line of their tables."""
    from rich.console import Console

    from snarkline.trace import Timeline
    from snarkline.trace.report import difference_table

    Console(highlight=False, soft_wrap=True).print(difference_table(Timeline.load(before), Timeline.load(after)))
