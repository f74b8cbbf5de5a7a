"""Options and arguments of commands, as annotations that cost nothing to make.

`quick` parses plain command lines by them, `app` turns them into typer's own for everything else.
"""

from __future__ import annotations


class Parameter:
    """What a command's parameter is called and what help says of it."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        show_default: bool = True,
    ) -> None:
        self.names, self.help, self.metavar, self.show_default = names, help, metavar, show_default
        self.min, self.max = min, max


class Argument(Parameter):
    """A parameter that goes by its position."""


class Option(Parameter):
    """A parameter that goes by one of its names."""
