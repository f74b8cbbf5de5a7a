"""Spans: named pieces of work, measured on the thread that does them.

    with span("ntt", bytes=a.nbytes, items=len(a)) as s:
        ...
        s.attributes["form"] = "montgomery"

    @span("prove")
    def prove(key, witness): ...        # functions, coroutines and generators

A span is recorded while a `Timeline` is open and costs next to nothing otherwise. Its parent is the span that is open
in the same context (contextvars), so asyncio tasks are followed. A thread starts with an empty context: its spans hang
below the root of the timeline that was opened last; `follow` hands a thread the open span instead.

A decorated function's span has its teardown marked (`trace.teardown`): the time in which its locals are destroyed.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, ParamSpec, TypeVar, cast

from snarkline.native import core

from .teardown import watch_return

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

span = core.span


def current_span() -> span | None:
    """The span that is open in this context, None if there is none."""
    return core.open_span()


def follow(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, to be run on another thread with this context: its spans become children of the open span."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return call


def decorate(pattern: span, function: F) -> F:
    """Each call of `function` is a span like `pattern`; each resumption, where it is a generator.

    Raises TypeError for what is no function or method: a class would no longer be one.
    """
    if isinstance(function, staticmethod | classmethod):
        return cast(F, type(function)(decorate(pattern, function.__func__)))
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{pattern!r} decorates a function or a method, found {function!r}")
    if inspect.isasyncgenfunction(function):
        wrapper: Any = _async_generator(pattern, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(pattern, function)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(pattern, function)
    else:
        wrapper = _call(pattern, function)
    return cast(F, functools.wraps(function)(wrapper))


def _fresh(pattern: span) -> span:
    return span(pattern.name, bytes=pattern.bytes, items=pattern.items, **pattern.attributes)


def _call(pattern: span, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with _fresh(pattern) as s:
            watch_return(s, function)
            result = function(*args, **kwargs)
            del args, kwargs  # arguments that die with the call die inside its span
        return result

    return call


def _coroutine(pattern: span, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _fresh(pattern) as s:
            watch_return(s, function)
            result = await function(*args, **kwargs)
            del args, kwargs
        return result

    return call


def _generator(pattern: span, function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator shares its caller's context, so a span may not stay open while it is suspended."""

    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        del args, kwargs
        resume, value = inner.send, None
        while True:
            with _fresh(pattern) as s:
                watch_return(s, function)
                try:
                    item = resume(value)
                except StopIteration as stop:
                    return stop.value
            try:
                value = yield item
                resume = inner.send
            except GeneratorExit:
                with _fresh(pattern):
                    inner.close()
                raise
            except BaseException as error:
                resume, value = inner.throw, error

    return call


def _async_generator(pattern: span, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        del args, kwargs
        resume, value = inner.asend, None
        while True:
            with _fresh(pattern) as s:
                watch_return(s, function)
                try:
                    item = await resume(value)
                except StopAsyncIteration:
                    return
            try:
                value = yield item
                resume = inner.asend
            except GeneratorExit:
                with _fresh(pattern):
                    await inner.aclose()
                raise
            except BaseException as error:
                resume, value = inner.athrow, error

    return call


core.set_span_decorator(decorate)
core.promote_trace_symbols()
