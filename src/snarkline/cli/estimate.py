"""`snarkline estimate`: time and memory on this machine, before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from snarkline.cli.options import Argument
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption
from snarkline.threads import usable_threads

MARGIN_BYTES = 2 << 20
"""By which the resident memory of processes differs that do the same."""


def import_prover() -> None:
    """Imports what `snarkline prove` does, so that this process is as large, whatever file it reads."""
    from snarkline import Prover, load_proving_key, load_witness
    from snarkline.formats.circom import proof_to_json, public_to_json

    del Prover, load_proving_key, load_witness, proof_to_json, public_to_json


def estimate(
    file: Annotated[Path, Argument(help="A circuit or a proving key.", metavar="CIRCUIT.r1cs | KEY.zkey")],
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Estimate the time and memory of a proof and of a setup on this machine, from a second of measuring."""
    from snarkline.backend.cpu import CpuBackend
    from snarkline.cli.size import shown
    from snarkline.formats.circom.shape import read_shape
    from snarkline.groth16.estimate import estimate as scale
    from snarkline.groth16.estimate import measure
    from snarkline.groth16.footprint import resident_bytes
    from snarkline.memory import Arena

    report = Report(as_json=as_json, quiet=quiet)
    import_prover()
    process_bytes = resident_bytes() + MARGIN_BYTES
    shape = read_shape(file)
    n_threads = threads if threads is not None else usable_threads()
    with Arena() as arena, report.working("measuring"):
        backend = CpuBackend(n_threads, arena)
        rates = measure(backend, shape.curve)
        backend.close()
    found = scale(shape, rates, process_bytes, n_threads)
    least, most = (_seconds(s) for s in found.proof_s)
    report.line(
        f"{shape.curve.name}, {shape.n_wires:,} wires, domain 2^{shape.log_domain}, {n_threads} threads (an estimate)"
    )
    report.line(f"  proof:  {least} if most wires are 0 or 1, up to {most}; {shown(found.proof_bytes)}")
    report.line(f"          with --max-memory, {shown(found.least_bytes)} at least")
    report.line(f"  setup:  {_seconds(found.setup_s)}; {shown(found.setup_bytes)}")
    report.line("  proof is the time of a prover that holds the key; memory is the peak, with the key's pages")
    report.result(
        {
            "estimate": True,
            "curve": shape.curve.name,
            "n_wires": shape.n_wires,
            "n_public": shape.n_public,
            "domain": shape.domain_size,
            "threads": n_threads,
            "proof_seconds": {"least": round(found.proof_s[0], 6), "most": round(found.proof_s[1], 6)},
            "proof_peak_bytes": found.proof_bytes,
            "proof_least_bytes": found.least_bytes,
            "setup_seconds": round(found.setup_s, 6),
            "setup_peak_bytes": found.setup_bytes,
        }
    )


def _seconds(seconds: float) -> str:
    """What is below a hundredth is not told apart: there are costs of a millisecond that do not scale."""
    return f"{seconds:.2f} s" if seconds >= 0.01 else "under 0.01 s"
