"""`snarkline bench`: measurements that anybody can repeat."""

from __future__ import annotations

import typer

from snarkline.cli.bench.prove import prove

app = typer.Typer(help="Measurements on this machine.", no_args_is_help=True)
app.command()(prove)


@app.callback()
def _bench() -> None:
    """Measurements on this machine."""
