"""`snarkline trace`: looks at saved timelines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report, require_writable

app = typer.Typer(help="Look at timelines that --trace or Timeline.save wrote.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE.json", help="A timeline's JSON.")]


@app.command()
def show(
    file: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write a page (.html) or Perfetto's format (.trace.json) instead."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Print a timeline's table, or write it in another form. With --json the table's lines."""
    from snarkline.trace import Timeline
    from snarkline.trace.report import rows, table
    from snarkline.trace.timeline import check_suffix

    report = Report(as_json=as_json, quiet=quiet)
    if output is not None:
        check_suffix(output)
        require_writable(output, inputs=[file])
    timeline = Timeline.load(file)
    if output is not None:
        timeline.save(output)
        report.line(f"wrote {output}")
        report.result({"output": str(output)})
        return
    _show(report, table(timeline))
    report.result({"name": timeline.name, "wall_s": timeline.wall_s, "rows": [asdict(r) for r in rows(timeline)]})


@app.command()
def diff(
    before: FileArgument,
    after: Annotated[Path, typer.Argument(metavar="FILE.json", help="Another one.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare two timelines, line by line of their tables. With --json seconds, null where a table lacks the line."""
    from snarkline.trace import Timeline
    from snarkline.trace.report import changes, difference_table

    report = Report(as_json=as_json, quiet=quiet)
    first, second = Timeline.load(before), Timeline.load(after)
    names = (before.name, after.name) if before.name != after.name else (str(before), str(after))
    _show(report, difference_table(first, second, names))
    lines = [{"path": list(c.path), "before_s": c.before, "after_s": c.after} for c in changes(first, second)]
    report.result({"before": str(before), "after": str(after), "rows": lines})


def _show(report: Report, table: object) -> None:
    """In the width of a terminal, notes in their own column; elsewhere one line a row, however long."""
    if not report.as_json and not report.quiet:
        console = report.console()
        console.print(table, soft_wrap=not console.is_terminal)
