"""The vectors of the reference crates (tests/vectors/filecoin), and recording of circuits to compare with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ordered_digest import constraint_digest

from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BLS12_381
from snarkline.r1cs.structured import StructuredR1CS

VECTORS = Path(__file__).parents[1] / "vectors" / "filecoin"


@cache
def vectors(name: str) -> dict[str, dict[str, Any]]:
    """The rows of a file by their names."""
    return {row["name"]: row for row in json.loads((VECTORS / name).read_text())}


def bit(i: int) -> int:
    """Bit i of the message that conformance/src/gadgets.rs hashes."""
    return (37 * (i // 8) + 11 & 255) >> (7 - i % 8) & 1


def number(i: int) -> int:
    """Number i of its field elements."""
    return pow(1_000_003 * i + 17, 5, BLS12_381.r)


def recorded(gadget: Callable[[ConstraintSystem], object]) -> StructuredR1CS:
    cs = ConstraintSystem(BLS12_381)
    gadget(cs)
    return cs.finish()


def assert_same(system: StructuredR1CS, expected: dict[str, Any]) -> None:
    """The same inputs, aux, constraints and terms, in the same order."""
    counts = (system.n_public + 1, system.n_wires - system.n_public - 1, system.n_constraints)
    assert counts == tuple(expected[k] for k in ("inputs", "aux", "constraints"))
    assert constraint_digest(system) == expected["constraints_sha256"]
