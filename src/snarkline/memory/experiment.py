"""What each release policy costs the caller, and everybody else, on this machine.

A stand-in for a prover's call, with both sides: the native function fills vectors, works for a fixed time and returns,
and its vectors are destroyed on the way out; the caller's arrays (a, b, c of ten circuits) are dropped when the Python
function that called it returns. 37 : 130 by bytes, as in a proof of a 32 GiB sector. Meanwhile one native thread maps
and unmaps memory and one Python thread ticks: what they wait is what a release does to others.

Every run has a process of its own: `python -m snarkline.memory.experiment measure` reads a `Run` and prints its row.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from snarkline.errors import InputError, InternalError
from snarkline.memory.arena import Arena
from snarkline.memory.fresh import answer, run_fresh
from snarkline.memory.lease import Lease
from snarkline.memory.moments import Moments
from snarkline.memory.policy import Release
from snarkline.native import core
from snarkline.trace import Timeline

NATIVE_SHARE, CALLER_SHARE = 37, 130
NATIVE_VECTORS, CALLER_VECTORS = 10, 30

SIDES = ("native", "caller", "both")
CONTROL = "control"  # releases nothing
NUMPY = "numpy"  # the caller's arrays are NumPy's own, freed under the GIL

PROBE_INTERVAL_NS = 200_000
SETTLE_S = 0.1

PROCESS_S, GIB_S = 0.6, 0.6
"""About what a run costs beside its work and its window: a process, and a GiB that is filled and given back."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """`policy`: a Release's value, "control" or "numpy". `n_bytes`: what both sides have together, of which `side`
    decides how much is there. `pages`: "4k" or "2m". `secret`: wiped before they go. `window_s`: stalls are counted for
    at least so long, so that there are thousands of samples."""

    policy: str
    side: str
    pages: str
    n_bytes: int
    threads: int
    work_s: float = 0.5
    secret: bool = False
    window_s: float = 1.0

    @property
    def native_bytes(self) -> int:
        return 0 if self.side == "caller" else self.n_bytes * NATIVE_SHARE // (NATIVE_SHARE + CALLER_SHARE)

    @property
    def caller_bytes(self) -> int:
        return 0 if self.side == "native" else self.n_bytes * CALLER_SHARE // (NATIVE_SHARE + CALLER_SHARE)

    @property
    def release(self) -> Release:
        return {CONTROL: Release.RECYCLE, NUMPY: Release.SYNC}.get(self.policy) or Release(self.policy)


class Ticker:
    """A Python thread that sleeps for 0.2 ms again and again, and how late it was each time."""

    def __init__(self) -> None:
        self.rounds: list[tuple[int, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        interval_s = PROBE_INTERVAL_NS * 1e-9
        while not self._stop.is_set():
            begin = time.monotonic_ns()
            time.sleep(interval_s)
            self.rounds.append((begin, time.monotonic_ns() - begin - PROBE_INTERVAL_NS))

    def stop(self) -> list[tuple[int, int]]:
        self._stop.set()
        self._thread.join()
        return self.rounds


class Probes:
    """Both threads that feel what a release does to others: one that maps memory, and a Python thread."""

    def __init__(self) -> None:
        self._mappings, self._ticker = core.MapProbe(PROBE_INTERVAL_NS), Ticker()
        time.sleep(SETTLE_S)

    def stop(self, begin_ns: int, end_ns: int) -> Row:
        """The 99.9th percentile and the longest of the rounds that touch the window, for each, in seconds."""
        rounds = {"map": self._mappings.stop(), "python": self._ticker.stop()}
        return {key: value for name in rounds for key, value in _stalls(name, rounds[name], begin_ns, end_ns).items()}


def wait_until(ns: int) -> None:
    """Sleeps until that time of CLOCK_MONOTONIC, unless it is past."""
    time.sleep(max(0.0, (ns - time.monotonic_ns()) * 1e-9))


def measure(run: Run) -> Row:
    """One run in this process, which should be a fresh one."""
    arena = Arena(run.release, pages="4k" if run.pages == "4k" else "auto", threads=run.threads, idle_s=1e6)
    buffers = _caller_buffers(run, arena)
    kept = list(buffers) if run.policy == CONTROL else []
    probes = Probes()

    moments = Moments(begun=time.monotonic_ns())
    box = [buffers]
    del buffers
    kept.append(_call(run, arena, box, moments))
    moments.back = time.monotonic_ns()
    if not arena.drain(600):
        raise InternalError("a release did not end within ten minutes")
    reclaimed = time.monotonic_ns()
    end = max(reclaimed, moments.work_done + int(run.window_s * 1e9))
    wait_until(end)
    return {
        "policy": run.policy,
        "side": run.side,
        "pages": run.pages,
        "secret": run.secret,
        "bytes": run.native_bytes + run.caller_bytes,
        **moments.seconds(reclaimed),
        **probes.stop(moments.work_done, end),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def _caller_buffers(run: Run, arena: Arena) -> list[Any]:
    n_bytes = run.caller_bytes // CALLER_VECTORS
    if not n_bytes:
        return []
    if run.policy == NUMPY:
        arrays = [np.empty(n_bytes, np.uint8) for _ in range(CALLER_VECTORS)]
        for array in arrays:
            array[::4096] = 1
        return arrays
    return [arena.lease(n_bytes, np.uint8, secret=run.secret) for _ in range(CALLER_VECTORS)]


def _call(run: Run, arena: Arena, box: list[list[Any]], moments: Moments) -> core.KeptVectors:
    """The Python function around the native one. It owns the caller's buffers, which its return drops."""
    buffers = box.pop()
    clear = {Release.CLEAR: "size", Release.CLEAR_CAPACITY: "capacity"}.get(run.release, "nothing")
    keep = run.policy == CONTROL
    moments.entered, moments.work_done, moments.native_last, kept = core.standin_call(
        arena.native,
        run.release.way,
        clear,
        run.secret,
        run.native_bytes,
        NATIVE_VECTORS,
        run.work_s,
        run.threads,
        keep,
    )
    moments.native_back = time.monotonic_ns()
    if clear != "nothing":
        for buffer in buffers:
            if isinstance(buffer, Lease):
                buffer.release()
    moments.last = time.monotonic_ns()
    return kept


