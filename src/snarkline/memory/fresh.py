"""A measurement in a process of its own, in which nothing that was done before plays a part."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from snarkline.errors import BudgetError, DeviceError, InputError, InternalError

RAISED = 100
"""The exit code of a process whose standard output is an error, pickled."""


def run_fresh(module: str, run: Any, pages: str, *words: str) -> str:
    """What `python -m MODULE WORDS` answers (`answer`), in a process of its own that is told the dataclass `run`.

    Raises InternalError if it ends otherwise than with an answer, and the errors that `answer` sends.
    """
    command = [sys.executable, "-m", module, *words]
    environment = {**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0" if pages == "4k" else "1"}
    done = subprocess.run(command, input=json.dumps(asdict(run)).encode(), capture_output=True, env=environment)
    if done.returncode == RAISED:
        raise pickle.loads(done.stdout)
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip()
        raise InternalError(f"a run of {run} ended with {done.returncode}: {told}")
    return done.stdout.decode()


def answer(work: Callable[[dict[str, Any]], str]) -> None:
    """The process's side: prints what `work` makes of the fields of the run.

    An error that is no fault of the program (bad input, short memory, a device, the system) is sent as it is, to be
    raised by `run_fresh`; any other ends the process with its traceback.
    """
    fields = json.load(sys.stdin)
    try:
        text = work(fields)
    except (InputError, BudgetError, DeviceError, OSError) as error:
        sys.stdout.buffer.write(pickle.dumps(error))
        raise SystemExit(RAISED) from None
    print(text)
