"""The teardown boundary: three moments of a traced call.

    entered ---- work ---- last statement done ---- locals destroyed ---- back in the caller
                                               |<------- teardown ------->|

The interpreter tells of a return before it destroys the frame's locals: that is the second moment. The third is the
caller's next instruction, by an event that is armed at the return and fires once, so that nothing that the caller
computes afterwards counts as teardown. From Python 3.12 on both are `sys.monitoring` events of the traced functions
alone; before, a profile hook and a one-shot opcode trace do the same, and every call of the process pays for the hook.

A decorated function's caller is its wrapper, which needs no event for the third moment. Functions that are traced with
no change to their code are those named by `Timeline(calls=[...])`. Where a return goes to C code (a callback of a C
function), the third moment is the next instruction of the nearest Python frame.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, Protocol

from snarkline.errors import InputError
from snarkline.native import core

GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Hook(Protocol):
    """What tells of returns: `watch` names the codes whose calls or returns count."""

    def stop(self) -> None: ...
    def attach(self) -> None:
        """Listen to the calling thread."""

    def watch(self, code: CodeType, *, opens: bool) -> None:
        """Tell of the returns of `code`; with `opens`, its calls are spans as well."""


class Boundary:
    """The process's hook, shared by its open timelines: the interpreter has one set of hooks too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._hook: Hook | None = None
        self._watched: dict[int, CodeType] = {}

    def open(self, codes: Iterable[CodeType]) -> None:
        with self._lock:
            self._users += 1
            for code in codes:
                self._watch(code, opens=True)

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._hook is not None:
                self._hook.stop()
                self._hook = None
                self._watched.clear()

    def watch_return(self, s: core.span, code: CodeType) -> None:
        with self._lock:
            if not self._users:
                return
            if id(code) not in self._watched:
                self._watch(code, opens=False)
            hook = self._hook
        if hook is not None:
            hook.attach()
            s.watch = code

    def _watch(self, code: CodeType, *, opens: bool) -> None:
        if self._hook is None:
            self._hook = make_hook()
        self._watched[id(code)] = code
        self._hook.watch(code, opens=opens)
        self._hook.attach()


BOUNDARY = Boundary()


def watch_return(s: core.span, function: Callable[..., Any]) -> None:
    """The return of `function`, if it is written in Python, is the last statement of `s`, if that is recorded."""
    code = getattr(function, "__code__", None)
    if s.is_open and code is not None:
        BOUNDARY.watch_return(s, code)


def code_of(call: Callable[..., Any] | str) -> CodeType:
    """The code that is run by a function, a method, or what a string "package.module:name.name" names."""
    target: Any = call
    if isinstance(call, str):
        module, colon, path = call.partition(":")
        if not colon:
            raise InputError(f"traced call: expected 'module:name', found {call!r}")
        target = importlib.import_module(module)
        for name in path.split("."):
            target = getattr(target, name)
    target = inspect.unwrap(target)
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if not isinstance(code, CodeType):
        raise InputError(f"traced call: expected a function written in Python, found {call!r}")
    return code


class Pending(threading.local):
    """Calls of a thread that have returned and whose caller has not yet gone on."""

    def __init__(self) -> None:
        self.calls: list[tuple[core.span, FrameType]] = []


class Calls:
    """Opens, marks and ends the spans of traced calls; both hooks drive it."""

    def __init__(self, arm: Callable[[FrameType], None], disarm: Callable[[FrameType], None]) -> None:
        self._arm, self._disarm = arm, disarm
        self._pending = Pending()

    def entered(self, code: CodeType, caller: FrameType | None) -> None:
        if caller is not None:
            self.back(caller)  # a C function called again: the call before this one is over
        s = core.span(code.co_qualname)
        s.__enter__()
        if s.is_open:
            s.watch = code

    def suspended(self, code: CodeType) -> None:
        s = core.open_span()
        if s is not None and s.watch is code:
            s.__exit__(None, None, None)

    def returned(self, code: CodeType, caller: FrameType | None, *, ends: bool) -> None:
        """`ends`: the span is to be ended when the caller goes on; else its wrapper ends it."""
        s = core.open_span()
        if s is None or s.watch is not code:
            return
        s.last_statement()
        if not ends:
            return
        if caller is None:
            s.__exit__(None, None, None)
            return
        self._pending.calls.append((s, caller))
        self._arm(caller)

    def back(self, caller: FrameType) -> None:
        """`caller` has gone on, or has been left."""
        pending = self._pending.calls
        while pending and pending[-1][1] is caller:
            s, _ = pending.pop()
            s.__exit__(None, None, None)
            self._disarm(caller)


