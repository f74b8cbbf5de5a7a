"""Keys are read with the threads that were asked for, and do not stay in resident memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from snarkline import load_proving_key, load_r1cs, load_witness
from snarkline.formats import _native
from snarkline.formats.binary import map_file
from snarkline.native import core

MIB = 1 << 20


def mapped_resident_bytes() -> int:
    """Resident pages of mapped files."""
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_released_pages_leave_memory_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * (64 * MIB // 256))
    mapped = map_file(path)
    before = mapped_resident_bytes()
    total = int(mapped.data.sum())
    assert mapped_resident_bytes() - before > 60 * MIB
    mapped.release_pages()
    assert mapped_resident_bytes() - before < 4 * MIB
    assert int(mapped.data.sum()) == total == 255 * 128 * (64 * MIB // 256)
    mapped.release_pages()


def test_an_empty_file_has_no_pages_to_release(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    map_file(tmp_path / "empty").release_pages()


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_files_are_read_with_the_threads_that_were_asked_for(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vectors / "circom" / "multiplier_bn128"
    asked: list[int] = []

    class Counting(core.Executor):  # type: ignore[misc]
        def __init__(self, threads: int, isa: str = "auto") -> None:
            asked.append(threads)
            super().__init__(threads, isa)

    def counted(name: str) -> None:
        function = getattr(core, name)
        monkeypatch.setattr(core, name, lambda threads, *rest: (asked.append(threads), function(threads, *rest))[1])

    monkeypatch.setattr(_native, "usable_threads", lambda: 1)
    _native._executor.cache_clear()
    monkeypatch.setattr(core, "Executor", Counting)
    for name in ("scan_coefficients", "gather_coefficients", "gather_constraints"):
        counted(name)
    load_proving_key(folder / "circuit.zkey", threads=3)
    load_r1cs(folder / "circuit.r1cs", threads=3)
    load_witness(folder / "circuit.wtns", threads=3)
    _native._executor.cache_clear()
    # One executor of each kind; the single points of a header are looked at by one thread.
    assert asked.count(3) == 4 and set(asked) <= {1, 3}
