"""Kernels compile for real architectures, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from snarkline.backend.cuda.module import (
    KernelCache,
    KernelError,
    Module,
    compiler_version,
    flattened_source,
    modules_of,
)
from snarkline.curves.curve import BLS12_381, BN254


@pytest.fixture(autouse=True)
def _nvrtc() -> None:
    try:
        compiler_version()
    except KernelError:
        pytest.skip("NVRTC is not installed")


def test_light_modules_compile(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    modules = [Module("vector", "bn254"), Module("digits", "bls12_381"), Module("inverse", "bn254")]
    seen: list[str] = []
    built = cache.build(modules, "90", workers=2, progress=lambda done, total, name: seen.append(name))
    assert set(built.seconds) == set(modules) and len(seen) == 3
    assert all(path.read_bytes()[:4] == b"\x7fELF" for path in built.paths.values())
    assert not cache.build(modules, "90", workers=2).seconds  # from the cache
    assert cache.path(modules[0], "80") != cache.path(modules[0], "90")
    assert cache.clean() == 3 and cache.entries() == []


@pytest.mark.slow
def test_all_modules_compile_within_their_budget(tmp_path: Path) -> None:
    built = KernelCache(tmp_path).build([*modules_of(BN254), *modules_of(BLS12_381)], "90", workers=2)
    assert len(built.seconds) == 20


def test_sources_are_flat() -> None:
    for module in modules_of(BN254):
        text = flattened_source(module.file)
        assert '#include "' not in text and text.count("struct Field {") == 1


def test_a_kernel_that_does_not_compile_names_its_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import snarkline.backend.cuda.module as module

    monkeypatch.setattr(module, "flattened_source", lambda file: "not C++")
    with pytest.raises(KernelError, match="vector_bn254"):
        KernelCache(tmp_path).build([Module("vector", "bn254")], "90", workers=1)
