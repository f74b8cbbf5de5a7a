"""Text that strangers write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

SHOWN = 60
"""Characters of a text of somebody else's that a message shows."""

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
    if str(error).startswith("Exceeds the limit"):
        return "a number of thousands of digits"  # Python's own words are advice to programmers
    return str(error) or type(error).__name__


def parse_json(
    text: str,
    max_depth: int,
    *,
    integer: Callable[[str], Any] = int,
    fraction: Callable[[str], Any] | None = None,
) -> Any:
    """The value of a JSON text whose brackets nest at most so deep and whose objects have no member twice.

    `integer` and `fraction` (None: refused) take the text of numbers. Raises ValueError, RecursionError.
    """
    check_depth(text, max_depth)
    return json.loads(
        text,
        object_pairs_hook=_members,
        parse_int=integer,
        parse_float=fraction or _refuse,
        parse_constant=fraction or _refuse,
    )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a member twice")
    return members


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"the number {shorten(token)}, which is not a whole one")


def shorten(text: str) -> str:
    """The text, or its beginning and its length."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 20]}... ({len(text)} characters)"
