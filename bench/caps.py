"""What a cap on memory costs: whole processes with `--max-memory`, from none to the least that is accepted.

    python bench/caps.py NAME KEY WITNESS [--runs 3]

Writes docs/data/caps/NAME.json: for each cap the samples, and their medians.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from statistics import median
from typing import Any

from machine import ROOT, facts
from provers import OURS, environment, measure

MIB = 1 << 20
STEPS = (0.85, 0.7, 0.6)
"""Caps between none and the least, as shares of the peak without a cap."""


def least(command: list[str]) -> int:
    """The bytes that a refusal says are needed."""
    done = subprocess.run([*command, "--max-memory", "1M"], capture_output=True, text=True, env=environment())
    match = re.search(r"(\d+) bytes were asked for within a budget", done.stderr)
    assert done.returncode == 2 and match is not None, done.stderr
    return int(match[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("key")
    parser.add_argument("witness")
    parser.add_argument("--runs", type=int, default=3)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = OURS.format(
            python=sys.executable, key=a.key, witness=a.witness, proof=f"{folder}/p", public=f"{folder}/i"
        )
        command = shlex.split(words)
        samples = [measure(command) for _ in range(a.runs)]
        peak = max(s["peak_mib"] for s in samples)
        needed = least(command) / MIB * 1.02  # a process differs a little from the next
        rows: list[dict[str, Any]] = [{"cap_mib": None, "samples": samples}]
        for cap in [*(round(peak * step) for step in STEPS if peak * step > needed), round(needed + 0.5)]:
            capped = [*command, "--max-memory", f"{cap}M"]
            rows.append({"cap_mib": cap, "samples": [measure(capped) for _ in range(a.runs)]})
    for row in rows:
        row["median"] = {key: round(median(s[key] for s in row["samples"]), 4) for key in samples[0]}
        row["samples"] = [{key: round(value, 4) for key, value in s.items()} for s in row["samples"]]
    target = ROOT / "docs" / "data" / "caps" / f"{a.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"name": a.name, **facts(), "caps": rows}, indent=1) + "\n")
    for row in rows:
        print(row["cap_mib"], row["median"])


if __name__ == "__main__":
    main()
