"""The CUDA backend on an emulated device, with thresholds so low that small inputs go through every kernel; and a GPU
with a circuit for tests that are marked so."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulation import EmulatedDevice
from on_gpu import BLINDING

import snarkline.backend.cuda.backend
import snarkline.backend.cuda.msm
from snarkline import Prover, load_proving_key, load_r1cs, load_witness, save_proving_key, setup
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend, Gpu, open_device
from snarkline.cli.demo import unpack_circuit
from snarkline.errors import DeviceError, SecurityWarning
from snarkline.groth16.keys import Proof, ProvingKey
from snarkline.memory import Arena
from snarkline.r1cs.witness import Witness


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> CudaBackend:
    monkeypatch.setattr(snarkline.backend.cuda.backend, "SMALL", 2)
    monkeypatch.setattr(snarkline.backend.cuda.msm, "MIN_ADDITIONS", 20)
    return CudaBackend(EmulatedDevice(), CpuBackend(1, Arena()))


@pytest.fixture
def cpu() -> CpuBackend:
    return CpuBackend(1, Arena())


# ---- emulated GPUs ----


@pytest.fixture(scope="module")
def multiplier() -> tuple[ProvingKey, Witness]:
    folder = Path(__file__).parents[1] / "vectors" / "circom" / "multiplier_bn128"
    return load_proving_key(folder / "circuit.zkey"), load_witness(folder / "circuit.wtns")


@pytest.fixture(scope="module")
def product(multiplier: tuple[ProvingKey, Witness]) -> Proof:
    key, witness = multiplier
    with Prover(key, backend="cpu", threads=1) as prover:
        return prover.prove(witness, blinding_for_tests=BLINDING)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[EmulatedDevice]:
    """Those that are opened in place of GPUs."""
    opened: list[EmulatedDevice] = []

    def open_device(ordinal: int = 0, *, memory_limit: int | None = None) -> EmulatedDevice:
        opened.append(EmulatedDevice(ordinal=ordinal, memory_limit=memory_limit))
        return opened[-1]

    monkeypatch.setattr(snarkline.backend.cuda, "open_device", open_device)
    monkeypatch.setattr(snarkline.backend.cuda, "require_driver", lambda: None)
    monkeypatch.setattr(snarkline.backend, "GPU_LEAST_DOMAIN", 1)
    return opened


# ---- a real one ----


@pytest.fixture(scope="module")
def gpu() -> Iterator[Gpu]:
    try:
        device = open_device()
    except DeviceError:
        pytest.skip("no CUDA device")
    yield device
    device.close()


@pytest.fixture(scope="module")
def circuit(gpu: Gpu, tmp_path_factory: pytest.TempPathFactory) -> tuple[ProvingKey, Witness, Path]:
    """SHA-256: a domain of 2^16, most wires are bits. Its files are in the folder."""
    folder = tmp_path_factory.mktemp("circuit")
    r1cs, witness = unpack_circuit(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        key = setup(load_r1cs(r1cs), backend="cuda", toxic_waste_for_tests=(3, 5, 7, 11, 13))
    save_proving_key(key, folder / "key.zkey")
    (folder / "witness.wtns").write_bytes(witness.read_bytes())
    return load_proving_key(folder / "key.zkey"), load_witness(witness, curve=key.curve), folder


@pytest.fixture(scope="module")
def expected(circuit: tuple[ProvingKey, Witness, Path]) -> Proof:
    with Prover(circuit[0], backend="cpu") as prover:
        return prover.prove(circuit[1], blinding_for_tests=BLINDING)
