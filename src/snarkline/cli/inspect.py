"""`snarkline check` and `snarkline info`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from snarkline.cli.circuit import CurveOption, SizesOption, check_python_circuit, is_python_circuit
from snarkline.cli.options import Argument, Option
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption


def check(
    r1cs: Annotated[Path, Argument(help="The circuit.", metavar="CIRCUIT.r1cs | FILE.py:NAME")],
    witness: Annotated[
        Path, Argument(help="Witness; for a circuit in Python, its inputs.", metavar="WITNESS.wtns | INPUT.json")
    ],
    sym: Annotated[Path | None, Option("--sym", help="Names of the wires (.sym).")] = None,
    curve: CurveOption = None,
    sizes: SizesOption = None,
    show_values: Annotated[
        bool, Option("--show-values", help="For a circuit in Python: print the values of a violated constraint.")
    ] = False,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a witness against a circuit and name the first constraint that does not hold."""
    from snarkline import load_r1cs, load_witness
    from snarkline.formats.circom import load_symbols
    from snarkline.r1cs.check import check_witness, first_violation

    report = Report(as_json=as_json, quiet=quiet)
    if is_python_circuit(r1cs):
        check_python_circuit(report, r1cs, witness, curve, sizes, threads=threads, show_values=show_values)
        return
    circuit = load_r1cs(r1cs)
    values = load_witness(witness, curve=circuit.curve)
    names = load_symbols(sym) if sym is not None else {}
    with report.working("checking"):
        check_witness(values, circuit.curve, circuit.n_wires, threads=threads)
        violation = first_violation(circuit, values, threads=threads)
    if violation is not None:
        wires = [names.get(wire, f"wire {wire}") for wire in violation.wires]
        report.result({"satisfied": False, "constraint": violation.constraint, "wires": wires})
        raise violation.error(names)
    report.line(f"all {circuit.n_constraints:,} constraints hold")
    report.result({"satisfied": True, "constraint": None, "n_constraints": circuit.n_constraints})


def info(
    file: Annotated[Path, Argument(help="Any file that snarkline reads.", metavar="FILE")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a file is: circuit, witness, key, verifying key, proof, public inputs, or a sector's vanilla proofs."""
    from snarkline.filecoin.info import read_info

    report = Report(as_json=as_json, quiet=quiet)
    found = read_info(file)
    facts = {"kind": found.kind, "bytes": found.n_bytes, **found.facts}
    _show(report, {name.replace("_", " "): _text(value) for name, value in facts.items()})
    report.result(facts)


def _show(report: Report, facts: dict[str, str]) -> None:
    """In the width of a terminal, values in their own column; elsewhere one line a fact, however long."""
    if not sys.stdout.isatty():
        width = max(map(len, facts))
        for name, value in facts.items():
            report.line(f"{name:<{width}}  {value}")
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    report.show(table)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
