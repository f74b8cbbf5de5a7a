"""Text that strangers write."""

from __future__ import annotations

import json
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


def json_fault(error: Exception) -> str:
    """What the parser of JSON found in place of a document, in words that follow "found"."""
    if isinstance(error, json.JSONDecodeError):
        if not error.doc.strip():
            return "no text"
        return f"other text at line {error.lineno}, column {error.colno} ({error.msg.lower()})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start}, which is not UTF-8 text"
    return str(error) or type(error).__name__
