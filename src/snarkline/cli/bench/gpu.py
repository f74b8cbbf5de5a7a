"""`snarkline bench gpu`: what a GPU does in each operation of a proof, beside what its chip can do at most."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report, write_text

SUMS = "16,18,20,22,24"
HIDDEN = ("affine_additions", "products")
"""Only in the file."""


def _logs(name: str, help: str) -> Any:
    return typer.Option(name, metavar="K,...", help=help)


def gpu(
    transforms: Annotated[str, _logs("--transforms", "Sizes of transforms: 20 is 2^20 elements.")] = "20,24",
    sums_g1: Annotated[str, _logs("--sums-g1", "Sizes of sums in G1.")] = SUMS,
    sums_g2: Annotated[str, _logs("--sums-g2", "Sizes of sums in G2.")] = "16,20,22",
    circuits: Annotated[str, _logs("--circuits", "Constraints of whole proofs: 20 is 2^20.")] = "20",
    products: Annotated[str, _logs("--products", "Constraints of SHA-256 chains: a, b and c.")] = "20,24",
    trees: Annotated[str, _logs("--trees", "Constraints of Poseidon trees: the witness.")] = "20",
    blocks: Annotated[str, _logs("--blocks", "Constraints of SHA-256 blocks: the witness.")] = "22",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each measurement; medians are shown.")] = 5,
    output: Annotated[Path | None, typer.Option("--output", help="Write the figures to this file as JSON.")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Transforms, structured a, b, c, sums and proofs on the GPU, all checked, and shares of the chip's ceiling."""
    from snarkline.backend.cpu import CpuBackend
    from snarkline.backend.cuda import CudaBackend, open_device
    from snarkline.backend.cuda.module import compiler_version
    from snarkline.cli.bench import gpu_work as work
    from snarkline.cli.bench.gpu_products import structured_products
    from snarkline.cli.bench.gpu_programs import program_proofs, programs
    from snarkline.curves.curve import CURVES, Group
    from snarkline.memory import Arena
    from snarkline.threads import usable_threads

    device = open_device()
    cpu = CpuBackend(usable_threads(), Arena())
    backend = CudaBackend(device, cpu)
    bench = work.Bench(device, backend, cpu, runs)
    curves = list(reversed(CURVES.values()))
    report = Report(as_json=as_json, quiet=quiet, outputs=())
    facts: dict[str, Any] = {
        "device": device.name,
        "multiprocessors": device.multiprocessors,
        "nvrtc": compiler_version(),
        "runs": runs,
    }
    record = partial(_record, report, facts, output)
    with closing(backend):
        with backend.session(), report.working("measuring"):
            ceilings = record("ceilings", "At most, with nothing to load", work.ceilings(bench))
            rates = ceilings["per_second"]
            record("transforms", "Transforms", list(work.transforms(bench, _sizes(transforms), rates)))
            chains = list(structured_products(bench, _sizes(products)))
            record("structured", "SHA-256 chains: a, b, c and the wires", chains)
            made = [*(("Poseidon tree", k) for k in _sizes(trees)), *(("SHA-256 blocks", k) for k in _sizes(blocks))]
            record("programs", "The witness and its check, from inputs", list(programs(bench, made)))
            plan = [(c, Group.G1, _sizes(sums_g1)) for c in curves] + [(c, Group.G2, _sizes(sums_g2)) for c in curves]
            record("sums", "Sums, points and scalars on the device", list(work.sums(bench, plan, rates)))
        cases = [(c, k, kind) for k in _sizes(circuits) for c in curves for kind in work.KINDS]
        with report.working("proving"):
            record("proofs", "Proofs, every one verified", list(work.proofs(bench, cases)))
            record("program_proofs", "Proofs from inputs", list(program_proofs(bench, made)))
    report.result(facts)


def _record(report: Report, facts: dict[str, Any], output: Path | None, name: str, title: str, section: Any) -> Any:
    """Keep and show what one section found; the file has those that are done."""
    facts[name] = section
    _show(report, title, _ceiling_rows(section) if name == "ceilings" else section)
    if output is not None:
        write_text({output: json.dumps(facts, indent=1) + "\n"})
    return section


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(item) for item in text.split(",") if item]
    except ValueError:
        raise typer.BadParameter(f"expected numbers with commas between, found {text!r}") from None
    if not all(3 <= size <= 28 for size in sizes):
        raise typer.BadParameter(f"expected logarithms from 3 to 28, found {text!r}")
    return sizes


def _ceiling_rows(ceilings: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [{"unit": name, "G/s": rate / 1e9} for name, rate in ceilings["per_second"].items()]
    copied = {"unit": "bytes copied, read and written", "G/s": ceilings["copy_bytes_per_second"] / 1e9}
    return [*rows, copied]


def _show(report: Report, title: str, rows: Sequence[dict[str, Any]]) -> None:
    from rich.table import Table

    if not rows:
        return
    table = Table(title=title)
    for heading in [name for name in rows[0] if name not in HIDDEN]:
        numeric = isinstance(rows[0][heading], (int, float))
        table.add_column(heading.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*_cells((name, value) for name, value in row.items() if name not in HIDDEN))
    report.show(table)


def _cells(items: Iterable[tuple[str, Any]]) -> list[str]:
    return [
        f"{value:.0%}" if name.startswith("share") else f"{value:,.3f}" if isinstance(value, float) else str(value)
        for name, value in items
    ]
