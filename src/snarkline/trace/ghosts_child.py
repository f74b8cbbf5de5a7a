"""The process in which `snarkline ghosts` runs a program, watched from its first line until its threads have ended."""

from __future__ import annotations

import io
import json
import os
import runpy
import sys
import threading
import time
import types
from dataclasses import asdict
from pathlib import Path
from typing import Any

from snarkline.native import core

from .ghosts import SLOWDOWN_FROM_S, Watcher, measure_call_heavy


class MissingError(Exception):
    """There is no such module to run."""


def main() -> None:
    """Runs the task in sys.argv[1] (see `ghosts.find_ghosts`) and exits with the program's status."""
    task = json.loads(sys.argv[1])
    if task["preload"] is None:
        os.environ.pop("LD_PRELOAD", None)  # not for the program's own child processes
    else:
        os.environ["LD_PRELOAD"] = task["preload"]
    sys.argv[:] = task["program"]
    watcher = Watcher(exact=task["exact"])
    watcher.start()
    begin = time.perf_counter()
    status, missing = 1, None
    try:
        status = run(task["program"][0], module=task["module"])
    except MissingError as error:
        missing = str(error)
    wait_for_threads()
    wall_s = time.perf_counter() - begin
    watched = measure_call_heavy() if wall_s >= SLOWDOWN_FROM_S else None
    data = {
        "ghosts": [asdict(g) for g in watcher.stop()],
        "wall_s": wall_s,
        "slowdown": watched and watched / measure_call_heavy(),
        "native": core.release_shim_loaded(),
        "missing": missing,
    }
    Path(task["results"]).write_text(json.dumps(data), encoding="utf-8")
    sys.exit(status)


def run(name: str, *, module: bool) -> int:
    """Runs the program as `__main__`; the exit status that the interpreter would have given it.

    Raises MissingError for a module that is not there.
    """
    try:
        if module:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(name).resolve().parent)
            run_script(name)
    except SystemExit as stop:
        return exit_status(stop.code)
    except BaseException as error:
        trace = error.__traceback__
        if module and isinstance(error, ImportError) and _raised_by_runpy(trace):
            raise MissingError(error) from None
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # the program's own frames only
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _raised_by_runpy(trace: types.TracebackType | None) -> bool:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "runpy"


def run_script(path: str) -> None:
    path = str(Path(path).absolute())  # as the interpreter has it, links not followed
    main_module = types.ModuleType("__main__")
    main_module.__file__ = path
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    exec(code, main_module.__dict__)


def exit_status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def wait_for_threads() -> None:
    """As the interpreter does before it ends."""
    while True:
        others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
        if not others:
            return
        for t in others:
            t.join()
