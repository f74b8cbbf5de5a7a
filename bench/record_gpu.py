"""Record what a GPU does, for docs/gpu.md, docs/performance.md and docs/teardown.md. On the GPU's machine

    python bench/record_gpu.py run FOLDER [--budget 220] [--steps build,figures,life,profile]

measures step by step, each in a process of its own that is stopped at its limit, or at the budget's end; their files in
FOLDER have what was measured until then. Anywhere, after that,

    python bench/record_gpu.py write FOLDER [--name h200] [--commit HASH]

makes docs/data/gpu*/NAME.json and docs/data/seed/NAME.json, from which bench/render_docs.py makes tables. What FOLDER
lacks stays as it was recorded. --commit is for a machine that had the files without their history.

build: what compiling the kernels takes. figures: `snarkline bench gpu`. life: bench/gpu_life.py. profile: Nsight
Compute (`ncu`). seed: bench/gpu_seed.py. devices: bench/gpu_devices.py, on two GPUs.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from figures import DATA, ROOT
from machine import facts, gpu_facts

from snarkline.backend.cuda import KernelCache, default_cache_folder

BENCH = Path(__file__).parent
SNARKLINE = ["-c", "from snarkline.cli import main; main()"]
CACHE = default_cache_folder()
NCU = [
    "ncu", "--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw",
    *(word for section in ("SpeedOfLight", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats",
                           "ComputeWorkloadAnalysis", "SchedulerStats") for word in ("--section", section)),
]  # fmt: skip
SIZES = {"transforms": "18,20,22,24,26,27", "sums-g1": "16,18,20,22,24,26", "sums-g2": "16,20,22,24"}
SIZES["circuits"] = "20,22"
LIMITS = {"build": 60, "figures": 150, "life": 90, "profile": 60, "seed": 200, "devices": 110}
"""Seconds."""

METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "registers": ("launch__registers_per_thread", 1),
    "warps_active_pct": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1),
    "issue_pct": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1),
    "wide_multiplier_pct": ("sm__pipe_fmaheavy_cycles_active.avg.pct_of_peak_sustained_elapsed", 1),
    "alu_pct": ("sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed", 1),
    "dram_bytes_per_s": ("dram__bytes.sum.per_second", 1),
    "l2_pct": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 1),
}
STALL = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"


# ---- on the GPU's machine ----


def command(step: str, folder: Path, limit: float) -> list[str]:
    python, check = sys.executable, [str(BENCH / "gpu_check.py"), str(folder / "check.json"), "--cache", str(CACHE)]
    if step == "build":
        KernelCache(CACHE).clean()  # so that all are compiled, for the other steps as well
        return [python, check[0], str(folder / "build.json"), "--only", "build", "--cache", str(CACHE)]
    if step == "profile":
        return [*NCU, "--log-file", str(folder / "profile.csv"), python, *check, "--only", "profile"]
    if step == "figures":
        sizes = [word for name, value in SIZES.items() for word in (f"--{name}", value)]
        return [python, *SNARKLINE, "bench", "gpu", "--output", str(folder / "figures.json"), *sizes]
    script = [python, str(BENCH / f"gpu_{step}.py"), str(folder / f"{step}.json")]
    return script if step == "life" else [*script, "--budget", str(round(limit - 15))]


def run(folder: Path, steps: list[str], budget: float) -> bool:
    """Whether all steps ended well."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "facts.json").write_text(json.dumps({**facts(), **gpu_facts()}, indent=1) + "\n")
    begin, good = time.monotonic(), True
    for step in steps:
        started = time.monotonic()
        limit = min(LIMITS[step], begin + budget - started)
        if limit < 5:
            good, result = False, "no time left"
        else:
            with (folder / f"{step}.log").open("w") as log:
                try:
                    done = subprocess.run(
                        command(step, folder, limit), stdout=log, stderr=subprocess.STDOUT, timeout=limit, check=False
                    )
                    result = "ended" if done.returncode == 0 else f"exit code {done.returncode}"
                except subprocess.TimeoutExpired:
                    result = "stopped"
            good &= result == "ended"
        print(
            f"[{time.monotonic() - begin:5.1f}] {step}: {result} after {time.monotonic() - started:.1f} s", flush=True
        )
    return good


# ---- the record ----


def write(folder: Path, name: str, commit: str | None) -> None:
    other = {} if commit is None else {"commit": commit}
    there = _read(folder / "facts.json") | other
    host = f"{there['cores']} {'Xeon' if 'Xeon' in there['cpu'] else there['cpu']} cores"
    source = {"commit": there["commit"], "date": there["date"], "driver": there["driver"], "host": host}
    main = DATA / "gpu" / f"{name}.json"
    result = _read(main)
    if figures := _read(folder / "figures.json"):
        result |= source | figures
    if build := _read(folder / "build.json"):
        result["load_seconds"] = build["load_seconds"]
    launches = _read(folder / "check.json").get("launches")
    if launches and (found := profile(folder / "profile.csv", launches)):
        result |= {"profile": found, "profile_commit": there["commit"]}
    _save(main, result)
    for step, where in (("life", "gpu-life"), ("devices", "gpu-devices"), ("seed", "seed")):
        found = _read(folder / f"{step}.json")
        if found:
            target = DATA / where / f"{name}.json"
            _save(target, (_read(target) if step == "life" else {}) | found | other)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _save(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path.relative_to(ROOT))


def profile(path: Path, launches: dict[str, int]) -> list[dict[str, Any]]:
    """The longest launch of each kernel in each of the runs, which follow each other with so many launches."""
    rows = list(csv.reader(path.read_text().splitlines())) if path.exists() else []
    begin = next((i for i, row in enumerate(rows) if row and row[0] == "ID"), len(rows))
    if len(rows) - begin - 2 != sum(launches.values()):
        print(f"{path.name} has {len(rows) - begin - 2} launches of {sum(launches.values())}: left out")
        return []
    header, rows, runs = rows[begin], rows[begin + 2 :], list(launches)
    run_of = [run for run, n in launches.items() for _ in range(n)]
    longest: dict[tuple[str, str], dict[str, Any]] = {}
    for run, row in zip(run_of, rows, strict=True):
        cells = dict(zip(header, row, strict=True))
        kernel = cells["Kernel Name"]
        facts = {name: round(_number(cells[column]) * scale, 2) for name, (column, scale) in METRICS.items()}
        stalls = {name[len(STALL[0]) : -len(STALL[1])]: _number(cells[name]) for name in header if _is_stall(name)}
        del stalls["selected"]
        entry = {"run": run, "kernel": kernel, **facts, "most_waited_for": max(stalls, key=stalls.__getitem__)}
        if (run, kernel) not in longest or longest[run, kernel]["us"] < entry["us"]:
            longest[run, kernel] = entry
    return sorted(longest.values(), key=lambda e: (runs.index(e["run"]), -e["us"]))


def _is_stall(name: str) -> bool:
    return name.startswith(STALL[0]) and name.endswith(STALL[1])


def _number(text: str) -> float:
    return float(text.replace(",", "") or "nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", default="build,figures,life,profile")
    parser.add_argument("--budget", type=float, default=220, help="seconds")
    parser.add_argument("--name", default="h200")
    parser.add_argument("--commit")
    arguments = parser.parse_args()
    if arguments.what == "write":
        write(arguments.folder, arguments.name, arguments.commit)
    elif not run(arguments.folder, arguments.steps.split(","), arguments.budget):
        sys.exit(1)


if __name__ == "__main__":
    main()
