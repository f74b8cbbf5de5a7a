"""What the recording of a gadget depends on, where that can be told for certain: the sources of this package."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

from snarkline.circuit.builder import Gadget

PACKAGE = "snarkline"


def fingerprint(gadget: Gadget[Any]) -> str | None:
    """A name for what a gadget of this package records, None for others.

    A gadget of someone else's can depend on anything that Python can reach: values that were computed at import,
    decorators, other files. No digest covers that, and a stale recording would be another circuit.
    """
    module, name = gadget.function.__module__ or "", gadget.function.__qualname__
    if module.split(".")[0] != PACKAGE or getattr(sys.modules.get(module), name, None) is not gadget:
        return None
    return f"{package_digest()} {module} {name}"


@cache
def package_digest() -> str:
    """The digest of all sources of this package, which is what its gadgets are recorded by."""
    digest, root = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
