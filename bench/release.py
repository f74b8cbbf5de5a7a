"""Record what giving memory back costs on this machine, for docs/teardown.md and docs/memory.md.

    python bench/release.py MACHINE [--gib N] [--exit-gib N] [--only SECTION ...] [--output FOLDER]

The result is docs/data/release/MACHINE.json, with the load average before each section. Sections that are not named
stay as they were recorded. About nine minutes on 2 cores with 24 GiB.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import ROOT, facts

from snarkline.memory import experiment
from snarkline.threads import usable_threads

SNARKLINE = [sys.executable, "-c", "from snarkline.cli import main; main()", "bench"]
OTHERS = "sync,clear,clear-capacity,madvise,madvise-free"
WORK = ("--work", "0.1")
"""Seconds that the native function works: releases and stalls are measured from its end on."""


def snarkline(*words: str) -> dict[str, Any]:
    done = subprocess.run([*SNARKLINE, *words, "--json"], stdout=subprocess.PIPE, check=True, text=True)
    return {"command": f"snarkline bench {' '.join(words)}", **json.loads(done.stdout)}


def policies(options: argparse.Namespace) -> dict[str, Any]:
    """What must reach its bounds: medians of 5."""
    return snarkline(
        "release", "--release", "detached,recycle", "--runs", "5", "--window", "0.8", *WORK, *_gib(options)
    )


def others(options: argparse.Namespace) -> dict[str, Any]:
    """The rest of the policies, and NumPy's own arrays."""
    return snarkline("release", "--release", OTHERS, "--numpy", "--runs", "3", "--window", "0.2", *WORK, *_gib(options))


def report(options: argparse.Namespace) -> dict[str, Any]:
    """The timeline of a call with the baseline, as the command prints it."""
    bytes_ = int(options.gib * 2**30) if options.gib else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 6
    run = experiment.Run("sync", "both", "4k", bytes_, usable_threads())
    return {"command": "snarkline bench release", "text": experiment.report_fresh(run)}


def sweep(_: argparse.Namespace) -> dict[str, Any]:
    return snarkline("release", "--sweep", "--gib", "1", "--runs", "3", "--work", "0.05", "--window", "0.05")


def proofs(_: argparse.Namespace) -> dict[str, Any]:
    return snarkline("prove", "--release", "all", "--circuits", "4", "--runs", "3", "--window", "0.3")


def exits(options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("exit.py")), str(options.exit_gib)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return {
        "command": f"python bench/exit.py {options.exit_gib:g}",
        "rows": [json.loads(line) for line in done.stdout.splitlines()],
    }


def _gib(options: argparse.Namespace) -> list[str]:
    return [] if options.gib is None else ["--gib", str(options.gib)]


SECTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "policies": policies,
    "others": others,
    "report": report,
    "sweep": sweep,
    "proofs": proofs,
    "exits": exits,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", help="the result's name")
    parser.add_argument("--gib", type=float, help="of both sides; a sixth of memory if not given")
    parser.add_argument("--exit-gib", type=float, help="pending at exit; half of memory if not given")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "data" / "release")
    options = parser.parse_args()
    if options.exit_gib is None:
        options.exit_gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**31)
    target = options.output / f"{options.machine}.json"
    result = json.loads(target.read_text()) if target.exists() else {}
    result |= facts()
    for name in options.only:
        load, begun = os.getloadavg()[0], time.monotonic()
        section = SECTIONS[name](options)
        seconds = time.monotonic() - begun
        result[name] = {"load_average": round(load, 1), "took_s": round(seconds), "commit": result["commit"], **section}
        print(f"{name}: {seconds:.0f} s, load average {load:.1f} before", flush=True)
        options.output.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
