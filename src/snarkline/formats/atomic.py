"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from snarkline.trace import span


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file opened for writing that takes its name only when the block ends without an exception.

    The bytes go to a temporary file in the same folder, are synced to the disk, and are renamed over `path` (over what
    it points to, for a symbolic link). After an exception nothing is left behind. Devices and pipes are written
    directly. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    temporary = _temporary_name(target)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            with span("sync to disk"):
                os.fsync(stream.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises the OSError that `atomic_write(path)` would end with, as far as that shows before there are bytes."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb"):
            return
    probe = _temporary_name(target)
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    probe.unlink()


def _sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` last through a power cut; some file systems refuse, which loses nothing else."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".snarkline-{os.urandom(8).hex()}.tmp")
