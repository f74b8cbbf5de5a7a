"""The CUDA backend on an emulated device, with thresholds so low that small inputs go through every kernel."""

from __future__ import annotations

import pytest
from emulation import EmulatedDevice

import snarkline.backend.cuda.backend
import snarkline.backend.cuda.msm
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.memory import Arena


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> CudaBackend:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    monkeypatch.setattr(snarkline.backend.cuda.msm, "MIN_ADDITIONS", 20)
    return CudaBackend(EmulatedDevice(), CpuBackend(1, Arena()))


@pytest.fixture
def cpu() -> CpuBackend:
    return CpuBackend(1, Arena())
