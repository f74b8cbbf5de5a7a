"""The table of the classic layout on a GPU in docs/teardown.md, from docs/data/seed (bench/gpu_seed.py)."""

from collections.abc import Callable
from typing import Any

from figures import load, table


def seed() -> str:
    """Every policy, and the product beside it."""
    text = ""
    for result in load("seed"):
        rows = [
            [
                row["policy"],
                str(row["circuits"]),
                f"{row['bytes'] / 2**30:.1f}",
                f"{row['kernels_s']:.2f}" if "kernels_s" in row else "",
                f"{row['inner_s']:.2f}",
                f"{row['wrapper_s']:.2f}",
                f"{row['teardown_s']:.3f}",
                f"{row['reclaimed_s']:.2f}",
                f"{row['peak_rss_bytes'] / 2**30:.1f}",
            ]
            for row in result["rows"]
        ]
        header = [
            "policy",
            "circuits",
            "GiB",
            "kernels s",
            "inner s",
            "wrapper s",
            "teardown s",
            "given back s",
            "peak GiB",
        ]
        text += _waits(result["rows"]) + table(header, rows)
        text += (
            f"\n{result['curve']}, domain 2^{result['log_domain']}, {result['device']}, {result['cores']} cores, "
            f"{result['memory_gib']} GiB, 4 KiB pages; one run of each, every proof verified, the same bytes under "
            f"every policy; commit {result['commit']}, {result['date']}.\n"
        )
    return text or "Not recorded.\n"


def _waits(rows: list[dict[str, Any]]) -> str:
    """What the largest call with the baseline is made of."""
    calls = [row for row in rows if row["policy"] == "sync"]
    if not calls:
        return ""
    row = max(calls, key=lambda row: row["bytes"])
    kernels = f", of which kernels take {row['kernels_s']:.0f} s" if "kernels_s" in row else ""
    return (
        f"With {row['bytes'] / 2**30:.0f} GiB of vectors the caller waits {row['teardown_s']:.0f} s after "
        f"{row['inner_s']:.0f} s of work{kernels}, in destructors.\n\n"
    )


SECTIONS: dict[str, Callable[[], str]] = {"gpu-seed": seed}
