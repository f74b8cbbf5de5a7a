"""Kernel modules: CUDA C++ from the package, compiled by NVRTC for the GPU at hand and kept on disk.

A module is one kernel file compiled for one curve (and group). Its headers are inlined first: the text that is hashed
is then all that the result depends on, besides the options, the architecture and the compiler.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from snarkline.backend.cuda import nvrtc
from snarkline.curves.curve import Curve, Group
from snarkline.errors import DeviceError

SOURCE_ROOT = Path(__file__).parents[2] / "csrc" / "device"
OPTIONS = ("-std=c++20", "-default-device")
CURVE_TYPES = {"bn254": "Bn254", "bls12_381": "Bls12_381"}


class KernelError(DeviceError):
    """A kernel module that could not be compiled or loaded."""


@dataclass(frozen=True)
class Module:
    """One kernel file for one curve and, where its kernels work on points, one group."""

    file: str
    curve: str
    group: int | None = None

    @cached_property
    def name(self) -> str:
        suffix = "" if self.group is None else f"_g{self.group + 1}"
        return f"{self.file}_{self.curve}{suffix}"

    @property
    def defines(self) -> tuple[str, ...]:
        group = () if self.group is None else (f"-DSNL_GROUP={self.group + 1}",)
        return (f"-DSNL_CURVE={CURVE_TYPES[self.curve]}", *group)


SCALAR_FILES = ("vector", "ntt", "digits", "structured", "program", "bits", "inverse")
POINT_FILES = ("rounds", "buckets", "fixed_base")


def modules_of(curve: Curve) -> list[Module]:
    """All modules of a curve, those that take longest to compile first."""
    points = [Module(file, curve.name, group.value) for group in (Group.G2, Group.G1) for file in POINT_FILES]
    return points + [Module(file, curve.name) for file in SCALAR_FILES]


@cache
def flattened_source(file: str) -> str:
    """The text of a kernel file with its own headers inlined, each once."""
    return "\n".join(_inlined(SOURCE_ROOT / f"{file}.cu", set()))


def _inlined(path: Path, seen: set[Path]) -> Iterable[str]:
    path = path.resolve()
    if path in seen:
        return
    seen.add(path)
    for line in path.read_text().splitlines():
        include = re.match(r'\s*#include "(.+)"', line)
        if include:
            yield from _inlined(path.parent / include[1], seen)
        elif line.strip() != "#pragma once":
            yield line


def compile_module(module: Module, architecture: str) -> bytes:
    """The machine code of a module for an architecture such as "90". Needs NVRTC, but no GPU."""
    options = (*OPTIONS, f"-arch=sm_{architecture}", *module.defines)
    try:
        code = nvrtc.compile_cubin(flattened_source(module.file), f"{module.name}.cu", options)
    except nvrtc.CompileError as error:
        raise KernelError(f"kernel module {module.name} does not compile for sm_{architecture}:\n{error}") from None
    return code + b"\0"  # CuPy takes a last byte of 0 for the end of a string


def compiler_version() -> str:
    """The version of NVRTC, such as "13.0". Raises KernelError where there is none."""
    try:
        return ".".join(str(part) for part in nvrtc.version())
    except nvrtc.CompilerMissingError as error:
        raise KernelError(str(error)) from None


@dataclass(frozen=True)
class Built:
    """What `build` did: the files of the modules, how many it compiled, and the processor seconds of each."""

    paths: dict[Module, Path]
    seconds: dict[Module, float]


Progress = Callable[[int, int, str], None]
"""Called with (modules done, modules to compile, name of the module that is done)."""


class KernelCache:
    """Compiled modules in a folder. Several processes may share it: a file appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, module: Module, architecture: str) -> Path:
        parts = (flattened_source(module.file), *OPTIONS, *module.defines, architecture, compiler_version())
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
        return self.folder / f"{module.name}_sm{architecture}_{key}.cubin"

    def build(
        self, modules: Sequence[Module], architecture: str, *, workers: int, progress: Progress | None = None
    ) -> Built:
        """Compile what is missing, several at a time. Raises KernelError."""
        paths = {module: self.path(module, architecture) for module in modules}
        missing = [module for module in modules if not paths[module].exists()]
        seconds: dict[Module, float] = {}
        if not missing:
            return Built(paths, seconds)
        self.folder.mkdir(parents=True, exist_ok=True)

        def compile_one(module: Module) -> None:
            begin = time.thread_time()
            code = compile_module(module, architecture)
            temporary = paths[module].with_suffix(f".{time.monotonic_ns()}.part")
            temporary.write_bytes(code)
            temporary.replace(paths[module])
            seconds[module] = time.thread_time() - begin
            if progress is not None:
                progress(len(seconds), len(missing), module.name)

        with ThreadPoolExecutor(max(1, min(workers, len(missing)))) as pool:
            for future in [pool.submit(compile_one, module) for module in missing]:
                future.result()
        return Built(paths, seconds)

    def entries(self) -> list[Path]:
        """The files of the cache, by name."""
        return sorted(self.folder.glob("*.cubin")) if self.folder.is_dir() else []

    def clean(self) -> int:
        """Remove all compiled modules; returns how many there were."""
        entries = self.entries()
        for path in entries:
            path.unlink(missing_ok=True)
        return len(entries)
