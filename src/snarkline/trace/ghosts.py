"""Ghosts: functions that take long to be over after their last statement, found in any Python program.

    found = find_ghosts(["script.py", "argument"])
    for ghost in found.ghosts: print(ghost.function, ghost.teardown_s)

The program runs in a process of its own, with every return watched: the time from a return until the caller's next
instruction is the function's teardown, in every thread. The same holds for locals that an exception kept alive and that
die where it is handled. Time in which the thread had no processor is left out.

Functions that return often and never with anything to tear down are watched closely for a part of the time, so that
call-heavy programs are slowed down at most three times. The rest of the time the core's watchdog looks every few
milliseconds whether one of them is still where it returned to (csrc/bind/ghosts_watchdog.h), so that a single teardown
of 50 ms or more is found in any case. `exact` watches every return closely. With `native`, the release shim
(csrc/preload) is loaded into the process, and what native code gives back while a function runs is charged to that
function too. Child processes are not watched.
"""

from __future__ import annotations

import _thread
import json
import opcode
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from snarkline.errors import InputError
from snarkline.native import core

from .teardown import free_tool

CALLS = ("CALL", "CALL_KW", "CALL_FUNCTION_EX") if sys.version_info >= (3, 12) else ("CALL",)
"""Instructions whose callee may be C code that goes on for long after a Python function has returned to it."""

WINDOW_S = 0.1
"""Processor time after which functions that went unwatched are looked at again."""

LEAST_S = 0.002
LEAST_SHARE = 0.0005
"""A ghost costs at least 2 ms, and at least this share of the program's time."""

LEAST_CALL_S = 2e-6
"""And this much a call: below it lie the hooks themselves, when other processes want the processor."""

LONG_S, LARGE_BYTES = 0.045, 32 << 20
"""A single teardown as long as this is a ghost, however often the function was called. A fourth of it is enough where
so much was released."""

SLOWDOWN_FROM_S = 1.0
"""What watching costs is measured, which takes 0.3 s, after programs that took this long."""

NOISE_NS = 5_000_000
"""An interruption of the watched program is shorter than this."""

OWN_FOLDER = str(Path(__file__).parent)


@dataclass(frozen=True)
class Ghost:
    """A function and what its teardowns cost together. `calls` counts the watched returns."""

    function: str
    file: str
    line: int
    teardown_s: float
    released_bytes: int
    calls: int
    worst_s: float
    """The longest of them."""


@dataclass(frozen=True)
class Found:
    """What was found in a program. `status` is its exit status."""

    ghosts: list[Ghost]
    status: int
    wall_s: float
    slowdown: float | None
    """How many times longer calls that do nothing took, being watched. None for a program of under a second."""
    native: bool
    """Native code was looked at, through the release shim."""


class Watcher:
    """Watches the returns of this process between `start` and `stop`."""

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self._stop = _thread.allocate_lock()
        self._tool = -1

    def start(self) -> None:
        monitoring: Any = getattr(sys, "monitoring", None)
        calls = [opcode.opmap[name] for name in CALLS if name in opcode.opmap]
        disable = None if monitoring is None else monitoring.DISABLE
        samples = monitoring is not None and not self._exact  # a profile hook is told of every return anyway
        core.ghosts_set_up(disable, calls, opcode.opmap["POP_EXCEPT"], samples)
        core.ghosts_forget()
        if monitoring is None:
            threading.setprofile(lambda *_: core.ghosts_attach())
            core.ghosts_attach()
        else:
            self._listen(monitoring)
        calibrate()
        core.ghosts_forget()

    def _listen(self, monitoring: Any) -> None:
        events = monitoring.events
        self._tool = free_tool(monitoring, "snarkline.ghosts")
        monitoring.register_callback(self._tool, events.PY_RETURN, core.ghosts_on_return)
        monitoring.register_callback(self._tool, events.PY_UNWIND, core.ghosts_on_unwind)
        monitoring.register_callback(self._tool, events.INSTRUCTION, core.ghosts_on_instruction)
        monitoring.set_events(self._tool, events.PY_RETURN | events.PY_UNWIND | events.INSTRUCTION)
        if not self._exact:
            core.ghosts_watchdog_start()
        self._stop.acquire()
        # Not a threading.Thread: the program shall not see it.
        _thread.start_new_thread(self._open_windows, (monitoring,))

    def _open_windows(self, monitoring: Any) -> None:
        opened = time.process_time()
        while not self._stop.acquire(timeout=WINDOW_S):
            if time.process_time() - opened < WINDOW_S:
                continue
            opened = time.process_time()
            core.ghosts_next_window(monitoring.restart_events)
        self._stop.release()

    def stop(self) -> list[Ghost]:
        """All functions that had any teardown, worst first."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            threading.setprofile(None)
            core.ghosts_detach()
        else:
            self._stop.release()
            core.ghosts_watchdog_stop()
            monitoring.set_events(self._tool, 0)
            for event in ("PY_RETURN", "PY_UNWIND", "INSTRUCTION"):
                monitoring.register_callback(self._tool, getattr(monitoring.events, event), None)
            monitoring.free_tool_id(self._tool)
        ghosts = [_ghost(*row) for row in core.ghosts_results() if _is_the_programs(row[0]) and not _is_noise(*row)]
        return sorted(ghosts, key=lambda g: -g.teardown_s)


def _is_the_programs(code: CodeType) -> bool:
    return not code.co_filename.startswith((OWN_FOLDER, "<frozen importlib"))


def _is_noise(code: CodeType, calls: int, torn: int, teardown_ns: int, worst_ns: int, released_bytes: int) -> bool:
    """Other than a ghost's: hardly ever, short, and nothing released. Interrupts and a busy host look like that."""
    return torn * 1000 < calls and teardown_ns < torn * NOISE_NS and released_bytes < 1 << 20


