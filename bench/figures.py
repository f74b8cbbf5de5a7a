"""What the tables of the docs share: recorded results, tables, and the line that says where figures come from."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs" / "data"


def load(folder: str) -> list[dict[str, Any]]:
    """The results in docs/data/FOLDER, each with the name of its file."""
    return [{"name": path.stem, **json.loads(path.read_text())} for path in sorted((DATA / folder).glob("*.json"))]


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def machine(results: list[dict[str, Any]]) -> str:
    """One line for each machine and commit among the results, with the greatest load that was seen there."""
    loads: dict[str, float] = {}
    for r in results:
        line = f"{r['cpu']}, {r['cores']} cores, {r['memory_gib']} GiB, Python {r['python']}; "
        line += f"commit {r['commit']}, {r['date']}"
        loads[line] = max(loads.get(line, 0), r.get("load_average", 0))
    # A machine that does nothing else has a load of its cores while it is measured.
    lines = [line + (f", load average up to {load:.0f}" if load > 2.5 else "") for line, load in sorted(loads.items())]
    return "\n" + "\n".join(f"Machine: {line}." for line in lines) + "\n"
