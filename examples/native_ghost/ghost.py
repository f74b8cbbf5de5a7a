"""A native library's ghost, with markers and without.

    python examples/native_ghost/ghost.py [GIB]                       2 GiB of vectors, if not said otherwise
    snarkline ghosts examples/native_ghost/ghost.py [GIB]             finds it without any marker

The library fills vectors and returns a number. With markers, the timeline shows where its time goes after the last
statement; without, the time is there but nobody owns it. Needs a C++ compiler (`c++`, or what CXX names).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import snarkline
from snarkline.trace import Timeline, span

HERE = Path(__file__).parent
INCLUDE = Path(snarkline.__file__).parent / "include"


def build(folder: str, *options: str) -> ctypes.CDLL:
    library = Path(folder, f"ghost{len(options)}.so")
    compiler = os.environ.get("CXX", "c++")
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", f"-I{INCLUDE}", *options]
    subprocess.run([compiler, *flags, str(HERE / "ghost.cpp"), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.ghost_fill.argtypes, loaded.ghost_fill.restype = [ctypes.c_size_t], ctypes.c_uint64
    return loaded


@span("call")
def prove(library: ctypes.CDLL, n_bytes: int) -> int:
    return int(library.ghost_fill(n_bytes))


def main() -> None:
    n_bytes = int(float(sys.argv[1] if len(sys.argv) > 1 else 2) * 2**30)
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (("without markers", ()), ("with markers", ("-DMARKED",))):
            library = build(folder, *options)
            with Timeline(name) as timeline:
                prove(library, n_bytes)
            print(timeline.report(), end="\n\n")


if __name__ == "__main__":
    main()
