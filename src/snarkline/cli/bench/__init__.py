"""`snarkline bench`: measurements that anybody can repeat."""

from __future__ import annotations

import typer

from snarkline.cli.bench.gpu import gpu
from snarkline.cli.bench.porep import porep
from snarkline.cli.bench.prove import prove
from snarkline.cli.bench.release import release
from snarkline.cli.bench.synthesis import synthesis

app = typer.Typer(help="Measurements on this machine.", no_args_is_help=True)
app.command()(gpu)
app.command()(porep)
app.command()(prove)
app.command()(release)
app.command()(synthesis)


@app.callback()
def _bench() -> None:
    """Measurements on this machine."""
