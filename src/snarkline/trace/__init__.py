"""Spans, timelines and teardown: who owns each millisecond. Useful without the prover (docs/timeline.md)."""

from .span import current_span, follow, span
from .timeline import Span, Timeline

__all__ = ["Span", "Timeline", "current_span", "follow", "span"]