def _stalls(name: str, rounds: Iterable[tuple[int, int]], begin: int, end: int) -> Row:
    inside = sorted(spent for at, spent in rounds if at + spent >= begin and at <= end)
    if not inside:
        raise InternalError(f"the {name} probe came to nothing within {(end - begin) * 1e-9:.1f} s")
    return {
        f"stall_{name}_p999_s": max(inside[int(len(inside) * 0.999)], 0) * 1e-9,
        f"stall_{name}_max_s": max(inside[-1], 0) * 1e-9,
    }


def peak_rss_bytes() -> int:
    """The most that this process has had in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise InternalError("/proc/self/status has no VmHWM")


def report(run: Run, width: int) -> str:
    """A timeline of one run in this process, folded to `width` columns unless that is 0."""
    arena = Arena(run.release, pages="4k" if run.pages == "4k" else "auto", threads=run.threads)
    box = [_caller_buffers(run, arena)]
    with Timeline("call", calls=[_call]) as timeline:
        _call(run, arena, box, Moments())
    return timeline.report(width=width)


def measure_fresh(run: Run) -> Row:
    """One run in a process of its own."""
    return dict(json.loads(run_fresh(__name__, run, run.pages, "measure")))


def report_fresh(run: Run, width: int = 0) -> str:
    """The timeline of one run in a process of its own, as its report."""
    return run_fresh(__name__, run, run.pages, "report", str(width))


def plan(policies: Sequence[str], base: Run) -> list[Run]:
    """Every policy on every side, beside its control; and what wiping adds where there is somebody to do it."""
    runs = [replace(base, policy=CONTROL, side=side) for side in SIDES]
    for policy in policies:
        sides = ("caller",) if policy == NUMPY else SIDES
        runs += [replace(base, policy=policy, side=side) for side in sides]
        if policy in (Release.DETACHED.value, Release.RECYCLE.value):
            runs.append(replace(base, policy=policy, side="both", secret=True))
    return runs


def sweep_plan(policies: Sequence[str], base: Run) -> list[Run]:
    """Both sides at eight sizes up to the base's, with both page sizes."""
    sizes = [base.n_bytes * eighth // 8 for eighth in range(1, 9)]
    kinds = [(pages, policy, size) for pages in ("4k", "2m") for policy in policies for size in sizes]
    return [replace(base, pages=pages, policy=policy, side="both", n_bytes=size) for pages, policy, size in kinds]


def require_memory(n_bytes: int) -> None:
    """Refuses an experiment that would not fit into the memory that is free. Raises InputError with both figures."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
            if n_bytes > available * 9 // 10:
                raise InputError(
                    f"the experiment needs {n_bytes / 2**30:.2f} GiB of memory; {available / 2**30:.2f} GiB are free, "
                    f"of which it takes at most nine tenths ({available * 9 // 10 / 2**30:.2f} GiB)"
                )


def estimate_s(runs: Sequence[Run]) -> float:
    """About how long these runs take, one after the other."""
    filled = sum(run.native_bytes + run.caller_bytes for run in runs)
    return sum(PROCESS_S + run.work_s + run.window_s for run in runs) + filled / 2**30 * GIB_S


def repeat(
    runs: Sequence[Any], times: int, measure: Callable[[Any], Row], tell: Callable[[str], None] = lambda progress: None
) -> list[Row]:
    """Medians of every run's rows; the runs take turns, so that all see the same machine. `tell` hears how far it is,
    as 7/26."""
    turns: list[list[Row]] = []
    for turn in range(times):
        turns.append([])
        for at, run in enumerate(runs):
            tell(f"{turn * len(runs) + at + 1}/{times * len(runs)}")
            turns[-1].append(measure(run))
    return [medians(rows) for rows in zip(*turns, strict=True)]


def medians(rows: Sequence[Row]) -> Row:
    """Of seconds and peaks; everything else is the same in all rows."""
    merged = dict(rows[0])
    for key, value in merged.items():
        if isinstance(value, float):
            merged[key] = median(row[key] for row in rows)
    merged["peak_rss_bytes"] = int(median(row["peak_rss_bytes"] for row in rows))
    merged["runs"] = len(rows)
    return merged


def main() -> None:
    """The process of one run: its row, or its timeline's report."""
    if sys.argv[1] == "measure":
        answer(lambda fields: json.dumps(measure(Run(**fields))))
    else:
        answer(lambda fields: report(Run(**fields), int(sys.argv[2])))


if __name__ == "__main__":
    main()
