"""The backend for NVIDIA GPUs. Vectors, key tables and matrices live on the device; see docs/gpu.md."""

from __future__ import annotations

import sys
from pathlib import Path

from snarkline.backend.cuda.backend import CudaBackend
from snarkline.backend.cuda.cupy_driver import CupyDriver, require_driver
from snarkline.backend.cuda.gpu import Gpu
from snarkline.backend.cuda.host_memory import CudaFence, CudaPinner
from snarkline.backend.cuda.module import KernelCache, KernelError, modules_of

__all__ = [
    "CudaBackend",
    "CudaFence",
    "CudaPinner",
    "CupyDriver",
    "Gpu",
    "KernelCache",
    "KernelError",
    "default_cache_folder",
    "modules_of",
    "open_device",
    "require_driver",
]


def default_cache_folder() -> Path:
    """Where compiled kernels are kept."""
    return Path.home() / ".cache" / "snarkline" / "kernels"


def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> Gpu:
    """The GPU of that number. Raises NoDeviceError where it cannot be used."""
    return Gpu(CupyDriver(ordinal), default_cache_folder(), memory_limit=memory_limit, progress=_report)


def _report(done: int, total: int, name: str) -> None:
    """Compiling takes seconds at the first use of a module: say so."""
    sys.stderr.write(f"kernel module {name} compiled ({done} of {total})\n")
