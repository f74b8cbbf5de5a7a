"""`snarkline prove` with options for a GPU, on a machine where none may be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from snarkline.cli.gpu_options import device_numbers, gpu_memory_bytes
from snarkline.errors import InputError

VECTOR = Path(__file__).parents[1] / "vectors" / "circom" / "multiplier_bn128"


def run(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snarkline", "prove", VECTOR / "circuit.zkey", VECTOR / "circuit.wtns", *options]
    return subprocess.run(
        [*command, "-o", tmp_path / "proof.json", "--public", tmp_path / "public.json"],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip


def test_a_gpu_that_is_asked_for_and_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "--backend", "cuda")
    assert done.returncode == 2 and not (tmp_path / "proof.json").exists()
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and not done.stdout


def test_auto_says_nothing_of_a_gpu_for_a_small_circuit(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0 and not done.stderr and "CPU" not in done.stdout


@pytest.mark.parametrize("options", [("--devices", "0,1"), ("--gpu-memory", "2GiB")])
def test_auto_says_why_a_small_circuit_has_no_gpu_although_options_name_one(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = run(tmp_path, *options)
    assert done.returncode == 0 and "on the CPU: `auto` takes a GPU from a domain of 131072 on" in done.stdout


def test_a_bench_in_processes_of_its_own_tells_what_is_missing_in_a_line() -> None:
    command = ["bench", "prove", VECTOR / "circuit.zkey", VECTOR / "circuit.wtns", "--release", "sync"]
    done = subprocess.run(
        [sys.executable, "-m", "snarkline", *command, "--backend", "cuda", "--circuits", "1", "--runs", "1"],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 2 and "error: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("architecture", ["9x", "20", "-1", ""])
def test_an_architecture_that_there_is_not(architecture: str) -> None:
    command = [sys.executable, "-m", "snarkline", "kernels", "build", f"--arch={architecture}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"error: --arch: expected a compute capability from 75 on, found {architecture!r}\n"


@pytest.mark.parametrize(
    "options",
    [
        ("--gpu-memory", "much"),
        ("--gpu-memory", "1M"),
        ("--devices", "a"),
        ("--devices", "0,0"),
        ("--backend", "cpu", "--devices", "0"),
        ("--backend", "cpu", "--gpu-memory", "8G"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, *options)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_numbers_and_sizes() -> None:
    assert device_numbers(None) is None and gpu_memory_bytes(None) is None
    assert device_numbers("0") == (0,) and device_numbers("3,1") == (3, 1)
    assert gpu_memory_bytes("1.5G") == 3 << 29 and gpu_memory_bytes("512MiB") == 512 << 20
    for text in ("", ",", "1,", "-1", "0x1", "1 2"):
        with pytest.raises(InputError, match="--devices"):
            device_numbers(text)
