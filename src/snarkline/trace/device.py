"""Time on an accelerator, on the timeline's clock.

    clock = ...                                  # a DeviceClock, made by whoever drives the device
    with device_span(clock, "msm.buckets", items=n):
        launch(...)                              # returns before the device has done it

A device span is a pair of events in the device's own order of work. It is resolved when the timeline ends: the time
between events comes from the device, their place on the host's clock from an event that the host waited for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from snarkline.errors import DeviceError
from snarkline.native import core

from .model import Moment, Span


class DeviceClock(Protocol):
    """Events of one queue of work on a device (a CUDA stream, say)."""

    @property
    def name(self) -> str:
        """The lane in reports and pages, for example "gpu0"."""

    def record(self) -> Any:
        """An event behind all work that has been queued so far. Does not wait."""

    def elapsed(self, begin: Any, end: Any) -> float:
        """Seconds on the device from one event to the other. Waits until both are past.

        Like `record` it raises DeviceError once the device has failed.
        """


@dataclass
class Mark:
    """A device span that has been queued and not yet resolved."""

    clock: DeviceClock
    id: int
    parent: int
    root: int
    name: str
    begin: Any
    end: Any = None
    bytes: int | None = None
    items: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


@contextmanager
def device_span(
    clock: DeviceClock,
    name: str,
    *,
    bytes: int | None = None,
    items: int | None = None,
    under: core.span | None = None,
    **attributes: Any,
) -> Iterator[Mark | None]:
    """Work that is queued on the device inside the block, which leaves no span if it ends with an exception. Its parent
    is the open span, or `under`, a span of the same timeline that may have ended. Yields None where no timeline is open
    in this context."""
    parent = core.open_span()
    if parent is None or core.spans_active() == 0:
        yield None
        return
    if under is not None and under.root == parent.root:
        parent = under
    mark = Mark(
        clock=clock,
        id=core.next_span_id(),
        parent=parent.id,
        root=parent.root,
        name=name,
        begin=clock.record(),
        bytes=bytes,
        items=items,
        attributes=attributes,
    )
    yield mark
    # After an exception the device may be gone, and what was queued may never end: no span.
    mark.end = clock.record()
    core.span_details()[mark.id] = mark


def resolve_device_spans(details: dict[int, Any], root: int, heir: int) -> list[Span]:
    """The device spans below `root`, taken out of `details` or left there below the root `heir`. A device that has
    failed since then no longer tells its times: its spans are left out."""
    marks = [m for m in details.values() if isinstance(m, Mark) and m.root == root]
    anchors: dict[int, tuple[Any, int] | None] = {}
    spans = []
    for mark in marks:
        if heir:
            mark.root = heir
        else:
            del details[mark.id]
        key = id(mark.clock)
        if key not in anchors:
            anchors[key] = _anchor(mark.clock)
        anchor = anchors[key]
        if anchor is not None:
            spans.append(_resolved(mark, *anchor))
    return spans


def _resolved(mark: Mark, event: Any, host_ns: int) -> Span:
    begin_ns = host_ns - round(mark.clock.elapsed(mark.begin, event) * 1e9)
    end_ns = host_ns - round(mark.clock.elapsed(mark.end, event) * 1e9)
    return Span(
        id=mark.id,
        parent=mark.parent,
        name=mark.name,
        thread=0,
        kind="device",
        begin=Moment(begin_ns),
        end=Moment(max(end_ns, begin_ns)),
        lane=mark.clock.name,
        bytes=mark.bytes,
        items=mark.items,
        attributes=mark.attributes,
    )


def _anchor(clock: DeviceClock) -> tuple[Any, int] | None:
    """An event and the host's time at which it was past; None where the device has failed."""
    try:
        event = clock.record()
        clock.elapsed(event, event)
    except DeviceError:
        return None
    return event, time.monotonic_ns()
