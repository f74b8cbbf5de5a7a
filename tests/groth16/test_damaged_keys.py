"""Keys with single bits flipped: refused when loaded, found by the self-check, or harmless; never an invalid proof."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key

from snarkline import load_proving_key, save_proving_key
from snarkline.curves.curve import CURVES, Curve
from snarkline.errors import InputError, SnarklineError
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

HEADER_BYTES, SECTION_BYTES = 12, 12


def sections(data: bytes) -> dict[int, range]:
    """Where the content of each section is."""
    found, offset = {}, HEADER_BYTES
    while offset < len(data):
        size = int.from_bytes(data[offset + 4 : offset + SECTION_BYTES], "little")
        start = offset + SECTION_BYTES
        found[int.from_bytes(data[offset : offset + 4], "little")] = range(start, start + size)
        offset = start + size
    return found


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_bit_flips(tmp_path: Path, curve: Curve) -> None:
    circuit, key = EDGE_CIRCUITS["multiplier"](), development_key("multiplier", curve)
    path = tmp_path / "c.zkey"
    save_proving_key(key, path)
    intact, rng, outcome = path.read_bytes(), random.Random(7), Counter[str]()
    places = [rng.choice(content) for content in sections(intact).values() if content for _ in range(8)]
    for offset in [*range(HEADER_BYTES), *places]:
        damaged = bytearray(intact)
        damaged[offset] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loaded = load_proving_key(path)
        except InputError:
            outcome["refused"] += 1
            continue
        try:
            with Prover(loaded, threads=1) as prover:
                proof = prover.prove(circuit.witness(curve))
        except SnarklineError:
            outcome["found"] += 1
            continue
        assert verify(key.verifying_key, proof), f"byte {offset}"
        outcome["harmless"] += 1
    assert outcome["refused"] > outcome["found"] > 0
