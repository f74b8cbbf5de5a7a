"""Pytest fixtures: a test fails when its calls are slow to be over.

pytest_plugins = ["snarkline.trace.pytest_plugin"]         # in conftest.py

def test_prove(teardown_bound):
    with teardown_bound(0.05, calls=["app:prove"]) as timeline:
        app.prove(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from .report import amount, duration
from .timeline import Timeline

TeardownBound = Callable[..., AbstractContextManager[Timeline]]


@contextmanager
def bounded(seconds: float, calls: Iterable[Callable[..., Any] | str] = ()) -> Iterator[Timeline]:
    """A timeline over a block in which no traced call's teardown may exceed `seconds`.

    Traced are `calls` (functions or "module:name") and functions decorated with `span`. Raises AssertionError.
    """
    with Timeline(calls=calls) as timeline:
        yield timeline
    slow = [s for s in timeline.spans if s.teardown_s is not None and s.teardown_s > seconds]
    if slow:
        lines = [
            f"{s.name}: {duration(s.teardown_s or 0.0)} of teardown, bound {duration(seconds)}, "
            f"released {amount(s.released_bytes or 0)}"
            for s in sorted(slow, key=lambda s: -(s.teardown_s or 0.0))
        ]
        raise AssertionError("\n".join(lines))


@pytest.fixture
def teardown_bound() -> TeardownBound:
    """`bounded`, as a fixture: fails the test whose teardown exceeds the bound."""
    return bounded
