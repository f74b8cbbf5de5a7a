"""Gap accounting: one planted cause each, and the report names it."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from snarkline.trace import Span, Timeline, device_span, span
from snarkline.trace import gaps as g
from snarkline.trace.ghosts import shim_path

MIB = 1 << 20


def mapping(n_bytes: int) -> mmap.mmap:
    """Fresh memory in 4 KiB pages."""
    found = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    found.madvise(15)  # MADV_NOHUGEPAGE; the mmap module lacks the name in some builds
    return found


def timeline_of(plant: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> Timeline:
    """A timeline in which `plant` runs in "parent" outside of any child. On a busy machine, one of two tries."""
    for _ in range(2):
        with Timeline() as timeline, span("parent"):
            with span("child"):
                prepare()
            plant()
            with span("child"):
                time.sleep(0.005)
        evidence = parent_gap(timeline).evidence
        if evidence.starved_ns < evidence.wall_ns / 2:
            break
    return timeline


def unfolded(timeline: Timeline) -> str:
    """The report without the breaks that fold it to a terminal."""
    return " ".join(timeline.report().split())


def parent_gap(timeline: Timeline) -> g.Gap:
    (parent,) = (s for s in timeline.spans if s.name == "parent")
    return g.find_gaps(timeline)[parent.id]


def assert_named(timeline: Timeline, cause: str) -> None:
    gap = parent_gap(timeline)
    assert gap.flagged
    assert gap.cause_of_rest == cause, gap.evidence
    # Other programs may keep the processors busy for most of the time; the report then says both.
    starved = gap.evidence.starved_ns / gap.evidence.wall_ns
    if starved < 0.5:
        assert gap.cause == cause, gap.evidence
    if starved < 0.9:
        assert gap.likely.endswith(cause)
        assert f"likely {gap.likely}" in unfolded(timeline)


def test_page_release() -> None:
    held: list[mmap.mmap] = []

    def prepare() -> None:
        held.append(mapping(768 * MIB))
        touch_and_forget(held[0])
        time.sleep(0.01)

    timeline = timeline_of(lambda: held.pop().close(), prepare)
    assert_named(timeline, g.PAGE_RELEASE)
    assert parent_gap(timeline).evidence.rss_fell > 700 * MIB


def touch_and_forget(memory: mmap.mmap) -> None:
    view = ctypes.c_char.from_buffer(memory)
    ctypes.memset(ctypes.addressof(view), 1, len(memory))
    del view


def test_first_touch() -> None:
    kept: list[mmap.mmap] = []

    def plant() -> None:
        kept.append(mapping(256 * MIB))
        touch_and_forget(kept[-1])

    timeline = timeline_of(plant)
    assert_named(timeline, g.FIRST_TOUCH)
    assert parent_gap(timeline).evidence.faults > 60_000


def test_waiting_for_a_lock() -> None:
    def plant() -> None:
        lock = threading.Lock()
        lock.acquire()
        threading.Timer(0.15, lock.release).start()
        lock.acquire()

    assert_named(timeline_of(plant), g.LOCK)


def test_waiting_for_the_gil() -> None:
    def hold(started: threading.Event) -> None:
        started.set()
        time.sleep(0.01)
        ctypes.PyDLL(None).usleep(300_000)  # a PyDLL's functions keep the GIL

    def plant() -> None:
        started = threading.Event()
        threading.Thread(target=hold, args=(started,)).start()
        started.wait()
        time.sleep(0.05)  # asks for the GIL when it is over

    assert_named(timeline_of(plant), g.LOCK)


def test_sleep() -> None:
    assert_named(timeline_of(lambda: time.sleep(0.15)), g.SLEEP)


def test_waiting_for_input() -> None:
    reader, writer = os.pipe()

    def plant() -> None:
        threading.Timer(0.15, os.write, (writer, b"x")).start()
        os.read(reader, 1)

    assert_named(timeline_of(plant), g.IO)
    os.close(reader)
    os.close(writer)


def test_reading_a_cached_file() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * (32 * MIB))
        file.flush()
        buffer = bytearray(32 * MIB)

        def plant() -> None:
            for _ in range(20):
                os.preadv(file.fileno(), [buffer], 0)

        assert_named(timeline_of(plant), g.IO)


class FakeDevice:
    """A device whose work takes time by itself; events are moments of its queue."""

    name = "fake0"

    def __init__(self) -> None:
        self.free_at = 0.0

    def queue(self, seconds: float) -> None:
        self.free_at = max(self.free_at, time.monotonic()) + seconds

    def record(self) -> float:
        return max(self.free_at, time.monotonic())

    def elapsed(self, begin: float, end: float) -> float:
        self.wait(begin)
        self.wait(end)
        return end - begin

    def wait(self, until: float) -> None:
        time.sleep(max(0.0, until - time.monotonic()))


def test_device_synchronisation() -> None:
    device = FakeDevice()
    with Timeline() as timeline, span("parent"):
        with device_span(device, "kernel", items=7):
            device.queue(0.2)
        device.wait(device.free_at)
    (kernel,) = (s for s in timeline.spans if s.kind == "device")
    (parent,) = (s for s in timeline.spans if s.name == "parent")
    assert kernel.wall_s == pytest.approx(0.2, abs=0.02)
    assert (kernel.lane, kernel.items, kernel.parent) == ("fake0", 7, parent.id)
    assert parent.begin.ns < kernel.begin.ns < kernel.end.ns < parent.end.ns + 50_000_000


def test_waiting_for_a_device_that_another_span_used() -> None:
    device = FakeDevice()
    with Timeline() as timeline, span("parent") as parent:
        with span("launch"), device_span(device, "kernel"):
            device.queue(0.2)
        device.wait(device.free_at)
        with span("after"):
            time.sleep(0.005)
    gap = g.find_gaps(timeline)[parent.id]
    assert gap.cause == g.DEVICE
    assert "likely device synchronisation" in unfolded(timeline)


def test_computation() -> None:
    def plant() -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            sum(range(1000))

    gap = parent_gap(timeline_of(plant))
    assert gap.flagged and gap.cause in (g.COMPUTATION, g.PROCESSOR)


def test_waiting_for_a_processor() -> None:
    """This thread and four that never stop, on one processor."""
    mine = os.sched_getaffinity(0)
    one = {min(mine)}
    hog = [
        sys.executable,
        "-c",
        f"import os\nos.sched_setaffinity(0, {one})\nprint(flush=True)\nwhile True: pass",
    ]
    hogs = [subprocess.Popen(hog, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for process in hogs:
            assert process.stdout is not None and process.stdout.readline()
        os.sched_setaffinity(0, one)

        def plant() -> None:
            end = time.thread_time() + 0.1
            while time.thread_time() < end:
                sum(range(1000))

        with Timeline() as timeline, span("parent"):
            with span("child"):
                pass
            plant()
    finally:
        os.sched_setaffinity(0, mine)
        for process in hogs:
            process.kill()
            process.communicate()
    gap, evidence = parent_gap(timeline), parent_gap(timeline).evidence
    assert gap.flagged and gap.cause == g.PROCESSOR
    assert "likely waiting for a processor" in unfolded(timeline)
    assert evidence.run_delay_ns > evidence.wall_ns / 2
    assert evidence.involuntary > 0
    assert "% waiting for a processor (taken away" in unfolded(timeline)


def test_system_calls_that_move_no_pages() -> None:
    """The kernel works, and nothing speaks for a driver."""
    libc, buffer = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 20)
    ctypes.memset(buffer, 1, len(buffer))
    assert_named(timeline_of(lambda: [libc.getrandom(buffer, len(buffer), 0) for _ in range(40)]), g.SYSTEM)


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (g.Evidence(100, system_ns=100), g.SYSTEM),
        (g.Evidence(100, system_ns=100, device_ns=10), g.DRIVER),
        (g.Evidence(100, system_ns=100, waits=Counter({g.DRIVER: 1})), g.DRIVER),
        (g.Evidence(100, voluntary=3, waits=Counter({g.DRIVER: 4, g.LOCK: 3})), g.DRIVER),
        (g.Evidence(100, voluntary=3, waits=Counter({g.DRIVER: 3, g.LOCK: 4})), g.LOCK),
        (g.Evidence(100, involuntary=1), g.PROCESSOR),
        (g.Evidence(100, user_ns=50, voluntary=1, run_delay_ns=50), g.PROCESSOR),
        (g.Evidence(100, user_ns=52, voluntary=1, run_delay_ns=48), g.COMPUTATION),
        (g.Evidence(100, voluntary=1, run_delay_ns=20), g.LOCK),
    ],
)
def test_a_cause_needs_its_evidence(evidence: g.Evidence, cause: str) -> None:
    assert evidence.cause == cause


DRIVER = """
#include <time.h>
int cudaHostUnregister(void* p) {
  struct timespec wait = {0, 120000000};
  (void)p;
  nanosleep(&wait, 0);
  return 0;
}
int unregister(void) { return cudaHostUnregister(0); }
"""

DRIVER_PROGRAM = """
import ctypes, sys, time
from snarkline.trace import Timeline, span
from snarkline.trace.gaps import find_gaps
lib = ctypes.CDLL(sys.argv[1])
with Timeline() as timeline, span("parent") as parent:
    with span("child"): time.sleep(0.005)
    lib.unregister()
    with span("child"): time.sleep(0.005)
