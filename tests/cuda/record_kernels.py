"""Which kernels were compiled for all architectures.

    python tests/cuda/record_kernels.py        compiles what has changed, and writes kernels.json beside this file

A test compiles every module for sm_90, and for the others those that differ from the record.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from snarkline.backend.cuda.module import OPTIONS, KernelCache, Module, flattened_source, modules_of
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.threads import usable_threads

RECORD = Path(__file__).parent / "kernels.json"
OTHERS = ("80", "89", "100", "120")
MODULES = [*modules_of(BN254), *modules_of(BLS12_381)]


def fingerprint(module: Module) -> str:
    """Of all that the result depends on, but for the compiler."""
    text = "\0".join((flattened_source(module.file), *OPTIONS, *module.defines))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded() -> dict[str, dict[str, str]]:
    """Fingerprints by architecture and module."""
    record: dict[str, dict[str, str]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return record


def changed(architecture: str) -> list[Module]:
    """The modules that differ from those compiled for an architecture."""
    known = recorded().get(architecture, {})
    return [module for module in MODULES if fingerprint(module) != known.get(module.name)]


def main() -> None:
    for architecture in OTHERS:
        with tempfile.TemporaryDirectory() as folder:
            built = KernelCache(Path(folder)).build(changed(architecture), architecture, workers=usable_threads())
        print(f"sm_{architecture}: {len(built.seconds)} modules, {sum(built.seconds.values()):.0f} s", flush=True)
        record = recorded() | {architecture: {module.name: fingerprint(module) for module in MODULES}}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
