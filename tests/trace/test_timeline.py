from __future__ import annotations

import asyncio
import json
import threading

from snarkline.trace import Span, Timeline, follow, span


def by_name(timeline: Timeline) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for s in timeline.spans:
        found.setdefault(s.name, []).append(s)
    return found


def test_spans_nest_and_keep_what_they_were_told() -> None:
    with Timeline() as timeline, span("outer", items=3, form="affine") as outer:
        with span("inner"):
            pass
        outer.bytes = 96
    spans = by_name(timeline)
    (outer_span,), (inner,) = spans["outer"], spans["inner"]
    assert inner.parent == outer_span.id and outer_span.parent == timeline.root.id
    assert (outer_span.bytes, outer_span.items, outer_span.attributes) == (96, 3, {"form": "affine"})
    assert outer_span.start_ns <= inner.start_ns <= inner.end_ns <= outer_span.end_ns


def test_nothing_is_kept_outside_a_timeline() -> None:
    with span("before"):
        pass
    with Timeline() as timeline:
        pass
    with span("after"):
        pass
    assert timeline.spans == [timeline.root]


def test_decorated_functions_and_coroutines() -> None:
    @span("double")
    def double(x: int) -> int:
        return 2 * x

    @span("later")
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        return double(x)

    with Timeline() as timeline:
        assert double(4) == 8
        assert asyncio.run(later(5)) == 10
    spans = by_name(timeline)
    assert double.__name__ == "double"
    assert len(spans["double"]) == 2
    assert spans["double"][1].parent == spans["later"][0].id


def test_tasks_keep_their_own_parents() -> None:
    async def one(name: str, wait: asyncio.Event, wake: asyncio.Event) -> None:
        with span(name):
            wake.set()
            await wait.wait()
            with span(name + ".child"):
                pass

    async def main() -> None:
        a, b = asyncio.Event(), asyncio.Event()
        await asyncio.gather(one("a", a, b), one("b", b, a))

    with Timeline() as timeline:
        asyncio.run(main())
    spans = by_name(timeline)
    for name in "ab":
        assert spans[name + ".child"][0].parent == spans[name][0].id


def test_threads_attach_to_the_timeline_and_followed_ones_to_the_span() -> None:
    def work() -> None:
        with span("work"):
            pass

    with Timeline() as timeline, span("outer"):
        for target in (work, follow(work)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    spans = by_name(timeline)
    plain, followed = spans["work"]
    assert plain.parent == timeline.root.id and followed.parent == spans["outer"][0].id
    assert plain.thread != spans["outer"][0].thread


def test_errors_are_named_and_pass() -> None:
    with Timeline() as timeline:
        try:
            with span("bad"):
                raise KeyError("x")
        except KeyError:
            pass
    assert by_name(timeline)["bad"][0].error == "KeyError"


def test_json_round_trip() -> None:
    with Timeline("job") as timeline, span("a", curve="bn254"):
        pass
    again = Timeline.from_json(json.loads(json.dumps(timeline.to_json())))
    assert again.spans == timeline.spans and again.name == "job"
