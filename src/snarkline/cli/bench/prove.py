"""`snarkline bench prove`: a circuit proven again and again: its phases, or what each release policy adds to them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snarkline.cli.bench.release import POLICIES, POLICY_HELP, PageSize, chosen_policies, of_runs, policy_table
from snarkline.cli.demo import unpack_circuit
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.threads import usable_threads

if TYPE_CHECKING:
    from snarkline import ProvingKey, Witness
    from snarkline.cli.bench.classic import ClassicRun
    from snarkline.trace import Timeline

PHASES = ("evaluate", "quotient", "commit", "assemble", "self-check")


def prove(
    key: Annotated[Path | None, typer.Argument(help="Proving key; a bundled circuit if not given.")] = None,
    witness: Annotated[Path | None, typer.Argument(help="Witness.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Proofs to time, after one to warm up.")] = 5,
    policies: Annotated[
        str | None,
        typer.Option(
            "--release",
            help="Instead: proofs in the classic layout (the caller holds a, b, c and drops them after the call), once "
            f"per release policy: {POLICY_HELP}. --runs is then runs of each.",
        ),
    ] = None,
    circuits: Annotated[int, typer.Option("--circuits", min=1, help="With --release: circuits in one call.")] = 10,
    pages: Annotated[PageSize, typer.Option("--pages", help="With --release: page size.")] = PageSize.SMALL,
    window: Annotated[
        float, typer.Option("--window", min=0.05, help="With --release: seconds for which stalls are counted.")
    ] = 1.0,
    backend: Annotated[str, typer.Option("--backend", help="Where to prove: auto, cpu or cuda.")] = "auto",
    classic_host: Annotated[
        bool, typer.Option("--classic-host", help="With --release: also the inner vectors are in host memory on a GPU.")
    ] = False,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time a resident prover: median and range of each phase over several proofs, every one verified.

    With --release: what each way of giving memory back adds to a real proof, each run in a process of its own. Proofs
    are verified and, with fixed blinding, must be the same bytes under every policy.
    """
    import tempfile

    from snarkline.cli.bench.classic import ClassicRun
    from snarkline.errors import MismatchError

    report = Report(as_json=as_json, quiet=quiet)
    if (key is None) != (witness is None):
        raise MismatchError("give a key and a witness, or neither")
    if policies is None:
        return _resident(key, witness, runs, backend, threads, report)
    chosen = chosen_policies(policies, POLICIES)
    with tempfile.TemporaryDirectory(prefix="snarkline-bench-") as folder:
        paths = (key, witness) if key and witness else _bundled(Path(folder))
        key_path, witness_path = (str(path.resolve()) for path in paths)
        n_threads = threads or usable_threads()
        base = ClassicRun(
            "sync", key_path, witness_path, circuits, n_threads, backend, pages.value, window, classic_host
        )
        classic_table(chosen, base, runs, report)


def _resident(
    key: Path | None, witness: Path | None, runs: int, backend: str, threads: int | None, report: Report
) -> None:
    from statistics import median

    from snarkline import Prover
    from snarkline.trace import Timeline

    proving_key, values = _load(key, witness)
    rows: list[dict[str, float]] = []
    with Prover(proving_key, backend=backend, threads=threads) as prover, report.working("proving"):
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
            "backend": backend,
            "runs": runs,
            "median_s": {name: round(median(row[name] for row in rows), 6) for name in rows[0]},
            "samples": rows,
        }
    )


def classic_table(policies: list[str], base: ClassicRun, runs: int, report: Report) -> None:
    """Proofs in the classic layout under each policy, and the product's path: measured, compared and shown."""
    from snarkline import load_proving_key
    from snarkline.cli.bench import classic
    from snarkline.memory import experiment

    key = load_proving_key(base.key)
    experiment.require_memory(2 * base.circuits * 3 * 8 * key.curve.fr_limbs * key.domain.size)
    plan = classic.plan(policies, base)
    with report.working(f"{runs} times {len(plan)} processes that prove {base.circuits} circuits") as tell:
        rows = experiment.repeat(plan, runs, classic.measure_fresh, tell)
    classic.require_equal_proofs(rows)
    title = f"{base.circuits} circuits a call, a, b, c in host memory: {rows[0]['bytes'] / 2**30:.2f} GiB"
    report.show(policy_table(rows, f"{title}, {base.pages} pages, {of_runs(runs)}"))
    report.line("Every proof verifies, and all policies give the same bytes.")
    report.result(
        {"curve": key.curve.name, "domain": key.domain.size, "backend": base.backend, "runs": runs, "rows": rows}
    )


def _bundled(folder: Path) -> tuple[Path, Path]:
    """Key and witness of the bundled circuit as files."""
    from snarkline import load_r1cs, save_proving_key, setup
    from snarkline.errors import SecurityWarning

    r1cs_path, witness_path = unpack_circuit(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        save_proving_key(setup(load_r1cs(r1cs_path)), folder / "circuit.zkey")
    return folder / "circuit.zkey", witness_path


def _load(key: Path | None, witness: Path | None) -> tuple[ProvingKey, Witness]:
    import tempfile

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
    from statistics import median

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
