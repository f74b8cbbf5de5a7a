"""A timeline as one HTML file that needs nothing else: Gantt by thread and device, counter tracks, the report."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

from .perfetto import lane_names, lane_of
from .report import duration, rows
from .timeline import Timeline


def page(timeline: Timeline) -> str:
    """The HTML text."""
    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    # "<" is the one character that could end the script element.
    data = json.dumps(_data(timeline), separators=(",", ":")).replace("<", "\\u003c")
    return (
        template.replace("{{title}}", html.escape(timeline.name))
        .replace("{{wall}}", duration(timeline.wall_s))
        .replace("{{report}}", _report(timeline))
        .replace("{{data}}", data)
    )


def _data(timeline: Timeline) -> dict[str, Any]:
    """Times in microseconds from the beginning; lanes and spans as short lists."""
    origin = timeline.root.begin.ns
    names = lane_names(timeline)
    lanes = {lane: i for i, lane in enumerate(names)}
    spans = []
    for s in timeline.spans:
        facts = dict(s.to_json().get("attributes", {}))
        facts |= {k: getattr(s, k) for k in ("bytes", "items", "error", "released_bytes") if getattr(s, k) is not None}
        if s.kind != "device":
            facts |= {"user": duration(s.user_s), "system": duration(s.system_s), "faults": s.faults}
            facts |= {"switches": s.switches}
        last = None if s.last is None else (s.last.ns - origin) / 1e3
        spans.append(
            [lanes[lane_of(s)], s.name, (s.begin.ns - origin) / 1e3, (s.end.ns - origin) / 1e3, last, s.kind, facts]
        )
    counters = [[(c.ns - origin) / 1e3, c.rss, c.arena_live, c.release_pending] for c in sorted(timeline.counters)]
    return {
        "lanes": list(names.values()),
        "spans": spans,
        "counters": counters,
        "end": (timeline.root.end.ns - origin) / 1e3,
    }


def _report(timeline: Timeline) -> str:
    out = []
    for r in rows(timeline):
        share = "" if r.share is None else f"{100 * r.share:.1f} %"
        style = "ghost" if r.mark == "<- ghost" else r.kind
        note = " ".join(part for part in (r.note, r.mark) if part)
        out.append(
            f'<tr class="{style}"><td style="padding-left:{0.4 + 1.2 * r.depth:.1f}em">{html.escape(r.name)}</td>'
            f"<td>{duration(r.seconds)}</td><td>{share}</td><td>{html.escape(note)}</td></tr>"
        )
    return "\n".join(out)
