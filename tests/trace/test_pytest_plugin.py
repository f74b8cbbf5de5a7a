from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import time
from snarkline.trace import span

class Slow:
    def __del__(self): time.sleep(0.1)

def slow(): held = Slow()
def quick(): held = 1

@span("decorated")
def decorated(): held = Slow()

def test_quick(teardown_bound):
    with teardown_bound(0.05, calls=[quick]) as timeline:
        quick()
    assert any(s.name == "quick" for s in timeline.spans)

def test_slow(teardown_bound):
    with teardown_bound(0.05, calls=[slow]):
        slow()

def test_decorated(teardown_bound):
    with teardown_bound(0.05):
        decorated()
"""


def test_a_test_with_a_ghost_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['snarkline.trace.pytest_plugin']")
    pytester.makepyfile(PROGRAM)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*slow: * of teardown, bound 50.00 ms, released *"])
