"""Tables and the picture of docs/teardown.md and docs/memory.md, from docs/data/release/MACHINE.json."""

from typing import Any

from figures import load, table

from snarkline.memory.fit import fits

NONE = "Not recorded.\n"

# What `recycle` and `detached` must reach, in ms, and as a share of the inner function's time.
TEARDOWN_MS, BEYOND, P999_MS, LONGEST_MS = 1.0, 0.004, 3.0, 10.0

Machine = dict[str, Any]


def machines(section: str) -> list[Machine]:
    return [result for result in load("release") if section in result]


def source(machine: Machine, section: str) -> str:
    """One line under a table: where its figures come from."""
    recorded = machine[section]
    return (
        f"\n`{recorded['command']}` on {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux "
        f"{machine['kernel']}, Python {machine['python']}; commit {recorded['commit']}, {machine['date']}, load "
        f"average {recorded['load_average']} before.\n"
    )


def label(row: dict[str, Any]) -> str:
    return row["policy"] + (", wiped" if row["secret"] and "layout" not in row else "")


def beyond(row: dict[str, Any]) -> float:
    return float((row["wrapper_s"] - row["inner_s"]) / row["inner_s"])


def stalls(row: dict[str, Any]) -> list[str]:
    return [
        f"{row[f'stall_{name}_p999_s'] * 1e3:.2f} / {row[f'stall_{name}_max_s'] * 1e3:.2f}"
        for name in ("map", "python")
    ]


def cells(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['inner_s']:.2f}",
        f"{row['teardown_s'] * 1e3:.2f}",
        f"{beyond(row):.2%}",
        f"{row['reclaimed_s'] * 1e3:.1f}",
        *stalls(row),
    ]


COLUMNS = [
    "inner s",
    "teardown ms",
    "wrapper beyond inner",
    "given back ms",
    "mapping stall ms",
    "Python stall ms",
]


def all_rows(machine: Machine) -> list[dict[str, Any]]:
    """The rows of all policies; of the controls those beside the policies that have bounds."""
    rows = list(machine["policies"]["rows"])
    rows += [row for row in machine.get("others", {"rows": []})["rows"] if row["policy"] != "control"]
    order = ["control", "sync", "clear", "clear-capacity", "madvise", "madvise-free", "numpy", "detached", "recycle"]
    return sorted(rows, key=lambda row: order.index(row["policy"]))


def summary() -> str:
    """Teardown of both sides, a column for each machine."""
    found = machines("policies")
    if not found:
        return NONE
    columns = [{(label(row), row["side"]): row for row in all_rows(machine)} for machine in found]
    header = ["policy"]
    for machine, column in zip(found, columns, strict=True):
        gib = column["control", "both"]["bytes"] / 2**30
        header.append(f"{machine['cores']} cores, {machine['memory_gib']:.0f} GiB: teardown of {gib:.1f} GiB, ms")
    rows = []
    for name, side in columns[0]:
        if side == "both":
            rows.append(
                [name, *(f"{c[name, side]['teardown_s'] * 1e3:.2f}" if (name, side) in c else "" for c in columns)]
            )
    return table(header, rows)


def policies() -> str:
    """Every policy on every side, and the control, machine by machine."""
    parts = []
    for machine in machines("policies"):
        rows = [[label(row), row["side"], *cells(row)] for row in all_rows(machine)]
        text = table(["policy", "side", *COLUMNS], rows) + source(machine, "policies")
        parts.append(text + (source(machine, "others") if "others" in machine else ""))
    return "\n".join(parts) or NONE


def bounds() -> str:
    """What must be reached, and the worst of all sides."""
    parts = []
    for machine in machines("policies"):
        rows = machine["policies"]["rows"]
        control = {row["side"]: row for row in rows if row["policy"] == "control"}
        ours = [row for row in rows if row["policy"] != "control"]
        found: list[tuple[str, float, float, str]] = [
            ("teardown", max(r["teardown_s"] for r in ours) * 1e3, TEARDOWN_MS, "ms"),
            ("wrapper beyond inner", max(beyond(r) for r in ours) * 100, BEYOND * 100, "%"),
        ]
        for name, title in (("map", "mapping stall"), ("python", "Python stall")):
            for what, shown, bound in (("p999", "99.9th percentile", P999_MS), ("max", "longest", LONGEST_MS)):
                key = f"stall_{name}_{what}_s"
                worst = max(r[key] - control[r["side"]][key] for r in ours) * 1e3
                found.append((f"{title}, {shown}, above the control's", worst, bound, "ms"))
        lines = [[what, f"{bound:g} {unit}", f"{value:.2f} {unit}", "yes" if value <= bound else "NO"]
                 for what, value, bound, unit in found]  # fmt: skip
        parts.append(
            table(
                ["`detached` and `recycle`, the worst of all sides, wiped or not", "at most", "found", "reached"], lines
            )
            + source(machine, "policies")
        )
    return "\n".join(parts) or NONE


