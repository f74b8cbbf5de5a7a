"""`snarkline bench porep`: commit phase 2 in the classic layout under every release policy, and the product's path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snarkline.cli.bench.prove import classic_table
from snarkline.cli.bench.release import POLICIES, POLICY_HELP, PageSize, chosen_policies
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.cli.porep import SectorName, SizeOption
from snarkline.threads import usable_threads


def porep(
    c1: Annotated[Path, typer.Argument(help="Output of commit phase 1 (.json).", metavar="C1.json")],
    parameters: Annotated[Path | None, typer.Option("--params", help="Parameter file, or the folder of it.")] = None,
    size: SizeOption = SectorName.kib2,
    policies: Annotated[str, typer.Option("--release", help=f"Release policies to compare: {POLICY_HELP}.")] = "all",
    circuits: Annotated[int, typer.Option("--circuits", min=1, help="Circuits in one call.")] = 10,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each policy.")] = 1,
    pages: Annotated[PageSize, typer.Option("--pages", help="Page size.")] = PageSize.SMALL,
    backend: Annotated[str, typer.Option("--backend", help="Where to prove: auto, cpu or cuda.")] = "auto",
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The seed's report on a real sector: kernels inside, wrapper outside, and what goes by after the last statement.

    The caller holds a, b, c of the circuits as host memory and drops them after the call, under each release policy;
    the row `product` is the path of `porep prove`, which holds nothing of the kind. Proofs have fixed blinding, must be
    the same bytes in every row, and are verified.
    """
    from snarkline.cli.bench.classic import ClassicRun
    from snarkline.filecoin.porep.prover import PARAMETER_FOLDER, find_parameters
    from snarkline.filecoin.registry import sector_size

    report = Report(as_json=as_json, quiet=quiet)
    key = find_parameters(sector_size(size.value), parameters or PARAMETER_FOLDER)
    base = ClassicRun(
        policy="sync",
        key=str(key.resolve()),
        witness=str(c1.resolve()),
        circuits=circuits,
        threads=threads or usable_threads(),
        backend=backend,
        pages=pages.value,
        sector_size=size.value,
    )
    classic_table(chosen_policies(policies, POLICIES), base, runs, report)
