"""Backends by name, and which of them `auto` is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from snarkline.backend.base import Backend, Runner, Workload
from snarkline.errors import DeviceWarning, InputError, NoDeviceError, NoDriverError
from snarkline.memory import Arena

BACKENDS = ("auto", "cpu", "cuda", "reference")
"""The names that `open_backend` takes."""

MAX_THREADS = 1024
"""The most threads that an operation can be given (the compiled core's limit)."""

GPU_LEAST_DOMAIN = 1 << 17
"""The domain from which `auto` looks for a GPU (docs/gpu.md): below, opening one takes longer than some proofs."""

GPU_LEAST_MEMORY = 64 << 20
"""The least cap of GPU memory that is taken for meant."""


def open_backend(
    name: str,
    threads: int,
    arena: Arena,
    *,
    work: Workload | None = None,
    devices: Sequence[int] | None = None,
    gpu_memory: int | None = None,
) -> Runner:
    """The backend of that name, with its host vectors from `arena` and `threads` threads for an operation.

    "auto" is the GPU where there is one that can be used and `work` is large enough for it, the CPU otherwise; the
    runner's `note` says which, and why. `devices` are numbers of GPUs, the first if None; `gpu_memory` caps the bytes
    taken on each. Raises InputError for a name that is not one of `BACKENDS`, a number of threads outside 1 to
    `MAX_THREADS`, and options for a GPU that is not asked for; NoDeviceError for "cuda" where no GPU can be used.
    """
    if not 1 <= threads <= MAX_THREADS:
        raise InputError(f"threads: expected 1 to {MAX_THREADS}, found {threads}")
    _check_options(name, devices, gpu_memory)
    if name == "reference":
        from snarkline.backend.reference import ReferenceBackend

        return ReferenceBackend()
    if name not in BACKENDS:
        raise InputError(f"backend {name!r}: expected one of {', '.join(BACKENDS)}")
    from snarkline.backend.cpu import CpuBackend

    host = CpuBackend(threads, arena)
    if name == "cpu":
        return host
    if name == "auto" and (work is None or work.domain_size < GPU_LEAST_DOMAIN):
        if devices is not None or gpu_memory is not None:
            host.note = f"on the CPU: `auto` takes a GPU from a domain of {GPU_LEAST_DOMAIN} on"
        return host
    try:
        return _open_gpus(host, work, tuple(devices or (0,)), gpu_memory, fall_back=name == "auto")
    except NoDeviceError as error:
        if name == "cuda":
            host.close()
            raise
        if not isinstance(error, NoDriverError):
            warnings.warn(f"{error}; proofs are made on the CPU", DeviceWarning, stacklevel=3)
        host.note = f"on the CPU: {error}"
        return host


def _check_options(name: str, devices: Sequence[int] | None, gpu_memory: int | None) -> None:
    given = [what for what, value in (("devices", devices), ("gpu_memory", gpu_memory)) if value is not None]
    if given and name in ("cpu", "reference"):
        raise InputError(f"{given[0]}: the backend {name} uses no GPU")
    if devices is not None and (not devices or len(set(devices)) != len(devices)):
        raise InputError(f"devices: expected numbers of different GPUs, found {list(devices)}")
    if gpu_memory is not None and gpu_memory < GPU_LEAST_MEMORY:
        raise InputError(f"gpu_memory: expected at least {GPU_LEAST_MEMORY} bytes, found {gpu_memory}")


def _open_gpus(
    host: Backend, work: Workload | None, devices: Sequence[int], gpu_memory: int | None, *, fall_back: bool
) -> Runner:
    from snarkline.backend.cuda import CudaBackend, open_device, require_driver
    from snarkline.backend.runner import DeviceRunner

    require_driver()
    opened: list[CudaBackend] = []
    try:
        for ordinal in devices:
            opened.append(CudaBackend(open_device(ordinal, memory_limit=gpu_memory), host, work=work))
    except NoDeviceError:
        for backend in opened:
            backend.close()
        raise
    return DeviceRunner(opened, host, fall_back=fall_back)