def _ghost(code: CodeType, calls: int, torn: int, teardown_ns: int, worst_ns: int, released_bytes: int) -> Ghost:
    place = code.co_qualname, code.co_filename, code.co_firstlineno
    return Ghost(*place, teardown_ns * 1e-9, released_bytes, calls, worst_ns * 1e-9)


def _is_long(ghost: Ghost) -> bool:
    return ghost.worst_s >= (LONG_S if ghost.released_bytes < LARGE_BYTES else LONG_S / 4)


def calibrate() -> None:
    """Tells the core how far apart the C stacks of two events are, of one interpreter loop or of one in another."""

    def callee(_: int) -> int:
        return 1

    def direct() -> int:
        callee(0)
        distance = core.ghosts_last_distance()
        return distance

    def through_c() -> int:
        list(map(callee, (0,)))
        distance = core.ghosts_last_distance()
        return distance

    near, far = direct(), through_c()
    if far - near > 64:
        core.ghosts_set_slack((near + far) // 2)


def call_heavy(n: int) -> int:
    """Calls that do next to nothing, as a worst case."""
    return n if n < 2 else call_heavy(n - 1) + call_heavy(n - 2)


def measure_call_heavy(seconds: float = 0.15) -> float:
    """CPU seconds of a round, over several windows."""
    begin, rounds = time.thread_time(), 0
    while time.thread_time() - begin < seconds:
        call_heavy(15)
        rounds += 1
    return (time.thread_time() - begin) / rounds


def find_ghosts(
    program: Sequence[str],
    *,
    module: bool = False,
    native: bool | None = None,
    exact: bool = False,
    output_to_stderr: bool = False,
) -> Found:
    """Runs a program and returns its ghosts, worst first.

    `program` is a script's path, or a module's name with `module`, followed by the program's arguments. `native` looks
    at native code too; None does so where the release shim can be had. Raises InputError for a program that is not
    there, or one that left no results (it was killed, or called os._exit).
    """
    if not module and not Path(program[0]).is_file():
        raise InputError(f"{program[0]}: expected a Python script, found no such file")
    environment = dict(os.environ)
    if native or (native is None and shim_file().is_file()):
        environment["LD_PRELOAD"] = " ".join([shim_path(), *environment.get("LD_PRELOAD", "").split()])
    with tempfile.TemporaryDirectory(prefix="snarkline-ghosts-") as folder:
        results = Path(folder, "results.json")
        task = {
            "program": list(program),
            "module": module,
            "exact": exact,
            "results": str(results),
            "preload": os.environ.get("LD_PRELOAD"),
        }
        command = [sys.executable, "-c", f"from {__package__}.ghosts_child import main; main()", json.dumps(task)]
        status = subprocess.run(
            command, env=environment, stdout=2 if output_to_stderr else None, check=False
        ).returncode
        if not results.exists():
            raise InputError(f"{program[0]}: the program ended with status {status} before its teardowns were counted")
        data = json.loads(results.read_text(encoding="utf-8"))
    if data["missing"] is not None:
        raise InputError(f"{program[0]}: expected a Python module, found none ({data['missing']})")
    ghosts = [Ghost(**g) for g in data["ghosts"]]
    least = max(LEAST_S, LEAST_SHARE * data["wall_s"])
    found = [g for g in ghosts if g.teardown_s >= max(least, g.calls * LEAST_CALL_S) or _is_long(g)]
    return Found(found, status, data["wall_s"], data["slowdown"], data["native"])


def shim_file() -> Path:
    """Where the release shim is, in a package that was built with it."""
    return Path(core.__file__ or "").with_name("_core_preload.so")


def shim_path() -> str:
    """The release shim's file. Raises InputError where the package was built without it."""
    path = shim_file()
    if not path.is_file():
        raise InputError(f"{path}: expected the release shim, found no such file")
    return str(path)
