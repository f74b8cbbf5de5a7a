"""Gap accounting: how much of a span no child owns, and the likely cause.

A gap is what remains of a parent when its children and its teardown are taken out. Its cause is judged from evidence on
the parent's own thread: CPU time, faults and switches between the moments that spans took there (linear in between),
resident memory from the counter track, and what the sampler saw the thread wait for. Device spans and, in a process
that was started with the release shim, timed releases and driver calls are evidence as well.
"""

from __future__ import annotations

import platform
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from .model import Moment, Span, WaitSample
from .timeline import Timeline

PAGE_RELEASE = "page release"
FIRST_TOUCH = "first touch"
DRIVER = "driver"
LOCK = "GIL or lock"
DEVICE = "device synchronisation"
IO = "I/O"
SLEEP = "sleep"
PROCESSOR = "waiting for a processor"
SYSTEM = "system calls"
COMPUTATION = "computation"

FLAG_NS, FLAG_SHARE, FLAG_FLOOR_NS = 10_000_000, 0.01, 100_000
"""A gap is flagged above 10 ms, or above 1 % of its span where that is no less than 0.1 ms."""

DRIVER_KINDS = {"cudaFree", "cudaFreeHost", "cudaHostUnregister"}

_MIB = 1 << 20
# System calls by what a wait in them means.
_IO_X86 = (0, 1, 7, 17, 18, 19, 20, 23, 40, 42, 43, 44, 45, 46, 47, 74, 75, 232, 257, 270, 271, 275, 281, 295, 326, 426)
_IO_ARM = (22, 56, 63, 64, 65, 66, 67, 68, 71, 72, 73, 82, 83, 203, 206, 207, 211, 212, 426)
_CALLS: dict[str, dict[str, tuple[int, ...]]] = {
    "x86_64": {IO: _IO_X86, DRIVER: (16,), SLEEP: (35, 230)},
    "aarch64": {IO: _IO_ARM, DRIVER: (29,), SLEEP: (101, 115)},
}


@dataclass(frozen=True)
class Evidence:
    """What is known of a stretch of time on one thread. Nanoseconds and bytes; -1 where the system does not say."""

    wall_ns: int
    user_ns: int = 0
    system_ns: int = 0
    faults: int = 0
    voluntary: int = 0
    involuntary: int = 0
    blocks: int = 0
    rss_fell: int = 0
    rss_rose: int = 0
    io_bytes: int = 0
    run_delay_ns: int = 0
    device_ns: int = 0
    release_ns: int = 0
    driver_ns: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    """Samples in which the thread waited, by IO, DRIVER, SLEEP, or LOCK for any other call."""

    @property
    def off_ns(self) -> int:
        """Time in which the thread had no processor."""
        return max(0, self.wall_ns - self.user_ns - self.system_ns)

    @property
    def starved_ns(self) -> int:
        """Time in which it wanted a processor and had none: all of `off_ns` where it never waited for anything."""
        return self.off_ns if self.voluntary == 0 else min(self.off_ns, self.run_delay_ns)

    def __add__(self, other: Evidence) -> Evidence:
        numbers = {k: v + getattr(other, k) for k, v in vars(self).items()}
        return Evidence(**numbers)

    @property
    def cause(self) -> str:
        """The likely cause, one of the names above: a want of processors where that took half of the time or more."""
        return PROCESSOR if self.starved_ns * 2 >= self.wall_ns else self.cause_of_rest

    @property
    def cause_of_rest(self) -> str:
        """The likely cause of the time in which the thread did not want for a processor."""
        half = (self.wall_ns - self.starved_ns) / 2
        waited = self.waits.total() or 1
        off = self.off_ns - self.starved_ns
        if self.driver_ns >= half or (off >= half and self.waits[DRIVER] * 2 >= waited):
            return DRIVER
        if self.release_ns >= half:
            return PAGE_RELEASE
        if self.device_ns >= half and self.system_ns < half:
            return DEVICE
        if off >= half:
            return self._wait_cause(waited)
        return self._work_cause()

    def _wait_cause(self, waited: int) -> str:
        if self.waits[IO] * 2 >= waited or self.blocks or self.io_bytes >= _MIB:
            return IO
        if self.waits[SLEEP] * 2 >= waited:
            return SLEEP
        return LOCK

    def _work_cause(self) -> str:
        milliseconds = (self.wall_ns - self.starved_ns) / 1e6
        # Fresh memory is filled at some GiB/s at most: 4 KiB pages fault over 20 times a ms, 2 MiB pages by their size.
        touches = self.faults >= 20 * milliseconds or self.rss_rose >= 0.1 * _MIB * milliseconds
        if touches and self.rss_fell <= self.rss_rose:
            return FIRST_TOUCH
        if self.system_ns * 2 < self.user_ns + self.system_ns:
            return COMPUTATION
        if self.rss_fell >= _MIB and self.rss_fell >= self.rss_rose:
            return PAGE_RELEASE
        if touches:
            return FIRST_TOUCH
        if self.io_bytes >= _MIB or self.blocks:
            return IO
        return DRIVER if self.driver_ns or self.device_ns or self.waits[DRIVER] else SYSTEM


