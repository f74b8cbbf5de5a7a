"""The GPU's figures of the docs, from docs/data/gpu (bench/record_gpu.py)."""

from collections.abc import Callable
from typing import Any

from figures import load, table

CURVES = {"bls12_381": "BLS12-381", "bn254": "BN254"}
SHOWN = 100
"""Kernels that take fewer microseconds are left out of the profile."""


def results() -> list[dict[str, Any]]:
    return load("gpu")


def machine(result: dict[str, Any]) -> str:
    return (
        f"\n{result['device']}, driver {result['driver']}, NVRTC {result['nvrtc']}, host {result['host']}; "
        f"medians of {result['runs']}; commit {result['commit']}, {result['date']}.\n"
    )


def significant(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def ceilings() -> str:
    """What the chip does at most."""
    text = ""
    for result in results():
        rates = result["ceilings"]["per_second"]
        rows = [[name.replace("bls12_381", "BLS12-381").replace("bn254", "BN254"), f"{rate / 1e9:,.1f} G/s"]
                for name, rate in rates.items()]  # fmt: skip
        rows.append(["bytes copied, read and written", f"{result['ceilings']['copy_bytes_per_second'] / 1e12:.2f} T/s"])
        text += table(["with nothing to load or wait for", "at most"], rows) + machine(result)
    return text or "Not recorded.\n"


def modules() -> str:
    """How long the kernels take to compile."""
    lines = []
    for result in results():
        seconds = result["compile_seconds"]
        slowest = max(seconds, key=seconds.__getitem__)
        lines.append(
            f"{len(seconds)} modules, {sum(seconds.values()):.0f} core-seconds together, {slowest} the longest with "
            f"{seconds[slowest]:.0f}.\n" + machine(result)
        )
    return "".join(lines) or "Not recorded.\n"


def transforms() -> str:
    text = ""
    for result in results():
        rows = [
            [
                CURVES[row["curve"]],
                f"2^{row['log_n']}",
                *(significant(row[f"{kind}_ms"]) for kind in ("forward", "coset", "inverse", "reversed")),
                f"{row['share_of_ceiling']:.0%}",
            ]
            for row in result["transforms"]
        ]
        header = ["field", "size", "forward ms", "on a coset ms", "inverse, scaled ms", "reversed ms"]
        text += table([*header, "n/2 log n products, share of ceiling"], rows) + machine(result)
    return text or "Not recorded.\n"


def sums() -> str:
    text = ""
    for result in results():
        rows = [
            [
                f"{CURVES[row['curve']]} {row['group']}",
                f"2^{row['log_n']}",
                *(significant(row[f"{kind}_ms"]) for kind in ("wall", "sort", "rounds", "reduce")),
                str(row["windows"]),
                f"{row['share_of_ceiling']:.0%}",
            ]
            for row in result["sums"]
        ]
        header = ["group", "points", "wall ms", "sort ms", "rounds ms", "reduction ms", "windows"]
        text += table([*header, "share of the products' ceiling"], rows) + machine(result)
    return text or "Not recorded.\n"


def proofs() -> str:
    text = ""
    for result in results():
        rows = []
        for row in result["proofs"]:
            before_check = row["proof_ms"] - row["self-check_ms"]
            rows.append(
                [
                    f"{CURVES[row['curve']]}, 2^{row['log_n']}, {row['witness']}",
                    f"{row['proof_ms']:.1f}",
                    f"{before_check:.1f}",
                    *(f"{row[f'{phase}_ms']:.1f}" for phase in ("commit", "on device", "assemble", "self-check")),
                    f"{row['setup_s']:.1f}",
                ]
            )
        header = ["circuit", "proof ms", "without self-check", "commit", "on the device", "assemble", "self-check"]
        text += table([*header, "development key s"], rows) + machine(result)
    return text or "Not recorded.\n"


def profile() -> str:
    """The kernels that take longest, under Nsight Compute."""
    text = ""
    for result in results():
        rows = [
            [
                entry["run"],
                f"`{entry['kernel']}`",
                f"{entry['us']:,.0f}",
                f"{entry['registers']:.0f}",
                f"{entry['warps_active_pct']:.0f} %",
                f"{entry['issue_pct']:.0f} %",
                f"{entry['wide_multiplier_pct']:.0f} %",
                f"{entry['l2_pct']:.0f} %",
                f"{entry['dram_bytes_per_s'] / 1e12:.1f}",
                entry["most_waited_for"].replace("_", " "),
            ]
            for entry in result["profile"]
            if entry["us"] >= SHOWN
        ]
        header = ["run", "kernel", "us", "registers", "warps", "issue", "wide multiplier", "L2", "DRAM TB/s"]
        text += table([*header, "mostly waits for"], rows) + machine(result | {"commit": result["profile_commit"]})
    return text or "Not recorded.\n"


SECTIONS: dict[str, Callable[[], str]] = {
    "gpu-ceilings": ceilings,
    "gpu-modules": modules,
    "gpu-transforms": transforms,
    "gpu-sums": sums,
    "gpu-proofs": proofs,
    "gpu-profile": profile,
}
