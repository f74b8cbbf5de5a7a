"""The container of .r1cs, .wtns and .zkey files: its table, and everything that can be wrong with it."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from raw_files import MULTIPLIERS, Raw, patched, vector

from snarkline.errors import FormatError
from snarkline.formats.binary import Outgoing, open_container, parse_container, write_container
from snarkline.formats.circom import load_proving_key, load_r1cs, load_witness, read_info

LOADERS: dict[str, Callable[[Path], object]] = {
    "circuit.r1cs": load_r1cs,
    "circuit.wtns": load_witness,
    "circuit.zkey": load_proving_key,
}
FILES = [(name, file) for name in MULTIPLIERS for file in LOADERS]


def refused(data: bytes, file: str, path: Path) -> FormatError:
    """The error that loading `data` as `file` raises."""
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        LOADERS[file](path)
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)
    return caught.value


@pytest.mark.parametrize(("name", "file"), FILES)
def test_the_table_of_a_file(name: str, file: str) -> None:
    data = vector(name, file)
    raw, container = Raw.split(data), parse_container("x", __import__("numpy").frombuffer(data, "u1"), file[-4:], 2)
    assert [(s.id, container.content(s).tobytes()) for s in container.sections] == list(raw.sections)
    assert [s.offset for s in container.sections] == [raw.offset(i) for i, _ in raw.sections]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_cut_files_are_refused(name: str, file: str, tmp_path: Path) -> None:
    """At every section boundary, just before and behind it, and at every fiftieth of the file."""
    data = vector(name, file)
    raw = Raw.split(data)
    cuts = {len(data) * k // 50 for k in range(50)}
    for section_id, content in raw.sections:
        start = raw.offset(section_id)
        cuts |= {start - 12, start - 11, start - 1, start, start + 1, start + len(content) - 1}
    for cut in sorted(cuts):
        error = refused(data[:cut], file, tmp_path / file)
        assert any(word in str(error) for word in ("bytes", "found"))


@pytest.mark.parametrize(("name", "file"), FILES)
def test_bytes_behind_the_last_section_are_refused(name: str, file: str, tmp_path: Path) -> None:
    data = vector(name, file)
    error = refused(data + b"\0", file, tmp_path / file)
    assert error.where == f"offset {len(data)}"
    assert error.found == "1 more bytes"


@pytest.mark.parametrize("file", LOADERS)
@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"zke", b"zkey", b"\x7fELF" + bytes(100), b"{}", b"\xff" * 4096, bytes(4096), b"r1cs" + b"\xff" * 60],
)
def test_garbage_is_refused(file: str, data: bytes, tmp_path: Path) -> None:
    refused(data, file, tmp_path / file)


@pytest.mark.parametrize(("given", "wanted"), [(a, b) for a in LOADERS for b in LOADERS if a != b])
def test_swapped_files_are_named(given: str, wanted: str, tmp_path: Path) -> None:
    error = refused(vector("multiplier_bn128", given), wanted, tmp_path / wanted)
    kinds = {"circuit.r1cs": "a circuit", "circuit.wtns": "a witness", "circuit.zkey": "a proving key"}
    assert kinds[given] in str(error.found)


@pytest.mark.parametrize(("name", "file"), FILES)
@pytest.mark.parametrize("size", [2**31, 2**32 - 1, 2**63, 2**64 - 1, 2**64 - 24])
def test_absurd_section_sizes_allocate_nothing(name: str, file: str, size: int, tmp_path: Path) -> None:
    data = vector(name, file)
    raw = Raw.split(data)
    for section_id, _ in raw.sections:
        broken = patched(data, raw.offset(section_id) - 8, struct.pack("<Q", size))
        tracemalloc.start()
        error = refused(broken, file, tmp_path / file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20
        assert error.found == size


@pytest.mark.parametrize("count", [2**31, 2**32 - 1, 5000])
@pytest.mark.parametrize("file", LOADERS)
def test_absurd_numbers_of_sections_are_refused(file: str, count: int, tmp_path: Path) -> None:
    data = patched(vector("multiplier_bn128", file), 8, struct.pack("<I", count))
    assert refused(data, file, tmp_path / file).found == count


@pytest.mark.parametrize("version", [0, 3, 2**32 - 1])
@pytest.mark.parametrize("file", LOADERS)
def test_unknown_versions_are_refused(file: str, version: int, tmp_path: Path) -> None:
    data = patched(vector("multiplier_bn128", file), 4, struct.pack("<I", version))
    assert refused(data, file, tmp_path / file).where == "offset 4 (version)"


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_missing_section_is_named(name: str, file: str, tmp_path: Path) -> None:
    raw = Raw.split(vector(name, file))
    optional = {"circuit.r1cs": {3}, "circuit.wtns": set(), "circuit.zkey": {10}}[file]
    for section_id, _ in raw.sections:
        data = raw.without(section_id).join()
        if section_id in optional:
            (tmp_path / file).write_bytes(data)
            LOADERS[file](tmp_path / file)
        else:
            assert f"section {section_id} " in str(refused(data, file, tmp_path / file).expected)


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_section_that_stands_twice_is_refused(name: str, file: str, tmp_path: Path) -> None:
    raw = Raw.split(vector(name, file))
    for section in raw.sections:
        twice = Raw(raw.magic, raw.version, (*raw.sections, section))
        assert "second" in str(refused(twice.join(), file, tmp_path / file).found)


@pytest.mark.parametrize(("name", "file"), FILES)
def test_sections_in_any_order_and_unknown_ones(name: str, file: str, tmp_path: Path) -> None:
    raw = Raw.split(vector(name, file))
    turned = Raw(raw.magic, raw.version, ((77, b"abc"), *reversed(raw.sections), (2**32 - 1, b"")))
    path = tmp_path / file
    path.write_bytes(turned.join())
    LOADERS[file](path)
    assert "unknown (3 bytes)" in str(read_info(path).facts["sections"])


@pytest.mark.parametrize("loader", [load_r1cs, load_witness, load_proving_key, read_info])
def test_what_is_not_a_regular_file_is_refused_at_once(loader: Callable[[Path], object], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(FormatError):
            loader(path)
    with pytest.raises((FormatError, IsADirectoryError)):
        loader(tmp_path)
    with pytest.raises(FileNotFoundError):
        loader(tmp_path / "none")


def test_offsets_beyond_four_gibibytes(tmp_path: Path) -> None:
    """A sparse file of 5 GiB: a large unknown section before the values."""
    values = Raw.split(vector("multiplier_bn128", "circuit.wtns"))
    path = tmp_path / "large.wtns"
    hole = 5 << 30
    with path.open("wb") as stream:
        stream.write(struct.pack("<4sII", b"wtns", 2, 3) + struct.pack("<IQ", 9, hole))
        stream.seek(hole, os.SEEK_CUR)
        for section_id, content in values.sections:
            stream.write(struct.pack("<IQ", section_id, len(content)) + content)
    assert open_container(path, "wtns", 2).section(2, "values").offset > 1 << 32
    assert len(load_witness(path)) == 6


def test_writing_is_the_inverse_of_splitting(tmp_path: Path) -> None:
    sections = ((3, b"abc"), (1, b""), (2**32 - 1, bytes(1000)))
    with (tmp_path / "f").open("wb") as stream:
        write_container(stream, "zkey", 1, [Outgoing(i, len(c), [c[:2], c[2:]]) for i, c in sections])
    assert Raw.split((tmp_path / "f").read_bytes()) == Raw(b"zkey", 1, sections)
