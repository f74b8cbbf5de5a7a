"""`import snarkline`: what it offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import snarkline


@pytest.mark.parametrize("name", snarkline.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(snarkline, name)
    assert value.__name__ == name
    assert name in dir(snarkline)


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'prove_everything'"):
        _ = snarkline.prove_everything  # type: ignore[attr-defined]


def test_import_is_cheap() -> None:
    """None of the package's modules but `lazy`, and none of the heavy ones, is loaded before a name is used."""
    code = "import sys, snarkline; print(*[m for m in sys.modules if m.startswith('snarkline.') or m in HEAVY])"
    heavy = "HEAVY = {'numpy', 'rich', 'typer', 'ctypes', 'asyncio'}; "
    loaded = subprocess.run([sys.executable, "-c", heavy + code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["snarkline.lazy"]
