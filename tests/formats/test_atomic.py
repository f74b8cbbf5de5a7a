"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from snarkline.formats.atomic import atomic_write, check_writable


def test_the_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with atomic_write(path) as stream:
        stream.write(b"content")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"content"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("before", [None, b"old"])
def test_nothing_is_left_after_a_failure(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "out"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(RuntimeError, match="stop"), atomic_write(path) as stream:
        stream.write(b"half")
        raise RuntimeError("stop")
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(tmp_path.iterdir())) == (before is not None)


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "out"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_mode_follows_the_umask_or_the_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with atomic_write(path) as stream:
        stream.write(b"1")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    with atomic_write(path) as stream:
        stream.write(b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_mapping_of_the_old_file_is_not_disturbed(tmp_path: Path) -> None:
    from snarkline.formats.binary import map_file

    path = tmp_path / "out"
    path.write_bytes(b"old" * 5000)
    mapped = map_file(path).data
    with atomic_write(path) as stream:
        stream.write(b"n")
    assert mapped.tobytes() == b"old" * 5000


def test_devices_are_written_directly() -> None:
    with atomic_write("/dev/null") as stream:
        stream.write(b"gone")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", ["missing/out", "."])
def test_paths_that_cannot_be_written_are_found_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError):
        check_writable(tmp_path / name)
    with pytest.raises(OSError), atomic_write(tmp_path / name):
        pass
    assert not list(tmp_path.iterdir())


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "out")
    (tmp_path / "kept").write_bytes(b"kept")
    check_writable(tmp_path / "kept")
    check_writable("/dev/null")
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_the_longest_name_a_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with atomic_write(path) as stream:
        stream.write(b"1")
    assert path.read_bytes() == b"1"
