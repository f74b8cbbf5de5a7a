"""Spans, timelines and teardown: who owns each millisecond. Useful without the prover (docs/timeline.md)."""

from .device import DeviceClock, device_span
from .model import CounterSample, Moment, Span, WaitSample
from .span import current_span, follow, span
from .timeline import Timeline

__all__ = [
    "CounterSample",
    "DeviceClock",
    "Moment",
    "Span",
    "Timeline",
    "WaitSample",
    "current_span",
    "device_span",
    "follow",
    "span",
]