@dataclass(frozen=True)
class Gap:
    """The part of `span` that no child owns."""

    span: Span
    pieces: tuple[tuple[int, int], ...]
    evidence: Evidence
    cause: str
    """The cause of the pieces that make up most of it."""
    cause_of_rest: str
    """The same of the time in which the thread did not want for a processor."""

    @property
    def wall_s(self) -> float:
        return self.evidence.wall_ns * 1e-9

    @property
    def likely(self) -> str:
        """The cause in words; where a want of processors left over a tenth for another one, both."""
        e = self.evidence
        both = self.cause == PROCESSOR and e.starved_ns < 0.9 * e.wall_ns
        return f"{self.cause}, and {self.cause_of_rest}" if both else self.cause

    @property
    def share(self) -> float:
        return self.evidence.wall_ns / max(1, self.span.end.ns - self.span.begin.ns)

    @property
    def flagged(self) -> bool:
        wall = self.evidence.wall_ns
        return wall > FLAG_NS or (self.share > FLAG_SHARE and wall > FLAG_FLOOR_NS)


class Ledger:
    """Evidence for any stretch of time of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._moments: dict[int, list[Moment]] = {}
        for s in timeline.spans:
            if s.kind != "device":
                self._moments.setdefault(s.thread, []).extend(m for m in (s.begin, s.last, s.end) if m is not None)
        for moments in self._moments.values():
            moments.sort()
        # By thread and in order of time: stretches are thousands, and so are samples.
        self._waits: dict[int, list[WaitSample]] = {}
        self._io: dict[int, list[tuple[int, int]]] = {}
        for w in sorted(timeline.waits, key=_when):
            self._waits.setdefault(w.thread, []).append(w)
            if w.io_bytes >= 0:
                self._io.setdefault(w.thread, []).append((w.ns, w.io_bytes))
        self._rss = [(c.ns, c.rss) for c in sorted(timeline.counters) if c.rss is not None]
        self._device = union((s.begin.ns, s.end.ns) for s in timeline.spans if s.kind == "device")
        threads = {r.thread for r in timeline.releases}
        driver, pages = ([r for r in timeline.releases if (r.kind in DRIVER_KINDS) == of] for of in (True, False))
        self._driver, self._pages = (
            {t: union((r.begin_ns, r.end_ns) for r in releases if r.thread == t) for t in threads}
            for releases in (driver, pages)
        )
        self._meanings = {n: name for name, ns in _CALLS.get(platform.machine(), {}).items() for n in ns}

    def between(self, thread: int, begin_ns: int, end_ns: int) -> Evidence:
        a, b = self._moment(thread, begin_ns), self._moment(thread, end_ns)
        fell, rose = self._rss_moves(begin_ns, end_ns)
        samples = self._waits.get(thread, [])
        inside = samples[bisect_left(samples, begin_ns, key=_when) : bisect_right(samples, end_ns, key=_when)]
        return Evidence(
            wall_ns=end_ns - begin_ns,
            user_ns=b.user_ns - a.user_ns,
            system_ns=b.system_ns - a.system_ns,
            faults=b.minor_faults - a.minor_faults + b.major_faults - a.major_faults,
            voluntary=b.voluntary - a.voluntary,
            involuntary=b.involuntary - a.involuntary,
            blocks=b.blocks - a.blocks,
            rss_fell=fell,
            rss_rose=rose,
            io_bytes=_growth(self._io.get(thread, []), begin_ns, end_ns),
            run_delay_ns=b.run_delay_ns - a.run_delay_ns,
            device_ns=overlap(self._device, begin_ns, end_ns),
            release_ns=overlap(self._pages.get(thread, []), begin_ns, end_ns),
            driver_ns=overlap(self._driver.get(thread, []), begin_ns, end_ns),
            waits=Counter(self._meanings.get(w.call, LOCK) for w in inside if w.call >= 0),
        )

    def _moment(self, thread: int, ns: int) -> Moment:
        moments = self._moments.get(thread, [])
        at = bisect_left(moments, Moment(ns))
        if at < len(moments) and (moments[at].ns == ns or at == 0):
            return moments[at]
        if at == len(moments):
            return moments[-1] if moments else Moment(ns)
        before, after = moments[at - 1], moments[at]
        share = (ns - before.ns) / (after.ns - before.ns)
        return Moment(*(round(x + (y - x) * share) for x, y in zip(before, after, strict=True)))

    def _rss_moves(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Bytes by which resident memory fell and rose, linear between samples."""
        first, stop = bisect_right(self._rss, (begin_ns, 1 << 62)), bisect_left(self._rss, (end_ns, 0))
        inside = [rss for _, rss in self._rss[first:stop]]
        values = [_value(self._rss, begin_ns), *inside, _value(self._rss, end_ns)]
        steps = [b - a for a, b in pairwise(values)]
        return sum(-d for d in steps if d < 0), sum(d for d in steps if d > 0)


