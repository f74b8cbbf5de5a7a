"""A finished span and its moments, as values."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KINDS = ("python", "native", "timeline", "device")

MAX_DEPTH = 500
"""Levels of spans that a file may have: whoever goes through them recurs."""


class Moment(NamedTuple):
    """What a thread had used at a point in time: CLOCK_MONOTONIC, getrusage(RUSAGE_THREAD), the arena, schedstat."""

    ns: int
    user_ns: int = 0
    system_ns: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary: int = 0
    """Context switches because the thread waited."""
    involuntary: int = 0
    """Context switches because another thread was given the processor."""
    blocks: int = 0
    """Blocks read from and written to file systems."""
    arena_taken: int = 0
    """Bytes that this thread took from arenas."""
    arena_released: int = 0
    run_delay_ns: int = 0
    """Ready to run, and no processor for it; 0 where the system does not say."""


@dataclass(frozen=True)
class Span:
    """A finished span. CPU time, faults and switches are those of its own thread, between its two ends."""

    id: int
    parent: int
    """Id of the span that it is part of; 0 for a timeline."""
    name: str
    thread: int
    kind: str
    """python, native, timeline or device."""
    begin: Moment
    end: Moment
    last: Moment | None = None
    """The last statement is done and the locals still live; None where that moment was not marked."""
    rss_last: int | None = None
    """Resident bytes of the process at `last` and `end`; None in spans of under 1 ms."""
    rss_end: int | None = None
    bytes: int | None = None
    items: int | None = None
    error: str | None = None
    """Name of the exception that left the span."""
    lane: str | None = None
    """Of a device span: the device's name."""
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def start_ns(self) -> int:
        return self.begin.ns

    @property
    def end_ns(self) -> int:
        return self.end.ns

    @property
    def wall_s(self) -> float:
        return (self.end.ns - self.begin.ns) * 1e-9

    @property
    def user_s(self) -> float:
        return (self.end.user_ns - self.begin.user_ns) * 1e-9

    @property
    def system_s(self) -> float:
        return (self.end.system_ns - self.begin.system_ns) * 1e-9

    @property
    def faults(self) -> int:
        """Page faults, minor and major."""
        a, b = self.begin, self.end
        return b.minor_faults - a.minor_faults + b.major_faults - a.major_faults

    @property
    def switches(self) -> int:
        """Context switches, voluntary and not."""
        return self.end.voluntary - self.begin.voluntary + self.end.involuntary - self.begin.involuntary

    @property
    def arena_taken(self) -> int:
        """Bytes that this thread took from arenas."""
        return self.end.arena_taken - self.begin.arena_taken

    @property
    def arena_released(self) -> int:
        return self.end.arena_released - self.begin.arena_released

    @property
    def inner_s(self) -> float:
        """Seconds up to the last statement; all of them where it was not marked."""
        return ((self.last or self.end).ns - self.begin.ns) * 1e-9

    @property
    def teardown_s(self) -> float | None:
        """Seconds from the last statement to being back in the caller; None where it was not marked."""
        return None if self.last is None else (self.end.ns - self.last.ns) * 1e-9

    @property
    def released_bytes(self) -> int | None:
        """By how much the process's resident memory fell in the teardown."""
        if self.rss_last is None or self.rss_end is None:
            return None
        return max(0, self.rss_last - self.rss_end)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values; what is absent is left out."""
        out: dict[str, Any] = {
            "id": self.id,
            "parent": self.parent,
            "name": self.name,
            "thread": self.thread,
            "kind": self.kind,
            "begin": list(self.begin),
            "end": list(self.end),
        }
        if self.last is not None:
            out["last"] = list(self.last)
        for key in ("rss_last", "rss_end", "bytes", "items", "error", "lane"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        if self.attributes:
            out["attributes"] = {k: _plain(v) for k, v in self.attributes.items()}
        return out

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Span:
        """Raises LookupError, TypeError or ValueError for data that `to_json` did not make."""
        moments: dict[str, Any] = {k: Moment(*numbers(data[k])) for k in ("begin", "end", "last") if k in data}
        numbers([data["id"], data["parent"], data["thread"]])
        numbers([data[k] for k in ("rss_last", "rss_end", "bytes", "items") if k in data])
        texts([data["name"], *(data[k] for k in ("error", "lane") if k in data)])
        if data["kind"] not in KINDS:
            raise ValueError(f"expected a kind of {', '.join(KINDS)}, found {data['kind']!r}")
        attributes = data.get("attributes", {})
        if not isinstance(attributes, dict) or any(isinstance(v, dict | list) for v in attributes.values()):
            raise ValueError("expected attributes that are plain values")
        return cls(**{**data, **moments})


class CounterSample(NamedTuple):
    """A point of the counter tracks."""

    ns: int
    rss: int | None
    arena_live: int
    release_pending: int


class Release(NamedTuple):
    """A release or a driver call that the release shim timed (csrc/preload)."""

    begin_ns: int
    end_ns: int
    thread: int
    kind: str
    """The function: munmap, madvise, free, cudaFree, cudaFreeHost or cudaHostUnregister."""
    bytes: int
    """0 where the call does not say."""


class WaitSample(NamedTuple):
    """What a thread was doing, seen from outside."""

    ns: int
    thread: int
    call: int
    """Number of the system call that it waited in; -1 on or ready for a processor, -2 blocked outside any call."""
    io_bytes: int
    """Read and written so far; -1 unknown."""


def numbers(values: Any) -> list[int]:
    """The values, if they are a list of whole numbers; else raises ValueError."""
    if not isinstance(values, list) or not all(type(v) is int and abs(v) < 1 << 64 for v in values):
        raise ValueError(f"expected whole numbers of 64 bits, found {reprlib.repr(values)}")
    return values


def texts(values: Any) -> list[str]:
    """The values, if they are a list of strings; else raises ValueError."""
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"expected texts, found {reprlib.repr(values)}")
    return values


def check_tree(spans: Sequence[Span]) -> None:
    """Raises ValueError unless ids are unique and every chain of parents ends, within `MAX_DEPTH` levels."""
    parents = {s.id: s.parent for s in spans}
    if len(parents) != len(spans) or min(parents, default=1) < 1:
        raise ValueError("expected ids that are unique and positive")
    depths: dict[int, int] = {}
    for ident in parents:
        chain: list[int] = []
        while ident in parents and ident not in depths and len(chain) <= MAX_DEPTH:
            chain.append(ident)
            ident = parents[ident]
        depth = depths.get(ident, 0)
        if depth + len(chain) > MAX_DEPTH:
            raise ValueError(
                f"expected at most {MAX_DEPTH} levels of spans, found more above span {chain[0]}, or a cycle"
            )
        for above, member in enumerate(reversed(chain), 1):
            depths[member] = depth + above


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
