"""`snarkline bench prove`: a circuit proven again and again, its phases as medians."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snarkline.cli.demo import unpack_circuit
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption

if TYPE_CHECKING:
    from snarkline import ProvingKey, Witness
    from snarkline.trace import Timeline

PHASES = ("evaluate", "quotient", "commit", "assemble", "self-check")


def prove(
    key: Annotated[Path | None, typer.Argument(help="Proving key; a bundled circuit if not given.")] = None,
    witness: Annotated[Path | None, typer.Argument(help="Witness.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Proofs to time, after one to warm up.")] = 5,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time a resident prover: median and range of each phase over several proofs, every one verified."""
    from snarkline import Prover
    from snarkline.errors import MismatchError
    from snarkline.trace import Timeline

    report = Report(as_json=as_json, quiet=quiet)
    if (key is None) != (witness is None):
        raise MismatchError("give a key and a witness, or neither")
    proving_key, values = _load(key, witness)
    rows: list[dict[str, float]] = []
    with Prover(proving_key, threads=threads) as prover, report.working("proving"):
        prover.prove(values)
        for _ in range(runs):
            with Timeline() as timeline:
                prover.prove(values)
            rows.append(_phases(timeline))
    report.show(_table(proving_key, rows))
    report.result(
        {
            "curve": proving_key.curve.name,
            "domain": proving_key.domain.size,
            "runs": runs,
            "median_s": {name: round(median(row[name] for row in rows), 6) for name in rows[0]},
            "samples": rows,
        }
    )


def _load(key: Path | None, witness: Path | None) -> tuple[ProvingKey, Witness]:
    from snarkline import load_proving_key, load_r1cs, load_witness, setup
    from snarkline.errors import SecurityWarning

    if key is not None and witness is not None:
        proving_key = load_proving_key(key)
        return proving_key, load_witness(witness, curve=proving_key.curve)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        r1cs_path, witness_path = unpack_circuit(Path(folder))
        r1cs = load_r1cs(r1cs_path)
        return setup(r1cs), load_witness(witness_path, curve=r1cs.curve)


def _phases(timeline: Timeline) -> dict[str, float]:
    seconds = dict.fromkeys(PHASES, 0.0)
    for item in timeline.spans:
        if item.name in seconds:
            seconds[item.name] += item.wall_s
    seconds["proof"] = timeline.wall_s
    return {name: round(value, 6) for name, value in seconds.items()}


def _table(key: ProvingKey, rows: list[dict[str, float]]) -> Any:
    from rich.table import Table

    table = Table(title=f"{key.curve.name}, domain {key.domain.size:,}, {len(rows)} proofs, each verified")
    for heading in ("phase", "median", "least", "most", "share"):
        table.add_column(heading, justify="left" if heading == "phase" else "right")
    total = median(row["proof"] for row in rows)
    for name in rows[0]:
        values = [row[name] for row in rows]
        middle = median(values)
        cells = (f"{value * 1e3:,.1f} ms" for value in (middle, min(values), max(values)))
        table.add_row(name, *cells, f"{middle / total:.0%}")
    return table
