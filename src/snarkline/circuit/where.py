"""Lines of a circuit's own source text, for messages: the innermost one that is neither ours nor Python's library's."""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from snarkline.errors import CircuitError, SnarklineError

PACKAGE = str(Path(__file__).parent.parent) + os.sep
COMPILING = str(Path(__file__).with_name("compiling.py"))
"""Whoever calls it is not the circuit."""
LIBRARY = str(Path(os.__file__).parent) + os.sep


@contextmanager
def located(path: Callable[[], str]) -> Iterator[None]:
    """What the code of a gadget or circuit raises becomes a CircuitError that names `path` and a line of its author.

    An error that names a line keeps it, one that nobody's line led to is left to the caller. Other errors of ours,
    and of memory and files, pass as they are.
    """
    try:
        yield
    except CircuitError as error:
        error.at(_line_of(error.__traceback__))
        raise
    except (SnarklineError, OSError, MemoryError):
        raise
    except RecursionError as error:
        raise CircuitError(path(), "it calls itself without end", _line_of(error.__traceback__)) from None
    except Exception as error:
        detail = f"{type(error).__name__}: {error}{_advice(error)}"
        raise CircuitError(path(), detail, _line_of(error.__traceback__)) from error


class Lines:
    """The lines of the author's that rows of a circuit come from: 12 bytes for each change."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._numbers = array("I")
        self._known: dict[tuple[CodeType, int] | None, int] = {}

    def mark(self, row: int) -> None:
        """Rows from `row` on come from the line that runs, or from none of the circuit's. Rows ascend."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _is_users(frame.f_code.co_filename):
            frame = None if frame.f_code.co_filename == COMPILING else frame.f_back
        line = None if frame is None else (frame.f_code, frame.f_lineno)
        number = self._known.setdefault(line, len(self._known))
        if self._rows and self._rows[-1] == row:
            self._numbers[-1] = number
        elif not self._numbers or self._numbers[-1] != number:
            self._rows.append(row)
            self._numbers.append(number)

    def at(self, row: int) -> str:
        """The line that a row comes from, empty where there is none."""
        place = bisect_right(self._rows, row) - 1
        if place < 0:
            return ""
        line = list(self._known)[self._numbers[place]]
        return "" if line is None else _shown(line[0].co_filename, line[1])


def _line_of(traceback: TracebackType | None) -> str:
    """The innermost line of the author's in a traceback, empty where there is none."""
    found = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if _is_users(file):
            found = _shown(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


@cache
def _is_users(file: str) -> bool:
    if file.startswith(PACKAGE) or file.startswith("<frozen"):
        return False
    return not file.startswith(LIBRARY) or "-packages" in file


def _shown(file: str, line: int | None) -> str:
    """A place as people read it: the file as seen from the current folder, where that is shorter."""
    try:
        below = Path(file).relative_to(Path.cwd())
    except (ValueError, OSError):
        return f"{file}, line {line}"
    return f"{below}, line {line}"


def _advice(error: Exception) -> str:
    """What the usual slip is behind an error of Python's."""
    if isinstance(error, TypeError) and "required positional argument" in str(error):
        return " (the first argument of a gadget is cs)"
    return ""
