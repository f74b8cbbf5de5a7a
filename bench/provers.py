"""Whole-process comparison with other provers on the same files: wall seconds, CPU seconds, peak memory.

    python bench/provers.py CASE KEY WITNESS --vk VK.json --peer NAME 'COMMAND {key} {witness} {proof} {public}'

Runs take turns, so that all see the same machine. Every proof of ours is verified by our verifier, and every proof of
anybody by snarkjs if `--snarkjs COMMAND` is given. The result is one JSON file in docs/data/provers/.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from machine import ROOT, facts

OURS = "{python} -m snarkline prove {key} {witness} -o {proof} --public {public} --quiet"


def measure(command: list[str]) -> dict[str, float]:
    """Run to the end; wall and CPU seconds and peak resident MiB of the process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed: compiled
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)} exited with {process.returncode}: {errors.decode()}")
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("key", type=Path)
    parser.add_argument("witness", type=Path)
    parser.add_argument("--vk", type=Path, required=True)
    parser.add_argument("--peer", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"))
    parser.add_argument("--snarkjs", help="a command that runs snarkjs")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()

    commands = {"snarkline": OURS, **dict(arguments.peer)}
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    verified: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.runs):
            for name, template in commands.items():
                proof, public = Path(folder) / f"{name}.json", Path(folder) / f"{name}-public.json"
                command = template.format(
                    python=sys.executable, key=arguments.key, witness=arguments.witness, proof=proof, public=public
                )
                samples[name].append(measure(shlex.split(command)))
                verifier = arguments.snarkjs or f"{sys.executable} -m snarkline"
                verb = "groth16 verify" if arguments.snarkjs else "verify"
                check = subprocess.run(
                    [*shlex.split(verifier), *verb.split(), arguments.vk, public, proof], capture_output=True
                )
                verified[name] = check.returncode == 0 and verified.get(name, True)
    result: dict[str, Any] = {"case": arguments.case, **facts(), "provers": {}}
    for name, rows in samples.items():
        result["provers"][name] = {
            "verified": verified[name],
            "median": {key: round(median(row[key] for row in rows), 4) for key in rows[0]},
            "samples": [{key: round(value, 4) for key, value in row.items()} for row in rows],
        }
    target = ROOT / "docs" / "data" / "provers" / f"{arguments.case}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    for name, entry in result["provers"].items():
        print(f"{arguments.case:<24} {name:<12} {entry['median']} verified={entry['verified']}")


if __name__ == "__main__":
    main()