def find_gaps(timeline: Timeline, ledger: Ledger | None = None) -> dict[int, Gap]:
    """The gap of every span that has children, by the span's id; and of the timeline itself."""
    ledger = ledger or Ledger(timeline)
    children = timeline.children()
    gaps = {}
    for s in timeline.spans:
        if s.id not in children and s is not timeline.root:
            continue
        owned = union((c.begin.ns, c.end.ns) for c in children.get(s.id, []))
        pieces = tuple(without(owned, s.begin.ns, (s.last or s.end).ns))
        judged = [ledger.between(s.thread, a, b) for a, b in pieces]
        cause = _most((e.cause, e.wall_ns) for e in judged)
        rest = _most((e.cause_of_rest, e.wall_ns - e.starved_ns) for e in judged)
        gaps[s.id] = Gap(s, pieces, sum(judged, Evidence(0)), cause, rest)
    return gaps


def _most(causes: Iterable[tuple[str, int]]) -> str:
    """The cause of most nanoseconds."""
    sums: Counter[str] = Counter()
    for cause, ns in causes:
        sums[cause] += ns
    return sums.most_common(1)[0][0] if sums else COMPUTATION


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The intervals' union as sorted intervals that do not touch."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def without(owned: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """What remains of [begin, end] outside of `owned`, a union."""
    rest, at = [], begin
    for a, b in owned:
        if a > at:
            rest.append((at, min(a, end)))
        at = max(at, b)
        if at >= end:
            break
    if at < end:
        rest.append((at, end))
    return [(a, b) for a, b in rest if b > a]


def overlap(owned: list[tuple[int, int]], begin: int, end: int) -> int:
    """How much of [begin, end] lies in `owned`, a union."""
    first = max(0, bisect_right(owned, (begin, 1 << 62)) - 1)
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in owned[first : bisect_left(owned, (end, 0))])


def _when(sample: WaitSample) -> int:
    return sample.ns


def _growth(points: list[tuple[int, int]], begin: int, end: int) -> int:
    """By how much a sampled, growing figure grew from `begin` to `end`, linear between samples."""
    return max(0, _value(points, end) - _value(points, begin))


def _value(points: list[tuple[int, int]], at: int) -> int:
    i = bisect_left(points, (at, 0))
    if not points or i == 0:
        return points[0][1] if points else 0
    if i == len(points):
        return points[-1][1]
    (t0, v0), (t1, v1) = points[i - 1], points[i]
    return v0 + round((v1 - v0) * (at - t0) / max(1, t1 - t0))
