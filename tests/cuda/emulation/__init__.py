"""An emulated device: the kernels compiled for the processor (emulation.h), memory from NumPy."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from snarkline.backend.cuda.module import SOURCE_ROOT, Module, flattened_source

HERE = Path(__file__).parent
FLAGS = ("-std=c++20", "-O1", "-w", "-fPIC", "-shared")


@cache
def library(module: Module) -> ctypes.CDLL:
    """The module as a shared library, compiled once and kept in the temporary folder."""
    sources = [(HERE / name).read_text() for name in ("emulation.h", "emulation.cpp")]
    text = "\0".join([flattened_source(module.file), *sources, *module.defines, *FLAGS])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"snarkline_emulation_{module.name}_{key}.so"
    if not path.exists():
        part = path.with_suffix(f".{id(module)}.part")
        command = ["g++", *FLAGS, *module.defines, "-include", str(HERE / "emulation.h"), "-x", "c++"]
        command += [str(SOURCE_ROOT / f"{module.file}.cu"), str(HERE / "emulation.cpp"), "-o", str(part)]
        subprocess.run(command, check=True)
        part.replace(path)
    return ctypes.CDLL(str(path))


class EmulatedDevice:
    """A `Device` on the processor. `limit` bounds the bytes that are in use at a time."""

    name = "emulation"
    multiprocessors = 2

    def __init__(self, limit: int = 1 << 32) -> None:
        self.clock = HostClock()
        self.limit = limit
        self.launches: list[str] = []

    def empty(self, shape, dtype):
        array = np.empty(shape, dtype)
        array.view(np.uint8).fill(0xA5)  # poisoned: a kernel that leaves something unwritten shows
        return array.view(_DeviceArray)

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype).view(_DeviceArray)

    def upload(self, host):
        return np.array(host, order="C").view(_DeviceArray)

    def download(self, array):
        return np.array(array, order="C").view(np.ndarray)

    def copy(self, target, source):
        target[...] = source

    def owns(self, array):
        return isinstance(array, _DeviceArray)

    def prepare(self, modules: Sequence[Module]) -> None:
        for module in modules:
            library(module)

    def launch(self, module, kernel, grid, block, *arguments, shared=0):
        self.launches.append(kernel)
        width, height = grid if isinstance(grid, tuple) else (grid, 1)
        words = [_word(a) for a in arguments]
        assert len(words) <= 16 and block <= 1024
        lib = library(module)
        lib.emulate_launch(
            ctypes.cast(getattr(lib, kernel), ctypes.c_void_p), (ctypes.c_uint64 * len(words))(*words),
            ctypes.c_uint(len(words)), (ctypes.c_uint * 3)(width, height, block), ctypes.c_size_t(shared),
        )  # fmt: skip

    def free_bytes(self):
        return self.limit

    def synchronize(self):
        pass

    def close(self):
        pass


class HostClock:
    """A clock for a device that does its work at once."""

    name = "emulation"

    def record(self):
        return time.perf_counter()

    def elapsed(self, begin, end):
        return end - begin


class _DeviceArray(np.ndarray):
    """An array that stands for device memory."""


def _word(argument) -> int:
    if argument is None:
        return 0
    if isinstance(argument, np.ndarray):
        assert isinstance(argument, _DeviceArray), "a kernel was given host memory"
        assert argument.flags.c_contiguous
        return argument.ctypes.data
    return int(argument) & (2**64 - 1)
