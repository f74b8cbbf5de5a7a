"""A timeline as a table: who owned the time, what was torn down, what nobody owned and why.

    gpu_prove            36.20 s   wrapper
      kernels            26.10 s   72.1 %
      teardown            9.98 s   27.6 %   released 37.0 GiB on this thread, 92 % system time   <- ghost
      unattributed        0.12 s    0.3 %

Spans of one name below one parent are one line. Shares are of the parent's time; children on several threads may add
up to more than all of it.
"""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .gaps import FLAG_NS, FLAG_SHARE, Evidence, Gap, Ledger, find_gaps
from .model import Span
from .timeline import Timeline

if TYPE_CHECKING:
    from rich.table import Table

GHOST_FLOOR_S = 0.001
"""A teardown is called a ghost above 10 ms, or above 1 % of its call where that is no less than this."""


NO_BREAK = "\N{NO-BREAK SPACE}"

NARROWEST = 24
"""Columns that a folded note gets at least."""


@dataclass(frozen=True)
class Row:
    """A line of the report. `kind` is span, teardown or gap."""

    depth: int
    kind: str
    name: str
    seconds: float
    share: float | None
    note: str = ""
    mark: str = ""


def rows(timeline: Timeline, min_share: float = 0.0) -> list[Row]:
    """The lines of the report, parents before children; those under `min_share` of the whole time are left out."""
    return [row for row in _Rows(timeline).rows if row.seconds >= min_share * timeline.wall_s]


class _Rows:
    def __init__(self, timeline: Timeline) -> None:
        self._children = timeline.children()
        self._ledger = Ledger(timeline)
        self._gaps = find_gaps(timeline, self._ledger)
        self.rows: list[Row] = []
        self._add([timeline.root], 0, None)

    def _add(self, group: list[Span], depth: int, parent_s: float | None) -> None:
        seconds = sum(s.wall_s for s in group)
        share = None if parent_s is None else seconds / parent_s if parent_s else 0.0
        self.rows.append(Row(depth, "span", group[0].name, seconds, share, self._note(group)))
        groups: dict[tuple[str, str | None], list[Span]] = {}
        for s in group:
            for child in self._children.get(s.id, []):
                groups.setdefault((child.name, child.lane), []).append(child)
        for children in groups.values():
            self._add(children, depth + 1, seconds)
        self._add_teardown(group, depth + 1, seconds)
        self._add_gap([self._gaps[s.id] for s in group if s.id in self._gaps], depth + 1, seconds)

    def _note(self, group: list[Span]) -> str:
        parts = []
        if len(group) > 1:
            parts.append(f"{len(group)} times")
        if any(s.teardown_s is not None for s in group):
            parts.append("wrapper")
        if group[0].lane is not None:
            parts.append(f"on {group[0].lane}")
        elif (threads := len({s.thread for s in group})) > 1:
            parts.append(f"{threads} threads")
        if sizes := [s.bytes for s in group if s.bytes is not None]:
            parts.append(amount(sum(sizes)))
        if counts := [s.items for s in group if s.items is not None]:
            parts.append(f"{sum(counts)} items")
        if taken := sum(s.arena_taken for s in group):
            parts.append(f"took {amount(taken)} from the arena")
        if errors := sorted({s.error for s in group if s.error}):
            parts.append("failed: " + ", ".join(errors))
        return ", ".join(parts)

    def _add_teardown(self, group: list[Span], depth: int, parent_s: float) -> None:
        torn = [s for s in group if s.last is not None]
        if not torn:
            return
        seconds = sum(s.teardown_s or 0.0 for s in torn)
        share = seconds / parent_s if parent_s else 0.0
        ghost = is_ghost(seconds, share)
        evidence = Evidence(0)
        for s in torn:
            if s.last is not None and s.end.ns > s.last.ns:
                evidence += self._ledger.between(s.thread, s.last.ns, s.end.ns)
        note = teardown_note(evidence, sum(s.released_bytes or 0 for s in torn)) if ghost else ""
        self.rows.append(Row(depth, "teardown", "teardown", seconds, share, note, "<- ghost" if ghost else ""))

    def _add_gap(self, gaps: list[Gap], depth: int, parent_s: float) -> None:
        if not gaps:
            return
        seconds = sum(g.wall_s for g in gaps)
        flagged = [g for g in gaps if g.flagged]
        note = ""
        if flagged:
            worst = max(flagged, key=lambda g: g.evidence.wall_ns)
            note = f"likely {worst.likely}: {evidence_note(sum((g.evidence for g in flagged), Evidence(0)))}"
        share = seconds / parent_s if parent_s else 0.0
        self.rows.append(Row(depth, "gap", "unattributed", seconds, share, note, "<- gap" if flagged else ""))


