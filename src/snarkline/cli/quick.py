"""Plain command lines, parsed without typer: loading it takes longer than a small proof.

Whatever is not plain (help, mistakes, spellings that only typer knows) is left to typer, which then says what is
wrong. Both go by the same annotations of a command's function (`options`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from snarkline.cli.options import Argument, Option, Parameter


class _NotPlainError(Exception):
    """A command line for typer."""


class _Slot:
    """A parameter of a command: its type (without None, without list) and what was given for it."""

    def __init__(self, name: str, annotation: Any, default: object) -> None:
        if not hasattr(annotation, "__metadata__") or not isinstance(annotation.__metadata__[0], Parameter):
            raise _NotPlainError
        self.name, self.default = name, default
        self.parameter: Parameter = annotation.__metadata__[0]
        kinds = [kind for kind in get_args(annotation.__origin__) if kind is not NoneType]
        self.many = get_origin(annotation.__origin__) is list
        self.kind: Any = kinds[0] if kinds else annotation.__origin__
        self.given: list[object] = []

    def take(self, word: str) -> None:
        if self.given and not self.many:
            raise _NotPlainError
        if self.kind not in (str, Path, int, float) and not issubclass(self.kind, Enum):
            raise _NotPlainError
        try:
            value = self.kind(word)
        except ValueError:
            raise _NotPlainError from None
        low, high = self.parameter.min, self.parameter.max
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            raise _NotPlainError
        self.given.append(value)

    def value(self) -> object:
        if self.many:
            if not self.given:
                raise _NotPlainError
            return self.given
        if not self.given and self.default is inspect.Parameter.empty:
            raise _NotPlainError
        return self.given[0] if self.given else self.default


def parse(command: Callable[..., object], words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of a command's function, None for a command line that typer must look at.

    Plain is: known options as `--name value`, `--name=value`, `-n value` or a flag, each once; `-` and words that do
    not start with it; every value of its type.
    """
    try:
        return _parse(command, words)
    except _NotPlainError:
        return None


def _parse(command: Callable[..., object], words: Sequence[str]) -> dict[str, Any]:
    hints = get_type_hints(command, include_extras=True)
    slots = [_Slot(p.name, hints[p.name], p.default) for p in inspect.signature(command).parameters.values()]
    options = {name: slot for slot in slots if isinstance(slot.parameter, Option) for name in slot.parameter.names}
    arguments = [slot for slot in slots if isinstance(slot.parameter, Argument)]
    left = list(reversed(words))
    while left:
        word = left.pop()
        if word == "-" or not word.startswith("-"):
            if not arguments:
                raise _NotPlainError
            arguments[0].take(word)
            if not arguments[0].many:
                del arguments[0]
            continue
        name, is_joined, value = word.partition("=")
        slot = options.get(name)
        if slot is None or (is_joined and not name.startswith("--")):
            raise _NotPlainError
        if slot.kind is bool:
            if is_joined or slot.given:
                raise _NotPlainError
            slot.given.append(True)
        elif is_joined:
            slot.take(value)
        elif left and (left[-1] == "-" or not left[-1].startswith("-")):
            slot.take(left.pop())
        else:
            raise _NotPlainError
    return {slot.name: slot.value() for slot in slots}
