"""`snarkline demo`: the main job on a bundled circuit, with its timeline."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from snarkline.cli.options import Option
from snarkline.cli.output import JsonOption, QuietOption, Report, ThreadsOption, write_text

if TYPE_CHECKING:
    from snarkline.trace import Span, Timeline


LEAST_SHARE = 0.01
"""Parts of the whole time that are shown."""


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
    import textwrap

    report = Report(as_json=as_json, quiet=quiet)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        names = _run(output, threads, report)
        listed = textwrap.fill(", ".join(names), 78, initial_indent="  ", subsequent_indent="  ")
        report.line(f"wrote to {output}:\n{listed}")
        return
    with tempfile.TemporaryDirectory(prefix="snarkline-demo-") as folder:
        _run(Path(folder), threads, report)
    report.line("-o FOLDER keeps the files, among them timeline.html: this timeline as a page")


def _run(folder: Path, threads: int | None, report: Report) -> list[str]:
    """Does everything in `folder`, and returns the names of the files that it wrote there."""
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
        with report.working("setting up a development key"), warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)
            development_key = setup(r1cs)
            with span("write key"):
                save_proving_key(development_key, folder / "circuit.zkey")
            del development_key
        report.line("  development key made (for demonstration only: one machine knows its secret)")
        with span("load key and witness"):
            key = load_proving_key(folder / "circuit.zkey")
            witness = load_witness(witness_path, curve=key.curve)
        fresh = [0]
        with Prover(key, r1cs=r1cs, threads=threads) as prover:
            with span("first proof"):
                prover.prove(witness)
            fresh.append(prover.arena.stats().fresh_bytes)
            with span("wipe"):  # by the arena's own thread; a vector is lent again once it has been wiped
                prover.arena.drain(5.0)
            with span("second proof"):
                proof = prover.prove(witness)
            fresh.append(prover.arena.stats().fresh_bytes)
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
    report.line(timeline.report(min_share=LEAST_SHARE))
    report.line(f"\n{_sum_of_spans(timeline)}")
    for name, before, after in zip(("first proof", "second proof"), fresh, fresh[1:], strict=False):
        report.line(_fresh_memory(timeline, name, after - before))
    report.result({"valid": valid, "n_constraints": r1cs.n_constraints, "seconds": round(timeline.wall_s, 6)})
    if not valid:
        raise SystemExit(1)
    return [r1cs_path.name, witness_path.name, "circuit.zkey", "verification_key.json", *texts]


def _sum_of_spans(timeline: Timeline) -> str:
    """The demo's parts, which add up to its time: no part overlaps another one."""
    from snarkline.trace.gaps import find_gaps
    from snarkline.trace.report import duration

    (whole,) = (s for s in timeline.spans if s.name == "demo")
    parts = timeline.children()[whole.id]
    named, unattributed = sum(s.wall_s for s in parts), find_gaps(timeline)[whole.id].wall_s
    total = duration(named + unattributed)
    small = sum(s.wall_s < LEAST_SHARE * timeline.wall_s for s in parts)
    not_shown = f"\n{small} of the parts, each under {LEAST_SHARE:.0%}, not shown" if small else ""
    return (
        f"spans add up: {len(parts)} parts {duration(named)} + unattributed {duration(unattributed)}"
        f" = {total} (demo: {duration(whole.wall_s)}){not_shown}"
    )


def _fresh_memory(timeline: Timeline, proof: str, n_bytes: int) -> str:
    """What a proof took from the kernel; the arena's other vectors were there already."""
    from snarkline.trace.report import amount, duration

    (whole,) = (s for s in timeline.spans if s.name == proof)
    touched = sum(s.wall_s for s in timeline.spans if s.name == "arena.first_touch" and _within(s, whole))
    taken = f"{proof}: took {amount(whole.arena_taken)}"
    if not n_bytes:
        return f"{taken} from the pool, no fresh memory"
    return f"{taken}, {amount(n_bytes)} of it fresh, first touched in {duration(touched)}"


def _within(inner: Span, outer: Span) -> bool:
    return outer.begin.ns <= inner.begin.ns and inner.end.ns <= outer.end.ns
