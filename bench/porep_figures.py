"""The figures of docs/porep.md."""

from collections.abc import Callable
from typing import Any

from figures import load, machine, table


def whole() -> str:
    """Whole processes: loading the parameters, and the proof."""
    rows = []
    results = load("porep")
    for result in results:
        m = result["median"]
        verified = "yes" if all(s["verified"] for s in result["samples"]) else "NO"
        cells = [f"{m['load_s']:.1f}", f"{m['proof_s']:.1f}", f"{m['cpu_s']:.1f}", f"{m['peak_mib']:.0f}", verified]
        rows.append([result["sector"], *cells])
    header = ["sector", "parameters s", "proof s", "CPU s", "peak MiB", "proofs verify"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def policies() -> str:
    """Inside and outside of a call, for each release policy and for the product's path."""
    results = load("porep")
    rows = [_row(row, result["circuits"]) for result in results for row in result["rows"]]
    header = ["layout", "policy", "circuits", "kernels s", "inner s", "wrapper s", "teardown ms"]
    header += ["wrapper beyond inner", "whole s", "peak GiB"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def _row(row: dict[str, Any], circuits: int) -> list[str]:
    beyond = (row["wrapper_s"] - row["inner_s"]) / row["inner_s"]
    seconds = [f"{row[name]:.2f}" for name in ("kernels_s", "inner_s", "wrapper_s")]
    teardown, peak = f"{row['teardown_s'] * 1e3:.1f}", f"{row['peak_rss_bytes'] / 2**30:.1f}"
    cells = [row["layout"], row["policy"], str(circuits), *seconds, teardown, f"{beyond:.2%}"]
    return [*cells, f"{row['whole_s']:.2f}", peak]


STAGES = {
    "vanilla proofs checked": ("check vanilla proofs",),
    "synthesis": ("synthesis",),
    "witness checked": ("check witness", "check constraints"),
    "a, b, c": ("evaluate",),
    "quotient and sums": ("quotient", "commit"),
    "blinded, self-checked": ("finish",),
}


def resident() -> str:
    """A prover that holds its key: the whole, and its stages."""
    results = load("porep-resident")
    rows = []
    for result in results:
        seconds = [sum(result["stages_s"][name] for name in names) for names in STAGES.values()]
        verified = "yes" if result["verified"] else "NO"
        cells = [f"{s * 1e3:.1f}" for s in (result["proof_s"], *seconds)]
        rows.append([result["sector"], result["note"], *cells, verified])
    header = ["sector", "where", "whole ms", *STAGES, "verified"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


SECTIONS: dict[str, Callable[[], str]] = {
    "porep": whole,
    "porep-release": policies,
    "porep-resident": resident,
}
