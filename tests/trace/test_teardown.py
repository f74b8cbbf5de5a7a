"""The boundary: entered, last statement done, back in the caller."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from snarkline.errors import InputError
from snarkline.trace import Span, Timeline, span, teardown

HOOKS = [teardown.ProfileHook] if sys.version_info < (3, 12) else [teardown.MonitoringHook, teardown.ProfileHook]


@pytest.fixture(autouse=True, params=HOOKS)
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is run with each of the hooks that the interpreter allows."""
    monkeypatch.setattr(teardown, "make_hook", request.param)


TEARDOWN = 0.05


class Slow:
    """An object whose destructor takes TEARDOWN seconds."""

    def __del__(self) -> None:
        time.sleep(TEARDOWN)


def owner() -> int:
    held = Slow()
    return 0 if held else 1


def failing() -> None:
    held = Slow()
    raise KeyError(held is None)


def clean() -> int:
    return 1


def spans_of(timeline: Timeline, name: str) -> list[Span]:
    return [s for s in timeline.spans if s.name == name]


def only(timeline: Timeline, name: str) -> Span:
    (found,) = spans_of(timeline, name)
    return found


def assert_teardown(s: Span, seconds: float = TEARDOWN) -> None:
    assert s.teardown_s is not None
    assert seconds <= s.teardown_s < seconds + 0.2
    assert s.inner_s + s.teardown_s == pytest.approx(s.wall_s)


def assert_no_teardown(s: Span) -> None:
    assert s.teardown_s is not None
    assert s.teardown_s < TEARDOWN / 2


def test_a_decorated_function() -> None:
    @span("work")
    def work() -> int:
        held = Slow()
        time.sleep(0.02)
        return 0 if held else 1

    with Timeline() as timeline:
        work()
    s = only(timeline, "work")
    assert_teardown(s)
    assert 0.02 <= s.inner_s < 0.2


def test_an_argument_that_dies_with_the_call() -> None:
    @span("work")
    def work(held: Slow) -> None:
        pass

    with Timeline() as timeline:
        work(Slow())
    assert_teardown(only(timeline, "work"))


def test_a_function_that_knows_of_nothing() -> None:
    with Timeline(calls=[owner]) as timeline:
        owner()
        owner()
    first, second = spans_of(timeline, "owner")
    assert_teardown(first)
    assert_teardown(second)
    assert first.parent == timeline.root.id


def test_a_function_by_its_name() -> None:
    with Timeline(calls=[f"{__name__}:owner"]) as timeline:
        owner()
    assert_teardown(only(timeline, "owner"))


@pytest.mark.parametrize("bad", ["no_colon", len])
def test_what_cannot_be_traced_is_refused(bad: str | Callable[..., object]) -> None:
    with pytest.raises(InputError, match="traced call"):
        Timeline(calls=[bad])


def computes_after(call: Callable[[], object]) -> float:
    call()
    begin = time.perf_counter()
    total = 0
    while time.perf_counter() - begin < 1.0:
        for i in range(2000):
            total += i * i
    return total


def sleeps_after(call: Callable[[], object]) -> None:
    call()
    time.sleep(1.0)


@pytest.mark.parametrize("caller", [computes_after, sleeps_after])
@pytest.mark.parametrize("callee", [clean, owner])
def test_what_the_caller_does_next_is_no_teardown(
    caller: Callable[[Callable[[], object]], object], callee: Callable[[], int]
) -> None:
    with Timeline(calls=[callee]) as timeline:
        caller(callee)
    s = only(timeline, callee.__name__)
    assert_teardown(s) if callee is owner else assert_no_teardown(s)


def test_no_hook_is_left_behind() -> None:
    with Timeline(calls=[owner]):
        owner()
    with Timeline() as timeline:
        owner()
    assert [s.name for s in timeline.spans] == ["timeline"]


def test_threads_each_with_their_own_calls() -> None:
    def work() -> None:
        for _ in range(3):
            owner()

    with Timeline(calls=[owner]) as timeline:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    spans = spans_of(timeline, "owner")
    assert len(spans) == 12 and len({s.thread for s in spans}) == 4
    for s in spans:
        assert_teardown(s)


