"""What commands share: options, messages, progress, errors as exit codes, outputs that appear whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from snarkline.cli.options import Option

if TYPE_CHECKING:
    from rich.console import Console

STANDARD = Path("-")
"""Standard input or output in place of a file."""


PIECE_BYTES = 1 << 20
"""Of standard input, read at a time where its size is bounded."""

MAX_THREADS = 1024
"""What the compiled core takes."""

JsonOption = Annotated[bool, Option("--json", help="Print one JSON object on standard output.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Print nothing but warnings and errors.")]
ThreadsOption = Annotated[
    int | None, Option("--threads", min=1, max=MAX_THREADS, help="Threads; all cores if not given.")
]


def echo(text: str, *, err: bool = False) -> None:
    """A line on standard output or standard error."""
    if err:
        print(text, file=sys.stderr, flush=True)
        return
    with _standard_output():
        print(text, flush=True)


@contextmanager
def _standard_output() -> Iterator[None]:
    """Names it in errors of writing to it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            error.filename = "standard output"
            drop_standard_output()
        raise


def drop_standard_output() -> None:
    """What is left in its buffer goes nowhere: written when the process ends, it would fail once more."""
    with suppress(OSError, ValueError):  # where it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Report:
    """The messages of one command: text for people on the terminal, or one JSON object for machines.

    They go to standard error where one of `outputs` is standard output.
    """

    def __init__(self, *, as_json: bool, quiet: bool, outputs: Sequence[Path | None] = ()) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._to_stderr = STANDARD in outputs

    def console(self, *, stderr: bool = False) -> Console:
        from rich.console import Console

        return Console(stderr=stderr, highlight=False, soft_wrap=True)

    def line(self, text: str) -> None:
        """One line for people."""
        if not self.as_json and not self.quiet:
            echo(text, err=self._to_stderr)

    def show(self, renderable: object) -> None:
        """A rich table or tree for people."""
        if not self.as_json and not self.quiet:
            self.console(stderr=self._to_stderr).print(renderable)

    def result(self, facts: Mapping[str, Any]) -> None:
        """The facts for machines."""
        if self.as_json:
            echo(json.dumps(facts), err=self._to_stderr)

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show that work goes on, on a terminal, once it has taken a second. What it yields is told how far it is."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield lambda progress: None
            return
        status: Any = None
        text = f"{what} ..."
        lock = threading.Lock()

        def start() -> None:
            nonlocal status
            with lock:
                status = self.console(stderr=True).status(text)
                status.start()

        def tell(progress: str) -> None:
            nonlocal text
            with lock:
                text = f"{what}: {progress} ..."
                if status is not None:
                    status.update(text)

        timer = threading.Timer(1.0, start)
        timer.daemon = True
        timer.start()
        try:
            yield tell
        finally:
            timer.cancel()
            with lock:
                if status is not None:
                    status.stop()


def require_writable(
    *outputs: Path | None, inputs: Sequence[Path | None] = (), files: Sequence[Path | None] = ()
) -> None:
    """Refuse, before any work, outputs that cannot be written or that would overwrite an input or one another.

    `files` are more outputs, none of which can be standard output.
    """
    from snarkline.errors import FormatError

    seen: set[str] = set()
    read = [path for path in inputs if path is not None and path != STANDARD]
    if STANDARD in files:
        raise FormatError(named(STANDARD), "output path", "the path of a file", "-")
    for path in (*outputs, *files):
        if path is None:
            continue
        target = "-" if path == STANDARD else os.path.realpath(path)
        if target in seen and not Path(target).is_char_device():
            raise FormatError(named(path), "output path", "a path for each output", "the same path twice")
        seen.add(target)
        if path == STANDARD:
            continue
        _require_file(path, target)
        for source in read:
            if os.path.realpath(source) == target or (path.exists() and source.exists() and path.samefile(source)):
                raise FormatError(path, "output path", "a path that is no input", f"the input {source}")


def _require_file(path: Path, target: str) -> None:
    from snarkline.errors import FormatError
    from snarkline.formats.atomic import check_writable

    try:
        if Path(target).is_symlink():
            raise FormatError(path, "output path", "a file", "a link that leads nowhere but to itself")
        mode = Path(target).stat().st_mode if Path(target).exists() else stat.S_IFREG
        if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
            raise FormatError(path, "output path", "a file", "a folder" if stat.S_ISDIR(mode) else "a special file")
        check_writable(target)
    except OSError as error:
        raise FormatError(path, "output path", "a file that can be written", error.strerror or error) from None


@contextmanager
def output_stream(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name when the block ends without an exception, or standard output."""
    from snarkline.formats.atomic import atomic_write

    if path != STANDARD:
        with atomic_write(path) as stream:
            yield stream
        return
    with _standard_output():
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def input_bytes(path: Path) -> Path | bytes:
    """The path, or what standard input holds."""
    return sys.stdin.buffer.read() if path == STANDARD else path


def bytes_at_most(path: Path, n: int) -> bytes:
    """What a file or standard input holds. Raises OSError, and FormatError for more than `n` bytes."""
    from snarkline.errors import FormatError
    from snarkline.formats.binary import read_at_most

    if path != STANDARD:
        return read_at_most(path, n)
    data = bytearray()
    while piece := sys.stdin.buffer.read(min(PIECE_BYTES, n + 1 - len(data))):
        data += piece
        if len(data) > n:
            raise FormatError(source_name(path), "size", f"at most {n} bytes", "more")
    return bytes(data)


def require_one_stream(*inputs: Path | None) -> None:
    """Refuse inputs of which more than one is standard input."""
    from snarkline.errors import MismatchError

    if inputs.count(STANDARD) > 1:
        raise MismatchError("only one input can be standard input")


def source_name(path: Path) -> str:
    """An input as messages call it."""
    return "standard input" if path == STANDARD else str(path)


def named(path: Path) -> str:
    """An output as messages call it."""
    return "standard output" if path == STANDARD else str(path)


def write_text(files: Mapping[Path, str]) -> None:
    """Write files that appear together: all of them are complete on the disk before the first takes its name."""
    with ExitStack() as stack:
        stage_text(stack, files)


def stage_text(stack: ExitStack, files: Mapping[Path, str]) -> None:
    """Write files that take their names when the stack ends without an exception (what is no file: at once)."""
    streams = [stack.enter_context(output_stream(path)) for path in files]
    for stream, text in zip(streams, files.values(), strict=True):
        stream.write(text.encode())
        stream.flush()


def fail(error: BaseException) -> int:
    """Print what went wrong, in one line where it is the input's fault; the exit code."""
    from snarkline.errors import BudgetError, DeviceError, InputError, SnarklineError

    if isinstance(error, InputError | BudgetError | OSError | MemoryError):
        echo(f"error: {_one_line(error)}", err=True)
        return 2
    if isinstance(error, DeviceError):
        echo(f"error: {_one_line(error)}", err=True)
        return 3
    if isinstance(error, SnarklineError):
        echo(f"internal error: {_one_line(error)}", err=True)
        return 3
    import traceback

    traceback.print_exception(error)
    echo("internal error: this is a fault in snarkline; the lines above say where", err=True)
    return 3


def _one_line(error: BaseException) -> str:
    """The text of an error. What a file or a path put into it cannot break the line or command the terminal."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror.lower()}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
