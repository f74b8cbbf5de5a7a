"""Whole-process comparison with other provers on the same files: wall seconds, CPU seconds, peak memory.

    python bench/provers.py CASE KEY WITNESS --vk VK.json --peer NAME 'COMMAND {key} {witness} {proof} {public}'

Runs take turns, so that all see the same machine; a peer may have fewer than ours. Every proof is verified by our
verifier, and the last of everybody by snarkjs if `--snarkjs COMMAND` is given. A resident prover (`resident.py`), which
holds its key, is timed after them. The result is one JSON file in docs/data/provers/.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from machine import ROOT, facts

OURS = "{python} -m snarkline prove {key} {witness} -o {proof} --public {public} --quiet"
RESIDENT = Path(__file__).parent / "resident.py"


@dataclass(frozen=True)
class Case:
    """Files, our command's runs, and the runs of each peer."""

    name: str
    key: str
    witness: str
    vk: str
    runs: int = 5
    peers: Mapping[str, int] = field(default_factory=dict)


def environment() -> dict[str, str]:
    """As an installed package runs: with compiled bytecode."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def measure(command: list[str]) -> dict[str, float]:
    """Run to the end; wall and CPU seconds and peak resident MiB of the process.

    The system counts this process's own peak (some 15 MiB) as one of the child's.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)} exited with {process.returncode}: {errors.decode()}")
    return {"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 1024}


def compare(case: Case, commands: Mapping[str, str], snarkjs: str | None) -> dict[str, Any]:
    """Runs everybody on a case; the result is also written to docs/data/provers/."""
    runs = {"snarkline": case.runs, **case.peers}
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    verified: dict[str, bool] = dict.fromkeys(runs, True)
    with tempfile.TemporaryDirectory() as folder:
        outputs = {name: (Path(folder) / f"{name}.json", Path(folder) / f"{name}-public.json") for name in runs}
        for turn in range(max(runs.values())):
            for name in (name for name, count in runs.items() if turn < count):
                proof, public = outputs[name]
                command = ({"snarkline": OURS} | dict(commands))[name].format(
                    python=sys.executable, key=case.key, witness=case.witness, proof=proof, public=public
                )
                samples[name].append(measure(shlex.split(command)))
                verified[name] &= _verifies([sys.executable, "-m", "snarkline", "verify"], case.vk, proof, public)
        for name, (proof, public) in outputs.items():
            if snarkjs is not None:
                verified[name] &= _verifies([*shlex.split(snarkjs), "groth16", "verify"], case.vk, proof, public)
    result: dict[str, Any] = {"case": case.name, **facts(), "provers": {}}
    for name, rows in samples.items():
        result["provers"][name] = {
            "verified": verified[name],
            "median": {key: round(median(row[key] for row in rows), 4) for key in rows[0]},
            "samples": [{key: round(value, 4) for key, value in row.items()} for row in rows],
        }
    result["resident"] = _resident(case)
    target = ROOT / "docs" / "data" / "provers" / f"{case.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    for name, entry in result["provers"].items():
        print(f"{case.name:<24} {name:<12} {entry['median']} verified={entry['verified']}", flush=True)
    print(f"{case.name:<24} {'resident':<12} {result['resident']['median']}", flush=True)
    return result


def _verifies(command: list[str], vk: str, proof: Path, public: Path) -> bool:
    done = subprocess.run([*command, vk, public, proof], capture_output=True, env=environment(), check=False)
    return done.returncode == 0


def _resident(case: Case) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, RESIDENT, case.key, case.witness, str(case.runs)],
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("key")
    parser.add_argument("witness")
    parser.add_argument("--vk", required=True)
    parser.add_argument("--peer", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"))
    parser.add_argument("--snarkjs", help="a command that runs snarkjs")
    parser.add_argument("--runs", type=int, default=5)
    a = parser.parse_args()
    peers = dict(a.peer)
    case = Case(a.case, a.key, a.witness, a.vk, a.runs, dict.fromkeys(peers, a.runs))
    compare(case, peers, a.snarkjs)


if __name__ == "__main__":
    main()