class MonitoringHook:
    """Python 3.12 and later."""

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 (absent from older interpreters' types)
        self._opens: dict[int, CodeType] = {}
        self._events: dict[int, tuple[CodeType, int]] = {}
        self._armed: dict[int, int] = {}
        self._lock = threading.Lock()
        self._calls = Calls(self._arm, self._disarm)
        monitoring, events = self._monitoring, self._monitoring.events
        self._tool = free_tool(monitoring, "snarkline.trace")
        for event, callback in (
            (events.PY_START, self._on_start),
            (events.PY_RESUME, self._on_resume),
            (events.PY_THROW, self._on_resume),
            (events.PY_YIELD, self._on_yield),
            (events.PY_RETURN, self._on_return),
            (events.PY_UNWIND, self._on_unwind),
            (events.INSTRUCTION, self._on_instruction),
        ):
            monitoring.register_callback(self._tool, event, callback)

    def attach(self) -> None:
        pass  # the events are those of every thread

    def stop(self) -> None:
        monitoring = self._monitoring
        monitoring.set_events(self._tool, 0)
        for code, _ in self._events.values():
            monitoring.set_local_events(self._tool, code, 0)
        for event in ("PY_START", "PY_RESUME", "PY_THROW", "PY_YIELD", "PY_RETURN", "PY_UNWIND", "INSTRUCTION"):
            monitoring.register_callback(self._tool, getattr(monitoring.events, event), None)
        monitoring.free_tool_id(self._tool)

    def watch(self, code: CodeType, *, opens: bool) -> None:
        events = self._monitoring.events
        wanted = events.PY_RETURN
        if opens:
            self._opens[id(code)] = code
            wanted |= events.PY_START
            if code.co_flags & GENERATORS:
                wanted |= events.PY_RESUME | events.PY_YIELD
        with self._lock:
            self._set(code, self._events.get(id(code), (code, 0))[1] | wanted)
        # Unwinding has no local events; PY_THROW is only needed where a generator is entered by an exception.
        everywhere = events.PY_UNWIND | (events.PY_THROW if opens and code.co_flags & GENERATORS else 0)
        self._monitoring.set_events(self._tool, self._monitoring.get_events(self._tool) | everywhere)

    def _set(self, code: CodeType, events: int) -> None:
        self._events[id(code)] = code, events
        self._monitoring.set_local_events(self._tool, code, events)

    def _arm(self, caller: FrameType) -> None:
        code = caller.f_code
        with self._lock:
            self._armed[id(code)] = self._armed.get(id(code), 0) + 1
            self._set(code, self._events.get(id(code), (code, 0))[1] | self._monitoring.events.INSTRUCTION)

    def _disarm(self, caller: FrameType) -> None:
        code = caller.f_code
        with self._lock:
            self._armed[id(code)] -= 1
            if self._armed[id(code)] == 0:
                self._set(code, self._events[id(code)][1] & ~self._monitoring.events.INSTRUCTION)

    def _on_start(self, code: CodeType, offset: int) -> None:
        if id(code) in self._opens:
            self._calls.entered(code, sys._getframe(1).f_back)

    def _on_resume(self, code: CodeType, offset: int, error: BaseException | None = None) -> None:
        if id(code) in self._opens and code.co_flags & GENERATORS:
            self._calls.entered(code, sys._getframe(1).f_back)

    def _on_yield(self, code: CodeType, offset: int, value: object) -> None:
        if id(code) in self._opens and code.co_flags & GENERATORS:
            self._calls.suspended(code)

    def _on_return(self, code: CodeType, offset: int, value: object) -> None:
        if id(code) in self._events:
            self._calls.returned(code, sys._getframe(1).f_back, ends=id(code) in self._opens)

    def _on_unwind(self, code: CodeType, offset: int, error: BaseException) -> None:
        if id(code) in self._events:
            frame = sys._getframe(1)
            self._calls.back(frame)
            self._calls.returned(code, frame.f_back, ends=id(code) in self._opens)

    def _on_instruction(self, code: CodeType, offset: int) -> None:
        self._calls.back(sys._getframe(1))


class ProfileHook:
    """Python 3.11: threads that are attached or start later. Other profilers and tracers are left alone."""

    def __init__(self) -> None:
        self._watched: dict[int, CodeType] = {}
        self._opens: dict[int, CodeType] = {}
        self._calls = Calls(self._arm, self._disarm)
        threading.setprofile(self._on_event)

    def attach(self) -> None:
        if sys.getprofile() is None:
            sys.setprofile(self._on_event)

    def stop(self) -> None:
        self._opens.clear()
        self._watched.clear()
        threading.setprofile(None)
        if sys.getprofile() == self._on_event:
            sys.setprofile(None)

    def watch(self, code: CodeType, *, opens: bool) -> None:
        self._watched[id(code)] = code
        if opens:
            self._opens[id(code)] = code

    def _on_event(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or id(code) not in self._watched:
            if not self._watched:  # stopped by another thread
                sys.setprofile(None)
            return
        opens = id(code) in self._opens
        if event == "call":
            # A coroutine stays open while it is suspended; the argument of RESUME is 0 where a frame begins.
            if opens and (code.co_flags & GENERATORS or code.co_code[frame.f_lasti + 1] == 0):
                self._calls.entered(code, frame.f_back)
        elif frame.f_lasti >= 0 and code.co_code[frame.f_lasti] == YIELD_VALUE:
            if opens and code.co_flags & GENERATORS:
                self._calls.suspended(code)
        else:
            self._calls.returned(code, frame.f_back, ends=opens)

    def _arm(self, caller: FrameType) -> None:
        if sys.gettrace() in (None, self._on_trace):
            caller.f_trace_opcodes, caller.f_trace_lines = True, False
            caller.f_trace = self._on_opcode
            sys.settrace(self._on_trace)

    def _disarm(self, caller: FrameType) -> None:
        caller.f_trace = None
        caller.f_trace_opcodes, caller.f_trace_lines = False, True
        if sys.gettrace() == self._on_trace:
            sys.settrace(None)

    def _on_trace(self, frame: FrameType, event: str, arg: object) -> None:
        return None

    def _on_opcode(self, frame: FrameType, event: str, arg: object) -> None:
        self._calls.back(frame)


def free_tool(monitoring: Any, name: str) -> int:
    """A `sys.monitoring` tool id that nobody uses, taken under `name`."""
    for tool in (monitoring.PROFILER_ID, 3, 4, monitoring.COVERAGE_ID, monitoring.OPTIMIZER_ID):
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, name)
            return int(tool)
    raise RuntimeError("every sys.monitoring tool id is in use")


def make_hook() -> Hook:
    return MonitoringHook() if hasattr(sys, "monitoring") else ProfileHook()


YIELD_VALUE = __import__("opcode").opmap["YIELD_VALUE"]
