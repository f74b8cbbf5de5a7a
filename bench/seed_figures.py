"""The table of the classic layout on a GPU in docs/teardown.md, from docs/data/seed (bench/gpu_seed.py)."""

from collections.abc import Callable

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
                f"{row['inner_s']:.2f}",
                f"{row['wrapper_s']:.2f}",
                f"{row['teardown_s']:.3f}",
                f"{row['reclaimed_s']:.2f}",
                f"{row['peak_rss_bytes'] / 2**30:.1f}",
            ]
            for row in result["rows"]
        ]
        header = ["policy", "circuits", "GiB", "inner s", "wrapper s", "teardown s", "given back s", "peak GiB"]
        text += table(header, rows)
        text += (
            f"\n{result['curve']}, domain 2^{result['log_domain']}, {result['device']}, {result['cores']} cores, "
            f"{result['memory_gib']} GiB, 4 KiB pages; one run of each, every proof verified, the same bytes under "
            f"every policy; commit {result['commit']}, {result['date']}.\n"
        )
    return text or "Not recorded.\n"


SECTIONS: dict[str, Callable[[], str]] = {"gpu-seed": seed}
