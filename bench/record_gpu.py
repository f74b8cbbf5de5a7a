"""Record what a GPU does, from files that came back from its machine:

    snarkline bench gpu --output gpu.json --transforms ... --sums-g1 ... --sums-g2 ... --circuits ...
    ncu --profile-from-start off --clock-control none --csv --page raw --log-file ncu.csv \\
        --section SpeedOfLight --section Occupancy --section MemoryWorkloadAnalysis --section WarpStateStats \\
        --section ComputeWorkloadAnalysis --section SchedulerStats python bench/gpu_check.py out.json --only profile
    python bench/gpu_check.py check.json --only build
    python bench/record_gpu.py gpu.json ncu.csv --build check.json --driver 580.0 --commit abc --host "16 cores"

writes docs/data/gpu/NAME.json, from which bench/render_docs.py makes the tables.
"""

import argparse
import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "docs" / "data" / "gpu"
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


def profile(path: Path) -> list[dict[str, Any]]:
    """The longest launch of each kernel in each run: the sum of BLS12-381, that of BN254, the transform."""
    rows = list(csv.reader(path.read_text().splitlines()))
    begin = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    header, runs, number = rows[begin], ["sum, BLS12-381", "sum, BN254", "transform, BLS12-381"], 0
    longest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows[begin + 2 :]:
        cells = dict(zip(header, row, strict=True))
        kernel = cells["Kernel Name"]
        if kernel.startswith("ntt"):
            number = 2
        facts = {name: round(_number(cells[column]) * scale, 2) for name, (column, scale) in METRICS.items()}
        stalls = {name[len(STALL[0]) : -len(STALL[1])]: _number(cells[name]) for name in header if _is_stall(name)}
        del stalls["selected"]
        entry = {"run": runs[number], "kernel": kernel, **facts, "most_waited_for": max(stalls, key=stalls.__getitem__)}
        key = runs[number], kernel
        if key not in longest or longest[key]["us"] < entry["us"]:
            longest[key] = entry
        if kernel == "finish_windows":
            number += 1
    return sorted(longest.values(), key=lambda e: (runs.index(e["run"]), -e["us"]))


def _is_stall(name: str) -> bool:
    return name.startswith(STALL[0]) and name.endswith(STALL[1])


def _number(text: str) -> float:
    return float(text.replace(",", "") or "nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path)
    parser.add_argument("profiles", type=Path, nargs="*")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--name", default="h200")
    for name in ("driver", "commit", "host"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--profile-commit", help="if it is another")
    arguments = parser.parse_args()
    result = {
        "commit": arguments.commit,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "driver": arguments.driver,
        "host": arguments.host,
        **json.loads(arguments.figures.read_text()),
        "compile_seconds": json.loads(arguments.build.read_text())["compile_seconds"],
        "profile_commit": arguments.profile_commit or arguments.commit,
        "profile": [entry for path in arguments.profiles for entry in profile(path)],
    }
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{arguments.name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
