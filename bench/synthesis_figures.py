"""Tables of docs/performance.md from docs/data/synthesis."""

from collections.abc import Callable
from typing import Any

from figures import load, table


def _machine(result: dict[str, Any]) -> str:
    return (
        f"\n`{result['command']}`: {result['cpu']}, {result['cores']} cores, {result['memory_gib']} GiB, load average "
        f"{result['load_average']}; commit {result['commit']}, {result['date']}.\n"
    )


def synthesis() -> str:
    """Every way at every size; ratios are to the templates' witness and a, b, c together."""
    text = ""
    for result in load("synthesis"):
        rows = []
        for row in result["rows"]:
            same = [r for r in result["rows"] if (r["circuit"], r["log_size"]) == (row["circuit"], row["log_size"])]
            base = next(r for r in same if r["path"] == "templates")
            rows.append(
                [
                    f"{row['circuit']}, 2^{row['log_size']}" if row is same[0] else "",
                    row["path"],
                    f"{row['witness_s'] * 1e3:.2f}" if row["witness_s"] else "",
                    f"{row['abc_s'] * 1e3:.1f}",
                    f"{row['ns_per_constraint']:.1f}",
                    f"{row['ns_per_constraint'] / base['ns_per_constraint']:.1f}",
                    f"{row['peak_bytes'] / row['vector_bytes']:.2f}",
                    f"{row['structure_bytes'] / 2**20:.1f}",
                    f"{row['allocations']:,}",
                    f"{row['bytes_freed'] / 2**20:,.0f}",
                ]
            )
        header = ["circuit", "path", "witness ms", "a, b, c ms", "ns a constraint", "over templates"]
        header += ["peak over w, a, b, c", "structure MiB", "allocations", "freed MiB"]
        text += table(header, rows) + _machine(result)
    return text or "Not recorded.\n"


def synthesis_proofs() -> str:
    """Whole proofs."""
    text = ""
    for result in load("synthesis"):
        rows = [
            [row["path"], *(f"{row[f'{name}_s']:.3f}" for name in ("synthesis", "wrapper", "teardown", "total"))]
            for row in result["proofs"]
        ]
        if rows:
            first = result["proofs"][0]
            header = [f"{first['n_constraints']:,} constraints", "synthesis s", "wrapper s", "teardown s", "total s"]
            text += table(header, rows) + _machine(result)
    return text or "Not recorded.\n"


SECTIONS: dict[str, Callable[[], str]] = {"synthesis": synthesis, "synthesis-proofs": synthesis_proofs}
