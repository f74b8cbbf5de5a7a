"""The binary container of circom's files (.r1cs, .wtns, .zkey), as iden3's binfileutils lays it out.

    4 bytes   magic
    u32       version
    u32       number of sections
    sections: u32 id, u64 size, then `size` bytes

All integers are little-endian and nothing is aligned. Sections stand in any order; ids that a reader does not know are
skipped. A circuit and a key are mapped, a witness is read; every size is held against the length of the file before it
is used.
"""

from __future__ import annotations

import mmap
import os
import stat
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from snarkline.errors import FormatError, InternalError
from snarkline.formats import _native
from snarkline.trace import span

Bytes = npt.NDArray[np.uint8]
Buffer = bytes | bytearray | memoryview | npt.NDArray[Any]

MAX_SECTIONS = 4096  # a table longer than this is refused: no format has more than twenty


@dataclass(frozen=True)
class Section:
    """Where a section's content lies in the file."""

    id: int
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class Container:
    """An open container: `data` is the whole file (mapped, read-only), `sections` its table in order.

    `source` is the file that `data` is mapped from, None for bytes in memory.
    """

    path: str | None
    magic: str
    version: int
    data: Bytes
    sections: tuple[Section, ...]
    source: MappedFile | None = None

    def find(self, section_id: int) -> Section | None:
        return next((s for s in self.sections if s.id == section_id), None)

    def section(self, section_id: int, name: str) -> Section:
        """The section with this id, which must be there."""
        found = self.find(section_id)
        if found is None:
            ids = ", ".join(str(s.id) for s in self.sections)
            raise FormatError(self.path, "section table", f"section {section_id} ({name})", f"sections {ids or 'none'}")
        return found

    def content(self, section: Section) -> Bytes:
        return self.data[section.offset : section.offset + section.size]

    def release_pages(self) -> None:
        """Takes the pages of a mapped file out of resident memory."""
        if self.source is not None:
            self.source.release_pages()

    def cursor(self, section_id: int, name: str) -> Cursor:
        return Cursor(self, self.section(section_id, name), name)

    def words(self, section: Section, limbs: int) -> npt.NDArray[np.uint64]:
        """A section's elements of `limbs` 64-bit words, shape (n, limbs), not copied and not aligned."""
        n = section.size // (8 * limbs)
        return np.ndarray((n, limbs), dtype="<u8", buffer=self.data, offset=section.offset)

    def size_error(self, section: Section, name: str, expected: str) -> FormatError:
        where = f"section {section.id} ({name}) at offset {section.offset}"
        return FormatError(self.path, where, expected, f"{section.size} bytes")


class Cursor:
    """Reads a section's fields one after the other; running out of bytes is a FormatError that names the field."""

    def __init__(self, container: Container, section: Section, name: str) -> None:
        self.container, self.section, self.name = container, section, name
        self.position = 0

    def bytes(self, n: int, field: str) -> bytes:
        if n > self.section.size - self.position:
            found = f"{self.section.size - self.position} bytes left of the section's {self.section.size}"
            raise FormatError(self.container.path, self.where(field), f"{n} bytes", found)
        start = self.section.offset + self.position
        self.position += n
        return self.container.data[start : start + n].tobytes()

    def u32(self, field: str) -> int:
        return int.from_bytes(self.bytes(4, field), "little")

    def u64(self, field: str) -> int:
        return int.from_bytes(self.bytes(8, field), "little")

    def integer(self, n: int, field: str) -> int:
        """An unsigned integer of `n` bytes."""
        return int.from_bytes(self.bytes(n, field), "little")

    def where(self, field: str, back: int = 0) -> str:
        """The place of a field, for an error; `back` is the number of its bytes that were already read."""
        offset = self.section.offset + self.position - back
        return f"section {self.section.id} ({self.name}), offset {offset}: {field}"

    def error(self, field: str, size: int, expected: object, found: object) -> FormatError:
        """An error about the field of `size` bytes that was just read."""
        return FormatError(self.container.path, self.where(field, size), expected, found)

    def end(self) -> None:
        """Raises unless the section was read to its end."""
        if self.position != self.section.size:
            expected = f"a section of {self.position} bytes"
            raise self.container.size_error(self.section, self.name, expected)


