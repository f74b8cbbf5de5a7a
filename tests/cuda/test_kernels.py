"""Kernels compile for real architectures, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from record_kernels import MODULES, OTHERS, changed, recorded

from snarkline.backend.cuda import nvrtc
from snarkline.backend.cuda.module import (
    KernelCache,
    KernelError,
    Module,
    compile_module,
    compiler_version,
    flattened_source,
    modules_of,
)
from snarkline.curves.curve import BN254, CURVES


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


CEILINGS = [Module("ceiling", curve.name) for curve in CURVES.values()]
"""What `snarkline bench gpu` compiles beside those of proofs."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", [*MODULES, *CEILINGS], ids=lambda module: module.name)
def test_every_module_compiles(module: Module) -> None:
    assert compile_module(module, "90")[:4] == b"\x7fELF"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("architecture", OTHERS)
def test_changed_modules_compile_for_other_architectures(architecture: str, tmp_path: Path) -> None:
    """Those that have changed since `record_kernels.py` compiled them."""
    modules = changed(architecture)
    assert len(KernelCache(tmp_path).build(modules, architecture, workers=2).seconds) == len(modules)


def test_the_record_is_of_these_modules() -> None:
    assert set(recorded()) <= set(OTHERS)
    assert all(set(known) <= {module.name for module in MODULES} for known in recorded().values())


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc._library.cache_clear()
    monkeypatch.setattr(nvrtc, "candidates", lambda: [Path("libnvrtc-that-is-not-there.so")])
    with pytest.raises(KernelError, match=r"cannot be loaded: pip install 'snarkline\[cuda13\]'"):
        compiler_version()
    nvrtc._library.cache_clear()


def test_sources_are_flat() -> None:
    for module in modules_of(BN254):
        text = flattened_source(module.file)
        assert '#include "' not in text and text.count("struct Field {") == 1


def test_a_kernel_that_does_not_compile_names_its_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import snarkline.backend.cuda.module as module

    monkeypatch.setattr(module, "flattened_source", lambda file: "not C++")
    with pytest.raises(KernelError, match="vector_bn254"):
        KernelCache(tmp_path).build([Module("vector", "bn254")], "90", workers=1)
