"""Spans: named pieces of work, measured on the thread that does them.

    with span("ntt", bytes=a.nbytes, items=len(a)) as s:
        ...
        s.attributes["form"] = "montgomery"

    @span("prove")
    def prove(key, witness): ...        # also async functions and generators' first call

A span is recorded while a `Timeline` is open and costs next to nothing otherwise. Its parent is the span that is open
in the same context (contextvars), so asyncio tasks are followed. A thread starts with an empty context: its spans go
to the timeline that is open in the process, below its root; `follow` hands the parent to the thread instead.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import resource
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_current: contextvars.ContextVar[span | None] = contextvars.ContextVar("snarkline_span", default=None)


class Recorder:
    """Where finished spans go: the open timelines of the process, innermost last."""

    def __init__(self) -> None:
        self.sinks: list[Callable[[span], None]] = []
        self.count = 0


RECORDER = Recorder()


class span:
    """A named piece of work: a context manager and a decorator.

    `bytes` and `items` say how much was worked on; further keywords are kept as attributes. All three can be set
    until the span ends.
    """

    __slots__ = ("attributes", "begin", "bytes", "end", "error", "id", "items", "name", "parent", "thread", "token")

    def __init__(self, name: str, *, bytes: int | None = None, items: int | None = None, **attributes: Any) -> None:
        self.name = name
        self.bytes = bytes
        self.items = items
        self.attributes = attributes
        self.token: contextvars.Token[span | None] | None = None

    def __enter__(self) -> span:
        if RECORDER.sinks:
            parent = _current.get()
            RECORDER.count += 1
            self.id = RECORDER.count
            self.parent = 0 if parent is None else parent.id
            self.thread = threading.get_native_id()
            self.error: str | None = None
            self.token = _current.set(self)
            self.begin = _moment()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.token is not None:
            self.end = _moment()
            _current.reset(self.token)
            self.token = None
            self.error = None if kind is None else kind.__name__
            for sink in RECORDER.sinks:
                sink(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Each call of `function` is a span of this name."""
        name, size, items, attributes = self.name, self.bytes, self.items, self.attributes

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with span(name, bytes=size, items=items, **attributes):
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            with span(name, bytes=size, items=items, **attributes):
                return await cast(Any, function(*args, **kwargs))

        return cast(Callable[P, R], call_async) if inspect.iscoroutinefunction(function) else call


def _moment() -> tuple[int, resource.struct_rusage]:
    return time.monotonic_ns(), resource.getrusage(resource.RUSAGE_THREAD)


def current_span() -> span | None:
    """The span that is open in this context, None if there is none."""
    return _current.get()


def follow(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, to be run on another thread with this context: its spans become children of the open span."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return call