@dataclass(eq=False)
class MappedFile:
    """A regular file's bytes, mapped read-only: pages are shared with other processes and read when touched.

    The mapping outlives the file's name: deleting or renaming it, or renaming another over it (as our writers do), is
    harmless. Whoever writes into the file itself changes what is mapped, and whoever cuts it short takes the pages
    away, which ends a process that touches them (SIGBUS); `changed` tells before that, and an `OpenFile` is safe of it.
    """

    path: str
    data: Bytes
    _descriptor: int
    _status: os.stat_result
    _map: mmap.mmap | None

    def changed(self) -> bool:
        """Whether the file was written to or cut since it was mapped."""
        return _changed(self._descriptor, self._status)

    def release_pages(self) -> None:
        """Takes the file's pages out of the process's resident memory. Whoever reads them gets them back from the
        system's cache of files, for some 0.1 us a page."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        # Arrays leave the mapping when they are pickled: their copies have no source that could change under them.
        return _no_source, ()


def _no_source() -> None:
    return None


def map_file(path: str | os.PathLike[str]) -> MappedFile:
    """Maps a file. Raises OSError, and FormatError for what is not a regular file."""
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        pages = mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ) if status.st_size > 0 else None
        data = np.empty(0, dtype=np.uint8) if pages is None else np.frombuffer(pages, dtype=np.uint8)
        mapped = MappedFile(os.fspath(path), data, descriptor, status, pages)
    except BaseException:
        os.close(descriptor)
        raise
    weakref.finalize(mapped, os.close, descriptor)
    return mapped


class OpenFile:
    """A regular file that is read, not mapped: one that is cut short or written to meanwhile is a FormatError.

    `size` is that at its opening. A context manager. Raises OSError, and FormatError for what is not a regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._descriptor = open_regular(path)
        self._status = os.fstat(self._descriptor)
        self.size = self._status.st_size

    def read(self, offset: int, out: Bytes) -> Bytes:
        """Fills `out` with the bytes from an offset on. Raises FormatError where the file ends before that."""
        position, count = 0, 1
        while position < len(out) and count:
            count = os.preadv(self._descriptor, [out[position:]], offset + position)
            position += count
        if position < len(out):
            raise self._unsteady()
        return out

    def require_steady(self) -> None:
        """Raises FormatError if the file was written to or cut since it was opened."""
        if _changed(self._descriptor, self._status):
            raise self._unsteady()

    def _unsteady(self) -> FormatError:
        return FormatError(self.path, "file", "data that stays as it is while it is read", "a file that is written to")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._descriptor)


def _changed(descriptor: int, before: os.stat_result) -> bool:
    status = os.fstat(descriptor)
    return (status.st_size, status.st_mtime_ns) != (before.st_size, before.st_mtime_ns)


def read_file(path: str | os.PathLike[str], *, secret: bool = False) -> Bytes:
    """A regular file's bytes in memory of this process's own: nothing that happens to the file later matters.

    With `secret` the memory is wiped when it is given back. Raises OSError, and FormatError for what is not a regular
    file or is written to meanwhile.
    """
    with OpenFile(path) as file:
        data: Bytes = _native.arena().empty((file.size,), np.uint8, secret=secret)
        file.read(0, data)
        file.require_steady()
    return data


def first_bytes(path: str | os.PathLike[str], n: int) -> bytes:
    """Up to `n` bytes from the start of a regular file, none of anything else. Raises OSError."""
    descriptor = _open(path)
    try:
        return os.read(descriptor, n) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)


