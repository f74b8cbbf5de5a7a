"""The GPU's figures of the docs, from docs/data/gpu (bench/record_gpu.py)."""

from collections.abc import Callable
from typing import Any

from figures import load, table

CURVES = {"bls12_381": "BLS12-381", "bn254": "BN254"}
WITNESSES = {"random": "random", "bits": "nine wires in ten are bits"}
SHOWN = 100
"""Kernels that take fewer microseconds are left out of the profile."""


def results() -> list[dict[str, Any]]:
    """The records; one whose measurement was cut short lacks its last sections."""
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
    """How long the kernels take to compile and to load."""
    lines = []
    for result in load("kernels"):
        seconds = result["core_seconds"]
        slowest = max(seconds, key=seconds.__getitem__)
        lines.append(
            f"For sm_{result['architecture']} {len(seconds)} modules, {sum(seconds.values()):.0f} core-seconds "
            f"together, {slowest} the longest with {seconds[slowest]:.0f} (NVRTC {result['nvrtc']}, {result['cpu']}; "
            f"commit {result['commit']}, {result['date']}).\n"
        )
    lines += [
        f"Loading those of a curve takes {max(result['load_seconds'].values()):.2f} s ({result['device']}).\n"
        for result in results()
        if "load_seconds" in result
    ]
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


def structured() -> str:
    """SHA-256 chains from packed witnesses."""
    text = ""
    for result in results():
        rows = [
            [
                f"{row['constraints']:,}",
                f"{row['packed_mb']:.1f}",
                *(significant(row[f"{name}_ms"]) for name in ("products", "wires", "upload", "all")),
                *(significant(row[f"{name}_ms"]) for name in ("cpu", "cpu_upload", "flat")),
            ]
            for row in result.get("structured", ())
        ]
        header = ["constraints", "packed MB", "a, b, c ms", "wires ms", "upload ms", "all ms", "on the CPU ms"]
        text += table([*header, "and uploaded ms", "row by row ms"], rows) + machine(result) if rows else ""
    return text or "Not recorded.\n"


def programs() -> str:
    """Witness programs from the values that are given. Records without circuits are of Poseidon trees."""
    text = ""
    for result in results():
        proofs = {(row.get("circuit"), row["log_n"]): row for row in result.get("program_proofs", ())}
        rows = [
            [
                row.get("circuit", "Poseidon tree"),
                f"{row['constraints']:,}",
                *(significant(row[f"{name}_ms"]) for name in ("program", "check")),
                *(significant(row[f"cpu_{name}_ms"]) for name in ("program", "check", "upload")),
                *(significant(proofs[row.get("circuit"), row["log_n"]][f"{way}_ms"]) for way in ("device", "host")),
            ]
            for row in result.get("programs", ())
            if (row.get("circuit"), row["log_n"]) in proofs
        ]
        header = ["circuit", "constraints", "program ms", "check ms", "program on the host ms", "check on the host ms"]
        header += ["its upload ms", "whole proof ms", "with the host's program ms"]
        text += table(header, rows) + machine(result) if rows else ""
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


def short() -> str:
    """Whole proofs, for a reader with little time."""
    text = ""
    for result in results():
        rows = [
            [f"{CURVES[row['curve']]}, 2^{row['log_n']}", WITNESSES[row["witness"]], f"{row['proof_ms']:.0f}"]
            for row in result["proofs"]
        ]
        text += table(["curve, constraints", "witness", "ms a proof, self-check included"], rows) + machine(result)
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


def notes() -> str:
    """What the profile says, kernel by kernel."""
    text = ""
    for result in results():
        found = {(entry["run"], entry["kernel"]): entry for entry in result["profile"]}
        additions = _span(found, "sum, BLS12-381", ("first_additions", "later_additions"), "wide_multiplier_pct")
        registers = _span(found, "sum, BLS12-381", ("first_additions", "later_additions"), "registers")
        loads = _span(found, "sum, BLS12-381", ("first_denominators",), "l2_pct")
        narrow = _span(found, "sum, BN254", ("first_denominators",), "l2_pct")
        parting, sorting = (found.get(("sum, BLS12-381", k)) for k in ("partition_digits", "sort_segments"))
        passes = _span(found, "transform, BLS12-381", ("ntt_forward", "ntt_forward_last"), "wide_multiplier_pct")
        top = found.get(("sum, BLS12-381", "inverse_top"))
        lines = []
        if additions and registers:
            lines.append(
                f"`additions` keep the multiplier busy for {additions} % of the time over 381 bits. With {registers} "
                "registers a thread there are few warps a scheduler, which do not always hide the latencies between "
                "dependent instructions (`wait`)."
            )
        if loads and narrow:
            lines.append(
                "`first_denominators` reads one coordinate of each of two points, at random addresses, and makes one "
                f"product of them: the second-level cache works at {loads} % of what it can, over 254 bits at "
                f"{narrow} %. There a product takes less than half the time but points are two thirds of the size. "
                "Denominators are bound by memory on both curves."
            )
        if parting and sorting:
            lines.append(
                "The sort is bound by the memory and by what its blocks wait for between two phases: "
                f"`partition_digits` moves {parting['dram_bytes_per_s'] / 1e12:.1f} TB/s and `sort_segments` "
                f"{sorting['dram_bytes_per_s'] / 1e12:.1f}."
            )
        if top:
            lines.append(
                f"`inverse_top` is one inversion, which all else waits for: up to {top['us']:.0f} us a round. With the "
                "launches of a round it bounds small sums."
            )
        if passes:
            lines.append(
                f"The passes of a transform keep the multiplier busy for {passes} % of the time; the rest is barriers, "
                "and loads and stores at either end of a tile."
            )
        text += "".join(f"* {line}\n" for line in lines)
    return text or "Not recorded.\n"


def _span(found: dict[tuple[str, str], dict[str, Any]], run: str, kernels: tuple[str, ...], metric: str) -> str:
    """From the least to the greatest among those kernels that are there."""
    values = sorted({round(found[run, kernel][metric]) for kernel in kernels if (run, kernel) in found})
    return " to ".join(str(value) for value in dict.fromkeys((values[0], values[-1]))) if values else ""


SECTIONS: dict[str, Callable[[], str]] = {
    "gpu-ceilings": ceilings,
    "gpu-modules": modules,
    "gpu-transforms": transforms,
    "gpu-structured": structured,
    "gpu-programs": programs,
    "gpu-sums": sums,
    "gpu-proofs": proofs,
    "gpu-short": short,
    "gpu-profile": profile,
    "gpu-profile-notes": notes,
}
