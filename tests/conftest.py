"""What all tests share: the folder of vectors, snarkjs, and the rule that a skip must be expected."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SNARKJS = TESTS / "node" / "node_modules" / "snarkjs" / "cli.js"


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> Iterator[None]:
    """SIGINT as a terminal's program has it: a worker of pytest-xdist ignores it, and so would its children."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(scope="session")
def vectors() -> Path:
    """Files made by other programs; SOURCES.md there says which and how."""
    return TESTS / "vectors"


@pytest.fixture(scope="session")
def snarkjs() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs snarkjs with the given arguments."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if not SNARKJS.exists():
        pytest.skip("snarkjs is not installed (npm ci --prefix tests/node)")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [node, SNARKJS, *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False
        )

    return run


def _expected(reason: str) -> bool:
    lines = (TESTS / "EXPECTED_SKIPS").read_text().splitlines()
    return any(re.fullmatch(line, reason) for line in lines if line and not line.startswith("#"))


def _skips(terminalreporter: pytest.TerminalReporter) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    return reasons


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print skips by reason."""
    for reason, count in _skips(terminalreporter).items():
        note = "" if _expected(reason) else "   <- not in tests/EXPECTED_SKIPS"
        terminalreporter.write_line(f"skipped {count}: {reason}{note}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that skipped something for a reason that is not listed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not all(map(_expected, _skips(reporter))) and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
