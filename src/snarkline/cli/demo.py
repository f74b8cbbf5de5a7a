"""`snarkline demo`: the main job on a bundled circuit, with its timeline."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

from snarkline.cli.options import Option
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption, write_text


def unpack_circuit(folder: Path) -> tuple[Path, Path]:
    """Write the bundled circuit (SHA-256 of 512 bits, circomlib, BN254) to `folder`: paths of .r1cs and .wtns."""
    import lzma
    from importlib.resources import files

    data = files("snarkline.cli") / "data" / "sha256_512"
    paths = folder / "circuit.r1cs", folder / "circuit.wtns"
    for path in paths:
        path.write_bytes(lzma.decompress((data / f"{path.name}.xz").read_bytes()))
    return paths


def demo(
    output: Annotated[
        Path | None, Option("--output", "-o", help="Keep key, proof and timeline in this folder.")
    ] = None,
    threads: ThreadsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Prove a bundled circuit, SHA-256 of a 512-bit message, and show where the time went."""
    import tempfile

    report = Report(as_json=as_json, quiet=quiet)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        _run(output, threads, report)
        return
    with tempfile.TemporaryDirectory(prefix="snarkline-demo-") as folder:
        _run(Path(folder), threads, report)


def _run(folder: Path, threads: int | None, report: Report) -> None:
    from snarkline import Prover, load_proving_key, load_r1cs, load_witness, save_proving_key, setup, verify
    from snarkline.errors import SecurityWarning
    from snarkline.formats.circom import proof_to_json, public_to_json, save_verifying_key
    from snarkline.trace import Timeline, span

    r1cs_path, witness_path = unpack_circuit(folder)
    report.line("circuit: SHA-256 of a 512-bit message (circomlib), BN254")
    with Timeline() as timeline, span("demo"):
        with span("load circuit"):
            r1cs = load_r1cs(r1cs_path)
        report.line(f"  {r1cs.n_constraints:,} constraints, {r1cs.n_wires:,} wires, {r1cs.n_public} public inputs")
        with span("setup"), report.working("setting up a development key"), warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)
            save_proving_key(setup(r1cs), folder / "circuit.zkey")
        report.line("  development key made (for demonstration only: one machine knows its secret)")
        with span("load key and witness"):
            key = load_proving_key(folder / "circuit.zkey")
            witness = load_witness(witness_path, curve=key.curve)
        with Prover(key, r1cs=r1cs, threads=threads) as prover:
            with span("first proof"):
                prover.prove(witness)
            with span("second proof"):
                proof = prover.prove(witness)
        with span("verify"):
            valid = verify(key.verifying_key, proof)
    save_verifying_key(key.verifying_key, folder / "verification_key.json")
    texts = {
        "proof.json": proof_to_json(proof),
        "public.json": public_to_json(proof.public),
        "timeline.html": timeline.rendered("timeline.html"),
    }
    write_text({folder / name: text for name, text in texts.items()})
    report.line(f"  proof {'verified' if valid else 'REFUSED'}\n")
    report.line(timeline.report(min_share=0.01))
    report.result({"valid": valid, "n_constraints": r1cs.n_constraints, "seconds": round(timeline.wall_s, 6)})
    if not valid:
        raise SystemExit(1)
