"""What a user may get wrong with spans and timelines, and is told."""

from __future__ import annotations

import os

import pytest

from snarkline.errors import InputError
from snarkline.trace import Timeline, span


def test_a_timeline_records_once() -> None:
    timeline = Timeline("job")
    with timeline, pytest.raises(RuntimeError, match="records once"), timeline:
        pass
    spans = list(timeline.spans)
    with pytest.raises(RuntimeError, match="records once"), timeline:
        pass
    assert timeline.spans == spans


def test_a_timeline_that_was_not_entered() -> None:
    with pytest.raises(RuntimeError, match="not entered"):
        Timeline().__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="has not ended"):
        Timeline().report()


@pytest.mark.parametrize("period", [-1, float("nan"), float("inf"), 1e9])
def test_periods_that_are_none(period: float) -> None:
    with pytest.raises(InputError, match="sample_ms"):
        Timeline(sample_ms=period)


def test_methods_of_every_kind() -> None:
    class Work:
        @span("static")
        @staticmethod
        def static(x: int) -> int:
            return x

        @span("class")
        @classmethod
        def of_class(cls, x: int) -> tuple[type, int]:
            return cls, x

        @staticmethod
        @span("inside")
        def inside(x: int) -> int:
            return x

        @property
        @span("getter")
        def value(self) -> int:
            return 5

    with Timeline() as timeline:
        assert Work().static(1) == Work.static(1) == 1
        assert Work().of_class(2) == (Work, 2)
        assert Work().inside(3) == 3
        assert Work().value == 5
    assert [s.name for s in timeline.spans[1:]] == ["static", "static", "class", "inside", "getter"]
    assert all(s.teardown_s is not None for s in timeline.spans[1:])


def test_what_cannot_be_decorated() -> None:
    for target in (int, property(len), "text", None):
        with pytest.raises(TypeError, match="decorates a function"):
            span("x")(target)  # type: ignore[type-var]


def test_a_span_cannot_be_open_twice() -> None:
    with Timeline(), span("x") as s, pytest.raises(RuntimeError, match="already open"), s:
        pass


def test_a_span_that_is_never_closed_is_told_of() -> None:
    with Timeline() as timeline:
        forgotten = span("forgotten")
        forgotten.__enter__()
        with span("inside"):
            pass
    assert [s.name for s in timeline.spans] == ["timeline", "inside"]
    assert timeline.unfinished == 1
    assert "a span had not ended" in timeline.report()
    assert [s.name for s in timeline.children()[timeline.root.id]] == ["inside"]
    with Timeline() as after, span("x"):
        pass
    assert after.unfinished == 0


def test_attributes_of_any_kind_are_saved() -> None:
    with Timeline() as timeline, span("x", array=b"\0", number=1 + 2j, name="n", nested={"a": [1]}):
        pass
    (data,) = (s for s in timeline.to_json()["spans"] if s["name"] == "x")
    assert data["attributes"] == {"array": "b'\\x00'", "number": "(1+2j)", "name": "n", "nested": "{'a': [1]}"}
    assert Timeline.from_json(timeline.to_json()).spans[1].attributes == data["attributes"]


def test_nested_timelines_share_what_the_inner_one_saw() -> None:
    with Timeline("outer") as outer:
        with Timeline("inner") as inner, span("work", kind="a"):
            pass
        with span("after"):
            pass
    assert {s.name for s in inner.spans} == {"inner", "work"}
    assert {s.name for s in outer.spans} == {"outer", "inner", "work", "after"}
    assert all(next(s for s in t.spans if s.name == "work").attributes == {"kind": "a"} for t in (inner, outer))


def test_a_forked_child_opens_its_own() -> None:
    with Timeline() as timeline, span("parent"):
        child = os.fork()
        if child == 0:
            with Timeline() as own, span("child"):
                pass
            os._exit(0 if {s.name for s in own.spans} == {"timeline", "child"} else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert {s.name for s in timeline.spans} == {"timeline", "parent"}