def is_ghost(seconds: float, share: float) -> bool:
    return seconds > FLAG_NS * 1e-9 or (share > FLAG_SHARE and seconds > GHOST_FLOOR_S)


def teardown_note(evidence: Evidence, released_bytes: int) -> str:
    parts = []
    if released_bytes >= 1 << 20:
        parts.append(f"released {amount(released_bytes)} on this thread")
    if evidence.off_ns - evidence.starved_ns > evidence.wall_ns / 2:
        parts.append(f"likely {evidence.cause}")
    elif cpu_ns := evidence.user_ns + evidence.system_ns:
        parts.append(f"{100 * evidence.system_ns / cpu_ns:.0f} % system time")
    if evidence.starved_ns > evidence.wall_ns / 5:
        parts.append(f"{100 * min(1.0, evidence.starved_ns / evidence.wall_ns):.0f} % waiting for a processor")
    return ", ".join(parts)


def evidence_note(e: Evidence) -> str:
    """What speaks for the cause, in a few words."""
    wall = max(1, e.wall_ns)
    parts = [f"{100 * min(1.0, (e.user_ns + e.system_ns) / wall):.0f} % CPU"]
    if e.system_ns * 10 > wall:
        parts.append(f"{100 * min(1.0, e.system_ns / wall):.0f} % system time")
    if e.starved_ns * 5 > wall:
        times = "once" if e.involuntary == 1 else f"{e.involuntary} times"
        taken = f" (taken away {times})" if e.involuntary else ""
        parts.append(f"{100 * min(1.0, e.starved_ns / wall):.0f} % waiting for a processor{taken}")
    if e.rss_fell >= 1 << 20:
        parts.append(f"RSS fell {amount(e.rss_fell)}")
    if e.faults >= 100:
        parts.append(f"{e.faults} faults")
    if e.io_bytes >= 1 << 20:
        parts.append(f"{amount(e.io_bytes)} read or written")
    if e.device_ns * 10 > wall:
        parts.append(f"device busy {100 * min(1.0, e.device_ns / wall):.0f} %")
    if e.driver_ns * 10 > wall:
        parts.append(f"{duration(e.driver_ns * 1e-9)} in driver calls")
    return ", ".join(parts)


def render(timeline: Timeline, min_share: float = 0.0, width: int | None = None) -> str:
    """The report as plain text (see `Timeline.report`)."""
    columns = shutil.get_terminal_size((0, 0)).columns if width is None else width
    lines = rows(timeline, min_share)
    name_width = max(len(r.name) + 2 * r.depth for r in lines) + 2
    text = []
    for r in lines:
        share = "" if r.share is None else f"{100 * r.share:5.1f} %"
        name = "  " * r.depth + r.name
        figures = f"{name:<{name_width}}{duration(r.seconds):>9}   {share:>7}   "
        text += _with_note(figures, r.note, r.mark, columns)
    if timeline.unfinished:
        some = "a span" if timeline.unfinished == 1 else f"{timeline.unfinished} spans"
        text.append(f"{some} had not ended; what is part of it stands below the timeline itself")
    if timeline.dropped:
        text.append(f"{timeline.dropped} spans were dropped for want of room")
    return "\n".join(text)


