"""Commit phase 2 of the 2 KiB sector of the tests: whole processes with their peak memory, and release policies.

    python bench/porep.py PARAMS [--runs 3] [--circuits 10] [--trace FOLDER] [-o docs/data/porep/NAME.json]

PARAMS is a .params file that `snarkline porep params` made, with its .vk beside it. Every proof is verified.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import machine

C1 = machine.ROOT / "tests" / "vectors" / "filecoin" / "seal_2KiB" / "c1.json.xz"


def snarkline(*arguments: object) -> tuple[dict[str, Any], Any]:
    """A command's JSON and what its process used."""
    process = subprocess.Popen(
        [sys.executable, "-m", "snarkline", *map(str, arguments), "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"snarkline {' '.join(map(str, arguments))} ended with {process.returncode}")
    return json.loads(text), used


def prove(c1: Path, params: Path, proof: Path) -> dict[str, Any]:
    """One process: load, record, prove; its proof is verified by another."""
    facts, used = snarkline("porep", "prove", c1, "--params", params, "-o", proof)
    verified, _ = snarkline("porep", "verify", c1, proof, "--vk", params.with_suffix(".vk"))
    return {
        "load_s": facts["load_seconds"],
        "proof_s": facts["proof_seconds"],
        "cpu_s": round(used.ru_utime + used.ru_stime, 3),
        "peak_mib": round(used.ru_maxrss / 1024),
        "verified": verified["valid"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("params", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--circuits", type=int, default=10)
    parser.add_argument("--release", default="sync,detached,recycle")
    parser.add_argument("--trace", type=Path, help="folder for the timelines of the calls")
    parser.add_argument("-o", "--output", type=Path)
    a = parser.parse_args()
    facts = machine.facts()
    with tempfile.TemporaryDirectory() as folder:
        c1 = Path(folder) / "c1.json"
        c1.write_bytes(lzma.decompress(C1.read_bytes()))
        samples = [prove(c1, a.params, Path(folder) / "proof.bin") for _ in range(a.runs)]
        trace = ["--trace", a.trace] if a.trace else []
        options = ["--classic-host", "--circuits", a.circuits, "--release", a.release, *trace]
        classic, _ = snarkline("bench", "porep", c1, "--params", a.params, *options)
    facts["load_average"] = max(facts["load_average"], round(os.getloadavg()[0], 2))
    middle = {key: median(s[key] for s in samples) for key in samples[0] if key != "verified"}
    rows = [{key: value for key, value in row.items() if key != "samples"} for row in classic["rows"]]
    result = {**facts, "sector": "2KiB", "median": middle, "samples": samples, "circuits": a.circuits, "rows": rows}
    text = json.dumps(result, indent=1) + "\n"
    if a.output is None:
        print(text)
    else:
        a.output.parent.mkdir(parents=True, exist_ok=True)
        a.output.write_text(text)


if __name__ == "__main__":
    main()