def read_at_most(path: str | os.PathLike[str], n: int) -> bytes:
    """A regular file's bytes. Raises OSError, and FormatError for anything else or for more than `n` bytes."""
    with os.fdopen(open_regular(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > n:
            raise FormatError(path, "size", f"at most {n} bytes", size)
        return stream.read(size)  # a request for more would be memory for more


def open_regular(path: str | os.PathLike[str]) -> int:
    """A descriptor for reading a regular file. Raises OSError, and FormatError at once for anything else."""
    descriptor = _open(path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError(path, "file", "a regular file", "a device, pipe or folder")
    return descriptor


def _open(path: str | os.PathLike[str]) -> int:
    """A descriptor for reading; opening a pipe does not wait for its writer."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def open_container(
    source: str | os.PathLike[str] | Buffer, magic: str, max_version: int, *, copy: bool = False, secret: bool = False
) -> Container:
    """Opens a file, or bytes in memory, whose magic must be `magic` and whose version at most `max_version`.

    With `copy` a file is read (`read_file`) instead of mapped, with `secret` to memory that is wiped.
    """
    if isinstance(source, (str, os.PathLike)):
        if copy:
            return parse_container(os.fspath(source), read_file(source, secret=secret), magic, max_version)
        mapped = map_file(source)
        return replace(parse_container(mapped.path, mapped.data, magic, max_version), source=mapped)
    data = np.frombuffer(source, dtype=np.uint8) if not isinstance(source, np.ndarray) else np.ravel(source)
    return parse_container(None, data, magic, max_version)


def parse_container(path: str | None, data: Bytes, magic: str, max_version: int) -> Container:
    """The section table of `data`. Raises FormatError for anything but whole sections to the end of the file."""
    if len(data) == 0:
        raise FormatError(path, "offset 0", f"a {magic} file", "no bytes")
    found = data[:4].tobytes()
    if found != magic.encode():
        raise FormatError(path, "offset 0 (magic)", repr(magic), describe_magic(found))
    if len(data) < 12:
        raise FormatError(path, "header", "12 bytes", f"{len(data)} bytes")
    version, count = (int(v) for v in np.ndarray((2,), dtype="<u4", buffer=data, offset=4))
    if not 1 <= version <= max_version:
        raise FormatError(path, "offset 4 (version)", f"1 to {max_version}", version)
    if count > MAX_SECTIONS:
        raise FormatError(path, "offset 8 (number of sections)", f"at most {MAX_SECTIONS}", count)
    return Container(path, magic, version, data, tuple(_read_table(path, data, count)))


def _read_table(path: str | None, data: Bytes, count: int) -> list[Section]:
    sections: list[Section] = []
    ids: set[int] = set()
    offset = 12
    for i in range(count):
        if len(data) - offset < 12:
            raise FormatError(
                path, f"offset {offset}: head of section {i + 1} of {count}", "12 bytes", len(data) - offset
            )
        head = data[offset : offset + 12].tobytes()
        section = Section(int.from_bytes(head[:4], "little"), offset + 12, int.from_bytes(head[4:], "little"))
        if section.size > len(data) - section.offset:
            where = f"offset {offset + 4}: size of section {section.id}"
            raise FormatError(path, where, f"at most the {len(data) - section.offset} bytes left", section.size)
        if section.id in ids:
            raise FormatError(path, f"offset {offset}: section {section.id}", "one section of each id", "a second one")
        ids.add(section.id)
        sections.append(section)
        offset = section.offset + section.size
    if offset != len(data):
        raise FormatError(path, f"offset {offset}", "the end of the file", f"{len(data) - offset} more bytes")
    return sections


def describe_magic(found: bytes) -> str:
    """What a file's first bytes tell, for an error."""
    known = {b"r1cs": "a circuit", b"wtns": "a witness", b"zkey": "a proving key", b"ptau": "a powers-of-tau file"}
    return (repr(found) if found else "no bytes") + (f" ({known[found]})" if found in known else "")


@dataclass(frozen=True)
class Outgoing:
    """A section to be written: its content in pieces, `size` bytes together."""

    id: int
    size: int
    pieces: Iterable[Buffer]


def write_container(stream: BinaryIO, magic: str, version: int, sections: Sequence[Outgoing]) -> None:
    """Writes a container front to back; the stream need not be seekable."""
    stream.write(magic.encode() + version.to_bytes(4, "little") + len(sections).to_bytes(4, "little"))
    for section in sections:
        stream.write(section.id.to_bytes(4, "little") + section.size.to_bytes(8, "little"))
        written = 0
        for piece in section.pieces:
            view = memoryview(np.ascontiguousarray(piece)) if isinstance(piece, np.ndarray) else memoryview(piece)
            if view.nbytes:  # an empty view cannot be cast
                with span("write", bytes=view.nbytes):
                    stream.write(view.cast("B"))
            written += view.nbytes
        if written != section.size:
            raise InternalError(f"section {section.id} was announced with {section.size} bytes and has {written}")
