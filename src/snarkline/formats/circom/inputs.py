"""The input of a witness calculator (input.json): values by the names of the circuit's input signals.

A value is a whole number or a string that is one, in decimal or as 0x and hexadecimal digits; it is taken modulo r, as
circom takes it, so -1 is r - 1. Arrays are flattened. Members of objects, for circom's buses, have names such as a.b
and a[0].b.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from snarkline.formats.circom.strict_json import INPUTS, Node, Source, parse

Inputs = str | bytes | os.PathLike[str] | Mapping[str, Any]

MAX_DEPTH = 64
MAX_CHARACTERS = 1000
NUMBER = re.compile(r"-?[0-9]+|0x[0-9a-fA-F]+", re.ASCII)


def read_inputs(source: Inputs) -> dict[str, list[Node]]:
    """The flat values of every signal, from a file (a path object), JSON text, or a mapping.

    Raises OSError, and FormatError for what is no object or names a signal twice. Values are secret: no error shows
    one.
    """
    document = Node(None, "$", dict(source)) if isinstance(source, Mapping) else _document(source)
    if not isinstance(document.value, dict):
        document.fail("an object with the circuit's input signals", _kind(document))
    signals: dict[str, list[Node]] = {}
    for name, values in _signals(document, "", 0):
        if name in signals:
            document.fail(f"signal {name} once", "two ways to name it")
        signals[name] = values
    return signals


def value_modulo(node: Node, r: int) -> int:
    """The number that a node holds, in [0, r)."""
    value = node.value
    if isinstance(value, int) and not isinstance(value, bool):
        return value % r
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS or not NUMBER.fullmatch(value):
        node.fail("a whole number, or a string that is one", _kind(node))
    return int(value, 16 if value.startswith("0x") else 10) % r


def _document(source: Source) -> Node:
    return parse(source, INPUTS, integer=str, fraction=_refuse_fraction)


def _refuse_fraction(_: str) -> NoReturn:
    raise ValueError("a number that is not a whole one")


def _signals(node: Node, name: str, depth: int) -> Iterator[tuple[str, list[Node]]]:
    """Names and flat values of the signals below a node."""
    if depth > MAX_DEPTH:
        node.fail(f"at most {MAX_DEPTH} levels", "more")
    if isinstance(node.value, dict):
        for key in node.value:
            yield from _signals(node.get(key), f"{name}.{key}" if name else key, depth + 1)
    elif isinstance(node.value, list) and _holds_object(node, depth):
        for i, item in enumerate(node.items()):
            yield from _signals(item, f"{name}[{i}]", depth + 1)
    else:
        yield name, list(_leaves(node, depth))


def _holds_object(node: Node, depth: int) -> bool:
    return any(isinstance(leaf.value, dict) for leaf in _leaves(node, depth))


def _leaves(node: Node, depth: int) -> Iterator[Node]:
    if depth > MAX_DEPTH:
        node.fail(f"at most {MAX_DEPTH} levels", "more")
    if not isinstance(node.value, list):
        yield node
        return
    for item in node.items():
        yield from _leaves(item, depth + 1)


def _kind(node: Node) -> str:
    """What kind of thing a node is, without its value."""
    kinds = {
        dict: "an object",
        list: "an array",
        str: "a string that is none",
        bool: "true or false",
        float: "a fraction",
    }
    return kinds.get(type(node.value), "nothing (null)" if node.value is None else type(node.value).__name__)
