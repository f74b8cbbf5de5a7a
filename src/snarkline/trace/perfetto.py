"""A timeline in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open.

Threads and devices are lanes; teardown is a slice of its own inside its span; RSS, arena bytes and pending releases are
counter tracks. Times are microseconds from the timeline's beginning.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from .model import Span
from .timeline import Timeline

PID = 1


def trace_events(timeline: Timeline) -> dict[str, Any]:
    """The JSON-ready document."""
    origin = timeline.root.begin.ns
    events = _lane_names(timeline)
    for s in timeline.spans:
        events.append(_slice(s, lane_of(s), s.name, s.begin.ns - origin, s.end.ns - origin, _arguments(s)))
        if s.last is not None:
            arguments = {"released_bytes": s.released_bytes} if s.released_bytes is not None else {}
            events.append(_slice(s, lane_of(s), "teardown", s.last.ns - origin, s.end.ns - origin, arguments))
    for c in timeline.counters:
        at = (c.ns - origin) / 1e3
        if c.rss is not None:
            events.append(_counter("RSS", at, c.rss))
        events.append(_counter("arena bytes", at, c.arena_live))
        events.append(_counter("pending releases", at, c.release_pending))
    return {"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"name": timeline.name}}


def lane_of(s: Span) -> str:
    """The lane that shows the span: a device's name or a thread's id."""
    return s.lane if s.lane is not None else str(s.thread)


def lane_names(timeline: Timeline) -> dict[str, str]:
    """Lanes in order of their first span, with what people call them."""
    names: dict[str, str] = {}
    for s in timeline.spans:
        lane = lane_of(s)
        names.setdefault(lane, s.lane if s.lane is not None else timeline.threads.get(s.thread, f"thread {lane}"))
    return names


def _lane_names(timeline: Timeline) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "args": {"name": timeline.name}}
    ]
    for order, (lane, name) in enumerate(lane_names(timeline).items()):
        tid = _tid(lane)
        events.append({"ph": "M", "name": "thread_name", "pid": PID, "tid": tid, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": PID, "tid": tid, "args": {"sort_index": order}})
    return events


def _tid(lane: str) -> int:
    """Threads keep their id; a device gets a number beyond all threads'."""
    return int(lane) if lane.isdecimal() and len(lane) < 20 else (1 << 30) + crc32(lane.encode()) % (1 << 20)


def _slice(s: Span, lane: str, name: str, begin_ns: int, end_ns: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": s.kind,
        "pid": PID,
        "tid": _tid(lane),
        "ts": begin_ns / 1e3,
        "dur": (end_ns - begin_ns) / 1e3,
        "args": arguments,
    }


def _arguments(s: Span) -> dict[str, Any]:
    arguments: dict[str, Any] = dict(s.to_json().get("attributes", {}))
    for key in ("bytes", "items", "error"):
        if getattr(s, key) is not None:
            arguments[key] = getattr(s, key)
    if s.kind != "device":
        arguments |= {
            "user_ms": s.user_s * 1e3,
            "system_ms": s.system_s * 1e3,
            "faults": s.faults,
            "switches": s.switches,
        }
    return arguments


def _counter(name: str, at_us: float, value: int) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": PID, "ts": at_us, "args": {"bytes": value}}
