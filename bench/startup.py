"""Start-up: what importing the package, `--help` and the smallest proof take, against their floors.

    python bench/startup.py [--runs 20] [-o docs/data/startup/NAME.json]

The processes run in turns. Bytecode is compiled before, as an installed package has it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import machine

VECTOR = machine.ROOT / "tests" / "vectors" / "circom" / "multiplier_bn128"
EMPTY_TYPER = """import typer
app = typer.Typer()
@app.command()
def one() -> None: "One."
@app.command()
def two() -> None: "Two."
app()"""
PROVE = ["-m", "snarkline", "prove", str(VECTOR / "circuit.zkey"), str(VECTOR / "circuit.wtns"), "--quiet"]
COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import numpy, snarkline": ["-c", "import numpy, snarkline"],
    "import snarkline": ["-c", "import snarkline"],
    "empty typer --help": ["-c", EMPTY_TYPER, "--help"],
    "snarkline --help": ["-m", "snarkline", "--help"],
    "snarkline prove (2 constraints)": PROVE,
}


def run(arguments: list[str], folder: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    message = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{arguments}: {message.decode()}")
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS.values():
            run(command, folder)
        for _ in range(arguments.runs):
            for name, command in COMMANDS.items():
                samples[name].append(run(command, folder))
    result: dict[str, Any] = {**machine.facts(), "load_average": round(os.getloadavg()[0], 2), "runs": arguments.runs}
    result["niceness"] = os.nice(0)
    result["commands"] = {
        name: {
            "median": {key: round(median(s[key] for s in rows), 4) for key in rows[0]},
            "samples": [{key: round(value, 4) for key, value in s.items()} for s in rows],
        }
        for name, rows in samples.items()
    }
    for name, entry in result["commands"].items():
        print(f"{name:34} {entry['median']}")
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
