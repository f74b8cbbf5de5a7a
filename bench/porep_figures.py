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
    header = ["layout", "policy", "circuits", "kernels inside s", "wrapper s", "teardown ms", "wrapper beyond inner"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def _row(row: dict[str, Any], circuits: int) -> list[str]:
    beyond = (row["wrapper_s"] - row["inner_s"]) / row["inner_s"]
    seconds = [f"{row['inner_s']:.2f}", f"{row['wrapper_s']:.2f}", f"{row['teardown_s'] * 1e3:.1f}"]
    return [row["layout"], row["policy"], str(circuits), *seconds, f"{beyond:.2%}"]


SECTIONS: dict[str, Callable[[], str]] = {"porep": whole, "porep-release": policies}
