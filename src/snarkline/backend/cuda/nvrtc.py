"""NVRTC, the compiler of CUDA C++ in a library, through ctypes: neither CuPy nor a GPU is needed to compile.

The functions are those of nvrtc.h (CUDA 12 and 13). ctypes lets other threads run while one compiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from snarkline.errors import DeviceError, MissingLibraryError

# Folders of NVIDIA's wheels below the namespace package `nvidia`, and names for the system's loader.
TOOLKIT = Path("/usr/local/cuda/lib64")
WHEELS = (("cu13/lib", "libnvrtc.so.13"), ("cuda_nvrtc/lib", "libnvrtc.so.12"))
INSTALL = "pip install 'snarkline[cuda13]'"


class CompileError(DeviceError):
    """A program that does not compile; the text is the compiler's log."""


class CompilerMissingError(MissingLibraryError):
    """No NVRTC, or one that cannot be loaded."""


def version() -> tuple[int, int]:
    """Major and minor. Raises CompilerMissingError."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_cubin(source: str, name: str, options: Sequence[str]) -> bytes:
    """Machine code for the architecture that the options name. Raises CompileError, CompilerMissingError."""
    library, program = _library(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), words) != 0:
            raise CompileError(_read("nvrtcGetProgramLog", program).decode(errors="replace").rstrip("\0\n"))
        return _read("nvrtcGetCUBIN", program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(function: str, program: ctypes.c_void_p) -> bytes:
    """What a pair of functions NAMESize(program, size) and NAME(program, buffer) gives."""
    size = ctypes.c_size_t()
    _check(getattr(_library(), f"{function}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(getattr(_library(), function)(program, buffer))
    return buffer.raw[: size.value]


def _check(status: int) -> None:
    if status != 0:
        text = ctypes.string_at(_library().nvrtcGetErrorString(status)).decode()
        raise CompileError(f"NVRTC: {text} ({status})")


@cache
def _library() -> ctypes.CDLL:
    failures = []
    for path in candidates():
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            failures.append(str(error))
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_void_p
        return library
    raise CompilerMissingError(f"NVRTC, which compiles the kernels, cannot be loaded: {INSTALL} ({failures[0]})")


def candidates() -> list[Path]:
    """Where NVRTC may be: in NVIDIA's wheels, in a CUDA toolkit, or where the system's loader looks."""
    spec = find_spec("nvidia")
    roots = [] if spec is None else [Path(root) for root in spec.submodule_search_locations or ()]
    wheels = [root / folder / name for folder, name in WHEELS for root in roots]
    installed = [path for path in (*wheels, *(TOOLKIT / name for _, name in WHEELS)) if path.exists()]
    return installed + [Path(name) for _, name in WHEELS]
