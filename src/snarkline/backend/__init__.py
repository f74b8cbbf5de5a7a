"""Backends by name."""

from __future__ import annotations

from snarkline.backend.base import Backend
from snarkline.errors import InputError
from snarkline.memory import Arena

BACKENDS = ("auto", "cpu", "cuda", "reference")
"""The names that `open_backend` takes."""

MAX_THREADS = 1024
"""The most threads that an operation can be given (the compiled core's limit)."""


def open_backend(name: str, threads: int, arena: Arena) -> Backend:
    """The backend of that name ("auto" is the fastest that can run here), with its vectors from `arena`.

    `threads` is the number of threads that an operation uses. Raises InputError for a name that is not one of
    `BACKENDS`, or a number of threads outside 1 to `MAX_THREADS`, DeviceError for "cuda" where no GPU can be used.
    """
    if not 1 <= threads <= MAX_THREADS:
        raise InputError(f"threads: expected 1 to {MAX_THREADS}, found {threads}")
    if name in ("auto", "cpu"):
        from snarkline.backend.cpu import CpuBackend

        return CpuBackend(threads, arena)
    if name == "reference":
        from snarkline.backend.reference import ReferenceBackend

        return ReferenceBackend()
    if name == "cuda":
        from snarkline.backend.cpu import CpuBackend
        from snarkline.backend.cuda import CudaBackend, open_device

        return CudaBackend(open_device(), CpuBackend(threads, arena))
    raise InputError(f"backend {name!r}: expected one of {', '.join(BACKENDS)}")