def test_a_thread_whose_target_is_traced() -> None:
    with Timeline(calls=[owner]) as timeline:
        t = threading.Thread(target=owner)
        t.start()
        t.join()
    assert_teardown(only(timeline, "owner"))


def recurse(n: int) -> int:
    held = Slow() if n == 1 else None
    return n if n == 0 else recurse(n - 1) + (held is None)


def test_recursion_charges_the_frame_that_owned() -> None:
    with Timeline(calls=[recurse]) as timeline:
        recurse(3)
    spans = sorted(spans_of(timeline, "recurse"), key=lambda s: s.start_ns)
    assert len(spans) == 4
    assert [s.parent for s in spans[1:]] == [s.id for s in spans[:-1]]
    for depth, s in enumerate(spans):
        assert_teardown(s) if depth == 2 else assert_no_teardown(s)


def test_exceptions_pass_and_are_marked() -> None:
    @span("fails")
    def fails() -> None:
        failing()

    with Timeline(calls=[failing]) as timeline:
        with pytest.raises(KeyError):
            failing()
        with pytest.raises(KeyError):
            fails()
    assert all(s.last is not None for s in timeline.spans if s.name in ("failing", "fails"))
    assert only(timeline, "fails").error == "KeyError"
    assert len(spans_of(timeline, "failing")) == 2


def unwinds() -> None:
    failing()


def test_an_exception_through_a_caller_that_does_not_handle_it() -> None:
    with Timeline(calls=[failing]) as timeline:
        try:
            unwinds()
        except KeyError:
            time.sleep(0.3)
    assert only(timeline, "failing").wall_s < 0.3


def numbers(n: int) -> Iterator[int]:
    held = Slow()
    for i in range(n):
        yield i + (held is None)


@pytest.mark.parametrize("decorated", [False, True])
def test_a_generator_owns_its_resumptions_only(decorated: bool) -> None:
    made = span("numbers")(numbers) if decorated else numbers
    with Timeline(calls=[] if decorated else [numbers]) as timeline:
        for _ in made(3):
            time.sleep(0.03)
            with span("consumer"):
                pass
    pieces = spans_of(timeline, "numbers")
    assert len(pieces) == 4
    assert sum(s.inner_s for s in pieces) < 0.03
    assert_teardown(pieces[-1])
    assert all(s.parent == timeline.root.id for s in spans_of(timeline, "consumer"))


def test_a_decorated_generator_is_still_one() -> None:
    @span("echo")
    def echo() -> Iterator[object]:
        got: object = None
        while got != "stop":
            try:
                got = yield got
            except KeyError as error:
                got = error.args[0]
        return "result"

    with Timeline():
        generator = echo()
        assert next(generator) is None
        assert generator.send(5) == 5  # type: ignore[attr-defined]
        assert generator.throw(KeyError("k")) == "k"  # type: ignore[attr-defined]
        with pytest.raises(StopIteration) as stop:
            generator.send("stop")  # type: ignore[attr-defined]
        assert stop.value.value == "result"
        closed = echo()
        next(closed)
        closed.close()  # type: ignore[attr-defined]


async def waits(seconds: float) -> int:
    held = Slow()
    await asyncio.sleep(seconds)
    return 0 if held else 1


@pytest.mark.parametrize("decorated", [False, True])
def test_coroutines_side_by_side(decorated: bool) -> None:
    made = span("waits")(waits) if decorated else waits

    async def main() -> None:
        await asyncio.gather(made(0.1), made(0.3))

    with Timeline(calls=[] if decorated else [waits]) as timeline:
        asyncio.run(main())
    first, second = sorted(spans_of(timeline, "waits"), key=lambda s: s.end_ns)
    assert 0.1 <= first.inner_s < 0.29 and second.inner_s >= 0.3
    assert_teardown(first)
    assert_teardown(second)


def test_the_mark_by_hand() -> None:
    with Timeline() as timeline, span("by hand") as s:
        time.sleep(0.01)
        s.last_statement()
        time.sleep(TEARDOWN)
    assert_teardown(only(timeline, "by hand"))


def test_without_the_boundary_nothing_is_marked() -> None:
    with Timeline(boundary=False) as timeline:
        span("owner")(owner)()
    assert only(timeline, "owner").teardown_s is None
