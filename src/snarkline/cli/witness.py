"""`snarkline witness`: a witness from circom's calculator and an input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from snarkline.cli.options import Argument, Option
from snarkline.cli.output import (
    JsonOption,
    QuietOption,
    Report,
    echo,
    input_bytes,
    named,
    output_stream,
    require_writable,
)


def witness(
    wasm: Annotated[Path, Argument(help="The circuit's calculator (circom --wasm).", metavar="CIRCUIT.wasm")],
    input_: Annotated[Path, Argument(help="Values of the input signals; - is standard input.", metavar="INPUT.json")],
    output: Annotated[Path, Option("--output", "-o", help="Where the witness goes; or -.")] = Path("witness.wtns"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Calculate the witness for an input, with the calculator that circom wrote. Needs the extra `wasm`."""
    import time

    from snarkline.formats.circom import calculate_witness, write_witness

    report = Report(as_json=as_json, quiet=quiet, outputs=[output])
    require_writable(output, inputs=[wasm, input_])
    started = time.perf_counter()
    with report.working("calculating"):
        values = calculate_witness(wasm, input_bytes(input_), log=None if quiet else log_line)
        with output_stream(output) as stream:
            write_witness(values, stream)
    seconds = time.perf_counter() - started
    report.line(f"witness of {len(values):,} wires written to {named(output)} ({seconds:.2f} s)")
    report.result(
        {
            "witness": str(output),
            "curve": values.curve.name,
            "n_wires": len(values),
            "seconds": round(seconds, 6),
        }
    )


def log_line(text: str) -> None:
    """A line that the circuit's log() prints."""
    echo(text, err=True)
