"""Commit phase 2 of the 2 KiB sector of the tests by a resident prover: the whole of it, and where its time goes.

    python bench/porep_resident.py [--params FILE] [--backend cuda] [--runs 5] [-o docs/data/porep-resident/NAME.json]

Without --params a development key is made here, by the same backend. Every proof is verified by its own self-check and
once more as `snarkline porep verify` does it. Whole proofs are timed without a timeline; the stages are from others.
"""

import argparse
import json
import lzma
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import machine

from snarkline import Timeline, load_proving_key
from snarkline.errors import SecurityWarning
from snarkline.filecoin.porep.c1 import parse_phase1
from snarkline.filecoin.porep.circuit import porep_circuit
from snarkline.filecoin.porep.prover import PorepProver, verify_porep
from snarkline.filecoin.porep.vanilla import Phase1Output
from snarkline.filecoin.registry import PorepVersion, sector_size
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.layout import bellperson_layout
from snarkline.groth16.setup import setup

C1 = machine.ROOT / "tests" / "vectors" / "filecoin" / "seal_2KiB" / "c1.json.xz"
SIZE, VERSION = sector_size("2KiB"), PorepVersion.V1_1
STAGES = (
    *("check vanilla proofs", "synthesis", "check witness", "check constraints"),
    *("evaluate", "quotient", "commit", "finish", "self-check"),
)
WARM_UP = 2


def proving_key(params: Path | None, backend: str) -> ProvingKey:
    if params is not None:
        return load_proving_key(params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return setup(porep_circuit(SIZE), layout=bellperson_layout, backend=backend)


def whole(prover: PorepProver, phase1: Phase1Output) -> tuple[float, bytes]:
    started = time.perf_counter()
    proofs = prover.prove(phase1, VERSION)
    return time.perf_counter() - started, proofs


def stages(prover: PorepProver, phase1: Phase1Output) -> dict[str, float]:
    """Seconds of the stages, and, after "device: ", of what a GPU did."""
    with Timeline(sample_ms=0) as timeline:
        prover.prove(phase1, VERSION)
    seconds = {"whole": timeline.wall_s, **dict.fromkeys(STAGES, 0.0)}
    for item in timeline.spans:
        if item.kind == "device":
            name = f"device: {item.name}"
            seconds[name] = seconds.get(name, 0.0) + item.wall_s
        elif item.name in STAGES:
            seconds[item.name] += item.wall_s
    return seconds


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(row.get(name, 0.0) for row in rows), 6) for name in rows[0]}


def measure(prover: PorepProver, phase1: Phase1Output, key: ProvingKey, runs: int) -> dict[str, Any]:
    first, _ = whole(prover, phase1)
    for _ in range(WARM_UP):
        prover.prove(phase1, VERSION)
    samples, proofs = zip(*(whole(prover, phase1) for _ in range(runs)), strict=True)
    known = phase1.commitments
    return {
        "first_s": round(first, 4),
        "proof_s": round(median(samples), 6),
        "samples_s": [round(sample, 6) for sample in samples],
        "stages_s": medians([stages(prover, phase1) for _ in range(runs)]),
        "verified": all(verify_porep(key.verifying_key, SIZE, VERSION, known, proof) for proof in proofs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--params", type=Path)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--commit", help="for a machine that has the files without their history")
    parser.add_argument("-o", "--output", type=Path)
    a = parser.parse_args()
    facts = machine.facts(a.commit)
    phase1 = parse_phase1(lzma.decompress(C1.read_bytes()), SIZE)
    started = time.perf_counter()
    key = proving_key(a.params, a.backend)
    made = time.perf_counter()
    with PorepProver(SIZE, key, backend=a.backend, threads=a.threads) as prover:
        opened = time.perf_counter()
        result = {
            **facts,
            "sector": SIZE.name,
            "note": prover.note,
            "key_made_s": round(made - started, 3) if a.params is None else None,
            "opened_s": round(opened - made, 3),
            **measure(prover, phase1, key, a.runs),
        }
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    if a.output is not None:
        a.output.parent.mkdir(parents=True, exist_ok=True)
        a.output.write_text(text)


if __name__ == "__main__":
    main()
