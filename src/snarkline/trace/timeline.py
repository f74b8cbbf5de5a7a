"""The timeline: collects the spans that end while it is open, and says who owned its time."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from .span import RECORDER, span


@dataclass(frozen=True)
class Span:
    """A finished span. Moments are CLOCK_MONOTONIC nanoseconds; CPU, faults and switches are its thread's."""

    id: int
    parent: int
    name: str
    thread: int
    start_ns: int
    end_ns: int
    user_ns: int = 0
    system_ns: int = 0
    faults: int = 0
    switches: int = 0
    bytes: int | None = None
    items: int | None = None
    error: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        return (self.end_ns - self.start_ns) * 1e-9


class Timeline:
    """Spans of everything that runs while the timeline is open, in every thread of the process.

    with Timeline("prove") as timeline:
        ...
    print(timeline.report())
    """

    def __init__(self, name: str = "timeline") -> None:
        self.name = name
        self.spans: list[Span] = []
        self.start_ns = self.end_ns = 0

    def __enter__(self) -> Timeline:
        self.start_ns = time.monotonic_ns()
        RECORDER.sinks.append(self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        RECORDER.sinks.remove(self._take)
        self.end_ns = time.monotonic_ns()
        self.spans.sort(key=lambda s: s.start_ns)

    def _take(self, s: span) -> None:
        (t0, r0), (t1, r1) = s.begin, s.end
        self.spans.append(
            Span(
                id=s.id,
                parent=s.parent,
                name=s.name,
                thread=s.thread,
                start_ns=t0,
                end_ns=t1,
                user_ns=int((r1.ru_utime - r0.ru_utime) * 1e9),
                system_ns=int((r1.ru_stime - r0.ru_stime) * 1e9),
                faults=r1.ru_minflt + r1.ru_majflt - r0.ru_minflt - r0.ru_majflt,
                switches=r1.ru_nvcsw + r1.ru_nivcsw - r0.ru_nvcsw - r0.ru_nivcsw,
                bytes=s.bytes,
                items=s.items,
                error=s.error,
                attributes=dict(s.attributes),
            )
        )

    @property
    def wall_s(self) -> float:
        return (self.end_ns - self.start_ns) * 1e-9

    def report(self) -> str:
        """The spans as a table, children below their parents."""
        lines = [f"{self.name:<40} {self.wall_s:9.3f} s"]
        self._lines(0, 1, lines)
        return "\n".join(lines)

    def _lines(self, parent: int, depth: int, lines: list[str]) -> None:
        known = {s.id for s in self.spans}
        for s in self.spans:
            if s.parent == parent or (parent == 0 and s.parent not in known):
                label = "  " * depth + s.name
                lines.append(f"{label:<40} {s.wall_s:9.3f} s  {100 * s.wall_s / max(self.wall_s, 1e-9):5.1f} %")
                self._lines(s.id, depth + 1, lines)

    def to_json(self) -> dict[str, Any]:
        """The timeline as JSON-ready values; `from_json` reads them back."""
        return {
            "name": self.name,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "spans": [asdict(s) for s in self.spans],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Timeline:
        timeline = cls(data["name"])
        timeline.start_ns, timeline.end_ns = data["start_ns"], data["end_ns"]
        timeline.spans = [Span(**s) for s in data["spans"]]
        return timeline

    def save(self, path: str | Path) -> None:
        """Writes the timeline as JSON."""
        Path(path).write_text(json.dumps(self.to_json()), encoding="utf-8")