print(find_gaps(timeline)[parent.id].cause)
assert "likely driver" in " ".join(timeline.report().split()), timeline.report()
"""


def test_driver(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler is not None
    (tmp_path / "driver.c").write_text(DRIVER)
    library = tmp_path / "driver.so"
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "driver.c"), "-o", str(library)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER_PROGRAM, str(library)],
        env={**os.environ, "LD_PRELOAD": shim_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == g.DRIVER


def test_small_gaps_are_not_flagged() -> None:
    with Timeline() as timeline, span("parent"):
        for _ in range(3):
            with span("child"):
                time.sleep(0.05)
    gap = parent_gap(timeline)
    assert gap.share < 0.5
    assert gap.wall_s == pytest.approx(sum(b - a for a, b in gap.pieces) * 1e-9)


def test_children_of_other_threads_own_time_too() -> None:
    from snarkline.trace import follow

    def work() -> None:
        with span("work"):
            time.sleep(0.1)

    with Timeline() as timeline, span("parent"):
        threads = [threading.Thread(target=follow(work)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    works = [s for s in timeline.spans if s.name == "work"]
    gap = parent_gap(timeline)
    assert len(works) == 2
    assert gap.wall_s <= next(s for s in timeline.spans if s.name == "parent").wall_s - 0.099


def test_intervals() -> None:
    owned = g.union([(5, 9), (1, 3), (2, 4), (9, 12)])
    assert owned == [(1, 4), (5, 12)]
    assert g.without(owned, 0, 20) == [(0, 1), (4, 5), (12, 20)]
    assert g.without(owned, 2, 8) == [(4, 5)]
    assert g.without([], 3, 3) == []
    assert g.overlap(owned, 3, 6) == 2


def test_the_parts_of_a_span_add_up() -> None:
    with Timeline() as timeline, span("parent"):
        with span("a"):
            time.sleep(0.02)
        time.sleep(0.02)
        with span("b"):
            time.sleep(0.02)

    def parts(s: Span) -> float:
        children = timeline.children().get(s.id, [])
        return sum(c.wall_s for c in children) + g.find_gaps(timeline)[s.id].wall_s

    for s in timeline.spans:
        if s.id in timeline.children():
            assert parts(s) == pytest.approx(s.wall_s, abs=1e-6)
