"""The wheel, in a new environment and without a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel() -> Path:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    (found,) = (ROOT / "dist").glob(f"snarkline-*{tag}-manylinux*.whl")
    return found


def test_what_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "snarkline/py.typed" in names
    assert "snarkline/native/_core.pyi" in names
    assert "snarkline/include/snarkline/trace.h" in names
    assert "snarkline/csrc/common/field.h" in names
    assert any(name.startswith("snarkline/csrc/device/") for name in names)
    assert not any(name.startswith(("snarkline/csrc/host/", "snarkline/csrc/bind/")) for name in names)


def test_it_proves_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", wheel], check=True, timeout=240)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PATH": str(binaries)}
    done = subprocess.run(
        [binaries / "snarkline", "demo", "--json"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["valid"] is True
