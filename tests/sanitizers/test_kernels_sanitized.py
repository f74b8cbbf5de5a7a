"""The portable kernels and the decoders under sanitizers. Compiling one program takes minutes of processor time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent


@pytest.mark.sanitizer
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("curve", ["Bn254", "Bls12_381"])
@pytest.mark.parametrize("sanitizer", ["undefined", "address", "thread"])
def test_kernels_under_stress(sanitizer: str, curve: str, tmp_path: Path) -> None:
    _run(f"kernels_stress_{curve}", sanitizer, tmp_path)


@pytest.mark.sanitizer
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sanitizer", ["undefined", "address", "thread"])
def test_witness_programs_under_stress(sanitizer: str, tmp_path: Path) -> None:
    """Runs of few instances, on threads that wait for one another."""
    _run("programs_stress", sanitizer, tmp_path)


def _run(target: str, sanitizer: str, tmp_path: Path) -> None:
    subprocess.run(["cmake", "-S", SOURCES, "-B", tmp_path, f"-DSANITIZER={sanitizer}"], check=True, timeout=60)
    subprocess.run(["cmake", "--build", tmp_path, "--target", target], check=True, timeout=3000)
    environment = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run([tmp_path / target], capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("ok\n")
