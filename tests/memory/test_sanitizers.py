"""The arena's stress program under ThreadSanitizer, AddressSanitizer (with leaks) and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "sanitizers"

# The runtimes of ThreadSanitizer and AddressSanitizer do not survive a fork among threads: the child waits for a lock
# of their allocators that a vanished thread holds. glibc's allocator does.
FORKS = {"thread": 0, "address": 0, "undefined": 20}


@pytest.mark.sanitizer
@pytest.mark.parametrize("sanitizer", FORKS)
def test_arena_under_stress(sanitizer: str, tmp_path: Path) -> None:
    subprocess.run(["cmake", "-S", SOURCES, "-B", tmp_path, f"-DSANITIZER={sanitizer}"], check=True, timeout=60)
    subprocess.run(["cmake", "--build", tmp_path], check=True, timeout=240)
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    command = [tmp_path / "arena_stress", "300", str(FORKS[sanitizer])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("ok\n")
