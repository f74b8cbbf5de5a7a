"""Keys with single bits flipped: refused when loaded, found by the self-check, or harmless; never an invalid proof."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
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


def places(data: bytes, step: int) -> list[int]:
    """The header, the heads of all sections, and of each content the first, the last and every `step`th byte."""
    heads = {
        at - k for content in sections(data).values() for at in [content.start] for k in range(1, SECTION_BYTES + 1)
    }
    found = {*range(HEADER_BYTES), *heads}
    for content in sections(data).values():
        if content:
            found |= {content.start, content.stop - 1, *content[::step]}
    return sorted(found)


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_bit_flips(tmp_path: Path, curve: Curve, step: int) -> None:
    circuit, key = EDGE_CIRCUITS["multiplier"](), development_key("multiplier", curve)
    path = tmp_path / "c.zkey"
    save_proving_key(key, path)
    intact, rng, outcome = path.read_bytes(), random.Random(7), Counter[str]()
    contents = sections(intact)
    unread = contents[10]  # the contributions, which no proof needs
    for offset in places(intact, step):
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
        assert offset in unread or not any(offset in content for content in contents.values()), f"byte {offset}"
    assert outcome["refused"] > outcome["found"] > 0


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_bit_flips_after_loading(tmp_path: Path, curve: Curve) -> None:
    """Points that change in memory after they were checked: no invalid proof, whatever else."""
    circuit, path = EDGE_CIRCUITS["15 rows"](), tmp_path / "c.zkey"
    save_proving_key(development_key("15 rows", curve), path)
    key, rng = load_proving_key(path, copy=True), random.Random(11)
    tables = {"A": key.a.points, "B1": key.b1.points, "B2": key.b2.points, "L": key.l.points, "H": key.h}
    found = Counter[str]()
    for name, table in tables.items():
        data = table.limbs.view(np.uint8).reshape(-1) if table.limbs.flags["C_CONTIGUOUS"] else None
        assert data is not None
        for _ in range(4):
            at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
            data[at] ^= bit
            try:
                with Prover(key, threads=1) as prover:
                    proof = prover.prove(circuit.witness(curve))
                assert verify(key.verifying_key, proof)
            except SnarklineError:
                found[name] += 1
            finally:
                data[at] ^= bit
    assert set(found) >= {"A", "L", "H"}, "points that matter"
