"""An arena that leaves nothing behind, and Python scripts in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from snarkline.memory import Arena


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena
    assert arena.drain(30)


@pytest.fixture
def run_script() -> Callable[..., str]:
    """Runs a script in a fresh process; asserts exit code 0 and a silent stderr. What it printed."""

    def run(script: str, *args: str, timeout: float = 60) -> str:
        command = [sys.executable, "-X", "faulthandler", "-W", "ignore::DeprecationWarning", "-c"]
        done = subprocess.run(
            [*command, textwrap.dedent(script), *args], capture_output=True, text=True, timeout=timeout, env=os.environ
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run
