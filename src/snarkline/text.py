"""Text that strangers write."""

from __future__ import annotations

import re

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{\]}]')


def check_depth(text: str, limit: int) -> None:
    """Raise ValueError where brackets of a JSON text nest deeper than `limit`, those in strings apart.

    The parser of Python 3.11 overflows the stack before it counts.
    """
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > limit:
                raise ValueError(f"brackets nested deeper than {limit}")
        elif match[0] in "]}":
            depth -= 1