def _with_note(figures: str, note: str, mark: str, columns: int) -> list[str]:
    """A line and its note, which goes on below itself where the line is full."""
    line = f"{figures}{note}   {mark}".rstrip()
    if columns == 0 or len(line) <= columns:
        return [line]
    room = max(NARROWEST, columns - len(figures))
    whole = f"{note.replace(' %', NO_BREAK + '%')}   {mark.replace(' ', NO_BREAK)}"
    parts = textwrap.wrap(whole, room, break_on_hyphens=False)
    if not parts:
        return [figures.rstrip()]
    first, *rest = [part.replace(NO_BREAK, " ") for part in parts]
    return [figures + first, *(" " * len(figures) + part for part in rest)]


def table(timeline: Timeline) -> Table:
    """The report as a rich table."""
    from rich.table import Table
    from rich.text import Text

    styles = {"span": "", "teardown": "yellow", "gap": "cyan"}
    grid = Table(box=None, pad_edge=False)
    for title, justify in (("span", "left"), ("time", "right"), ("share", "right")):
        grid.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    grid.add_column("", overflow="fold")
    for r in rows(timeline):
        style = "bold red" if r.mark == "<- ghost" else styles[r.kind]
        share = "" if r.share is None else f"{100 * r.share:.1f} %"
        note = " ".join(part for part in (r.note, r.mark) if part)
        grid.add_row(Text("  " * r.depth + r.name, style=style), duration(r.seconds), share, Text(note, style=style))
    return grid


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 0.001:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.0f} µs"


def amount(n_bytes: int) -> str:
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@dataclass(frozen=True)
class Change:
    """A line of two reports. Seconds are None where a report lacks the line."""

    path: tuple[str, ...]
    before: float | None
    after: float | None

    @property
    def difference(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)


def changes(before: Timeline, after: Timeline) -> list[Change]:
    """The lines of both reports, by the names from the timeline down. Where the timelines' own names differ, the first
    line has both."""
    root = before.name if before.name == after.name else f"{before.name}, {after.name}"
    first, second = _by_path(before, root), _by_path(after, root)
    order = list(first)
    for path in second:
        if path not in first:
            # Behind the last line of the same parent that both have.
            at = max((i for i, p in enumerate(order) if p[: len(path) - 1] == path[:-1]), default=len(order) - 1)
            order.insert(at + 1, path)
    return [Change(path, first.get(path), second.get(path)) for path in order]


def _by_path(timeline: Timeline, root: str) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    path: list[str] = []
    for r in rows(timeline):
        path[r.depth :] = [r.name if r.depth else root]
        found[tuple(path)] = found.get(tuple(path), 0.0) + r.seconds
    return found


def difference_table(before: Timeline, after: Timeline, names: tuple[str, str] | None = None) -> Table:
    """Two reports side by side as a rich table; lines that changed by over 5 % and 1 ms stand out.

    `names` are the heads of the columns, by default the timelines' names.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False)
    grid.add_column("span")
    for title in (*(names or (before.name, after.name)), "difference", ""):
        grid.add_column(Text(title), justify="right", overflow="fold")
    for c in changes(before, after):
        notable = abs(c.difference) > max(0.001, 0.05 * (c.before or 0.0))
        style = ("red" if c.difference > 0 else "green") if notable else "dim"
        share = f"{100 * c.difference / c.before:+.1f} %" if c.before else ""
        sign = "+" if c.difference >= 0 else "-"
        grid.add_row(
            Text("  " * (len(c.path) - 1) + c.path[-1]),
            "" if c.before is None else duration(c.before),
            "" if c.after is None else duration(c.after),
            Text(sign + duration(abs(c.difference)), style=style),
            Text(share, style=style),
        )
    return grid