def report() -> str:
    """The timelines of the baseline."""
    return "\n".join(f"```\n{m['report']['text'].rstrip()}\n```\n" for m in machines("report")) or NONE


def sweep() -> str:
    """Teardown against bytes: the fitted lines."""
    parts = []
    for machine in machines("sweep"):
        rows = [
            [
                line.policy,
                line.pages,
                f"{line.slope_s_per_gib * 1e3:.2f}",
                f"{line.low_s_per_gib * 1e3:.2f} to {line.high_s_per_gib * 1e3:.2f}",
            ]
            for line in fits(machine["sweep"]["rows"])
        ]
        header = ["policy", "pages", "ms a GiB", "95 % interval"]
        parts.append(table(header, rows) + source(machine, "sweep"))
    return "\n".join(parts) or NONE


def proofs() -> str:
    """Real proofs in the classic layout."""
    parts = []
    for machine in machines("proofs"):
        recorded = machine["proofs"]
        rows = [[label(row), f"{row['bytes'] / 2**20:.0f}", *cells(row)] for row in recorded["rows"]]
        first = recorded["rows"][0]
        text = (
            f"\n{first['verified']} proofs a run over {recorded['curve']}, domain {recorded['domain']:,}, backend "
            f"{recorded['backend']}: every one verified, the same bytes under every policy.\n"
        )
        parts.append(table(["policy", "MiB", *COLUMNS], rows) + text + source(machine, "proofs"))
    return "\n".join(parts) or NONE


def exits() -> str:
    """The end of a process with a full backlog."""
    meaning = {
        "left": "nothing was dropped: the kernel takes all back",
        "detached": "everything was dropped just before and is pending",
        "detached, secret": "the same, all of it secret",
        "drained": "the process waits for the release thread first",
    }
    parts = []
    for machine in machines("exits"):
        rows = [
            [meaning[row["case"]], f"{row['bytes'] / 2**30:.0f}", f"{row['exit_s']:.2f}"]
            for row in machine["exits"]["rows"]
        ]
        header = ["at the last statement", "GiB of 4 KiB pages", "s until the process is gone"]
        parts.append(table(header, rows) + source(machine, "exits"))
    return "\n".join(parts) or NONE


# ---- the picture ----

BAR, GAP, LEFT, WIDTH = 22, 10, 150, 520
STYLE = (
    "text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#666}.work{fill:#9db4c8}.tail{fill:#c8442c}"
    ".ground{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#999}.work{fill:#4d6a84}"
    ".tail{fill:#e8654c}.ground{fill:#161616}}"
)


def picture() -> str:
    """An SVG: the call as its caller sees it, under each policy, a panel for each machine."""
    shapes: list[str] = []
    y = 0
    for machine in machines("policies"):
        y = _panel(shapes, machine, y + 24)
    height = y + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 170} {height}" role="img" '
        f'aria-label="Duration of a call under each release policy">\n<style>{STYLE}</style>\n'
        f'<rect class="ground" width="100%" height="100%"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def _panel(shapes: list[str], machine: Machine, y: int) -> int:
    rows = [row for row in all_rows(machine) if row["side"] == "both"]
    # The work is the same for all: what follows it is what differs. Most of a call's time before is the first touch.
    work = 0.5
    ends = [work + _waits(row) for row in rows]
    scale = WIDTH / max(ends)
    gib = rows[0]["bytes"] / 2**30
    where = f"{machine['cores']} cores, {machine['memory_gib']:.0f} GiB"
    title = f"{where}: a call that works for {work} s and frees {gib:.1f} GiB"
    shapes.append(f'<text x="8" y="{y}">{title}</text>')
    y += 14
    for row in rows:
        waits = _waits(row)
        shapes.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{label(row)}</text>')
        worked, waited = work * scale, max(waits * scale, 0.5)
        shapes.append(f'<rect class="work" x="{LEFT}" y="{y}" width="{worked:.1f}" height="{BAR}"/>')
        shapes.append(f'<rect class="tail" x="{LEFT + worked:.1f}" y="{y}" width="{waited:.1f}" height="{BAR}"/>')
        shown = f"{waits * 1e3:.0f} ms" if waits >= 0.01 else f"{waits * 1e3:.2f} ms"
        shapes.append(f'<text class="small" x="{LEFT + worked + waited + 6:.1f}" y="{y + 15}">{shown}</text>')
        y += BAR + GAP
    shapes.append(
        f'<text class="small" x="{LEFT}" y="{y + 4}">blue: the work. red: what the caller waits for memory to be given '
        f"back, before or after return.</text>"
    )
    return y + 12


def _waits(row: dict[str, Any]) -> float:
    """Seconds of the caller's time that a release takes, also where an explicit one takes them before `return`."""
    early = row["reclaimed_s"] if row["policy"] == "clear-capacity" else 0.0
    return float(max(row["teardown_s"], early))


SECTIONS = {
    "release-summary": summary,
    "release-bounds": bounds,
    "release-policies": policies,
    "release-report": report,
    "release-sweep": sweep,
    "release-proofs": proofs,
    "release-exit": exits,
}
