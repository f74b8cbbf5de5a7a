"""The timeline: collects the spans that end while it is open, and says who owned its time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from snarkline.errors import FormatError, InputError
from snarkline.native import core
from snarkline.text import check_depth, json_fault

from .device import resolve_device_spans
from .model import KINDS, CounterSample, Moment, Release, Span, WaitSample, check_tree, numbers, texts
from .teardown import BOUNDARY, code_of

FORMAT = "snarkline-timeline-1"
MAX_DEPTH = 64  # a file of ours nests four deep, attributes apart


class Timeline:
    """Spans of everything that runs while the timeline is open, in every thread of the process.

        with Timeline("prove", calls=["app:gpu_prove"]) as timeline:
            ...
        print(timeline.report())

    `calls` names functions (or "module:name") whose calls become spans, with their teardown, without change to their
    code. `sample_ms` is the period of a native thread that looks at what the traced threads wait for and at the
    counters (0: no such thread). With `boundary=False` no teardown is marked and no hook of the interpreter is used.

    Timelines nest: the spans of an inner one are the outer one's as well. A span that is still open in another thread
    when its timeline ends is not in it.
    """

    def __init__(
        self,
        name: str = "timeline",
        *,
        calls: Iterable[Callable[..., Any] | str] = (),
        sample_ms: float = 5.0,
        boundary: bool = True,
    ) -> None:
        self.name = name
        self.spans: list[Span] = []
        self.counters: list[CounterSample] = []
        self.waits: list[WaitSample] = []
        self.releases: list[Release] = []
        self.threads: dict[int, str] = {}
        self.dropped = 0
        self._calls = [code_of(call) for call in calls]
        if not 0 <= sample_ms <= 60_000:
            raise InputError(f"sample_ms: expected milliseconds from 0 (none) to 60,000, found {sample_ms!r}")
        self._sample_ns = int(sample_ms * 1e6)
        self._boundary = boundary
        self._root: core.span | None = None

    def __enter__(self) -> Timeline:
        if self._root is not None or self.spans:
            raise RuntimeError("a Timeline records once: make another one for another block")
        if core.spans_active() == 0:
            core.spans_forget()
            core.span_details().clear()
        self._pid = os.getpid()
        self._root = core.timeline_span(self.name)
        self._root.__enter__()
        core.counters_sample()
        if self._sample_ns:
            core.sampler_start(self._sample_ns)
        if self._boundary:
            BOUNDARY.open(self._calls)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        root, self._root = self._root, None
        if root is None:
            raise RuntimeError("the timeline was not entered")
        if os.getpid() != self._pid:
            return  # a forked child leaves its parent's timeline
        if self._boundary:
            BOUNDARY.close()
        root.__exit__(kind, error, trace)
        if self._sample_ns:
            core.sampler_stop()
        self._collect(root)

    def _collect(self, root: core.span) -> None:
        outer = core.open_span()
        heir = outer.root if outer is not None else 0
        details = core.span_details()
        for record in core.spans_drain(root.id, heir):
            ident, parent, name, thread, kind, begin, last, end, rss_last, rss_end, size, items = record
            attributes, error = (details.get(ident) if heir else details.pop(ident, None)) or (None, None)
            self.spans.append(
                Span(
                    id=ident,
                    parent=parent if ident != root.id else 0,
                    name=name,
                    thread=thread,
                    kind=KINDS[kind],
                    begin=Moment(*begin),
                    end=Moment(*end),
                    last=Moment(*last) if last else None,
                    rss_last=rss_last,
                    rss_end=rss_end,
                    bytes=size,
                    items=items,
                    error=error,
                    attributes=dict(attributes or {}),
                )
            )
        self.spans += resolve_device_spans(details, root.id, heir)
        self.spans.sort(key=lambda s: (s.begin.ns, -s.end.ns))
        begin_ns = self.root.begin.ns
        self.counters = [CounterSample(*c) for c in core.counter_samples(begin_ns)]
        self.waits = [WaitSample(*w) for w in core.wait_samples(begin_ns)]
        self.releases = [Release(*r) for r in core.release_events(begin_ns)]
        self.dropped = core.spans_dropped()
        names = core.span_thread_names()
        for thread_id in {s.thread for s in self.spans if s.kind != "device"}:
            self.threads[thread_id] = names.get(thread_id, f"thread {thread_id}")

    @property
    def root(self) -> Span:
        """The span of the timeline itself, the ancestor of the others. Only after the timeline has ended."""
        for s in self.spans:
            if s.parent == 0 and s.kind == "timeline":
                return s
        raise RuntimeError("the timeline has not ended yet")

    @property
    def wall_s(self) -> float:
        return self.root.wall_s

    @property
    def unfinished(self) -> int:
        """Spans that were still open when the timeline ended, as far as others are part of them. They are not in it."""
        known = {s.id for s in self.spans}
        return len({s.parent for s in self.spans if s.parent and s.parent not in known})

    def children(self) -> dict[int, list[Span]]:
        """Spans by the id of their parent, in order of their beginning. A span whose parent is absent is the root's."""
        known = {s.id for s in self.spans}
        found: dict[int, list[Span]] = {}
        for s in self.spans:
            if s is not self.root:
                found.setdefault(s.parent if s.parent in known else self.root.id, []).append(s)
        return found

    def report(self, min_share: float = 0.0, width: int | None = None) -> str:
        """The spans as a table, children below their parents, with teardown, gaps and their likely causes.

        Lines under `min_share` of the whole time are left out. Notes are folded to `width` columns, by default those of
        the terminal that standard output is; 0, and no terminal, leave every line whole.
        """
        from .report import render

        return render(self, min_share, width)

    def to_json(self) -> dict[str, Any]:
        """The timeline as JSON-ready values; `from_json` reads them back."""
        return {
            "format": FORMAT,
            "name": self.name,
            "threads": {str(k): v for k, v in self.threads.items()},
            "dropped": self.dropped,
            "spans": [s.to_json() for s in self.spans],
            "counters": [list(c) for c in self.counters],
            "waits": [list(w) for w in self.waits],
            "releases": [list(r) for r in self.releases],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], path: str | Path | None = None) -> Timeline:
        """Raises FormatError, naming `path`, for data that `to_json` did not make."""
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        if found != FORMAT:
            raise FormatError(path, "format", FORMAT, found)
        try:
            timeline = cls(*texts([data["name"]]))
            timeline.threads = dict(zip(map(int, data["threads"]), texts(list(data["threads"].values())), strict=True))
            (timeline.dropped,) = numbers([data["dropped"]])
            timeline.spans = [Span.from_json(s) for s in data["spans"]]
            check_tree(timeline.spans)
            timeline.counters = [_counter(*c) for c in data["counters"]]
            timeline.waits = [WaitSample(*numbers(w)) for w in data["waits"]]
            timeline.releases = [_release(*r) for r in data["releases"]]
            assert timeline.root
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise FormatError(path, "timeline", FORMAT, f"{type(error).__name__}: {error}") from error
        return timeline

    def save(self, path: str | Path) -> None:
        """Writes the timeline: `.html` a page, `.trace.json` Perfetto's format, other `.json` what `load` reads.

        Raises InputError for another suffix.
        """
        check_suffix(Path(path))
        Path(path).write_text(self.rendered(path), encoding="utf-8")

    def rendered(self, path: str | Path) -> str:
        """What `save` writes to a file of that name."""
        path = Path(path)
        if path.suffix == ".html":
            from .page import page

            return page(self)
        if path.name.endswith(".trace.json"):
            from .perfetto import trace_events

            return json.dumps(trace_events(self))
        return json.dumps(self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Timeline:
        """Reads what `save` wrote as JSON. Raises FormatError for anything else."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            check_depth(text, MAX_DEPTH)
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # bytes that are no text, no JSON, endless numbers, deep nesting
            raise FormatError(path, "text", "JSON", json_fault(error)) from error
        return cls.from_json(data, path)


def check_suffix(path: Path) -> None:
    """Raises InputError unless a timeline can be saved under that name."""
    if path.suffix not in (".html", ".json"):
        raise InputError(f"{path}: a timeline's file ends in .html, .json or .trace.json")


def _counter(ns: Any, rss: Any, live: Any, pending: Any) -> CounterSample:
    numbers([ns, live, pending, *([] if rss is None else [rss])])
    return CounterSample(ns, rss, live, pending)


def _release(begin_ns: Any, end_ns: Any, thread: Any, kind: Any, n_bytes: Any) -> Release:
    numbers([begin_ns, end_ns, thread, n_bytes])
    texts([kind])
    return Release(begin_ns, end_ns, thread, kind, n_bytes)
