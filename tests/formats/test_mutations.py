"""Every parser on broken files: an InputError or a right answer, never anything else. `mutate.py` fuzzes for longer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutate import CORPUS, PARSERS, attempt, mutate
from raw_files import MULTIPLIERS, Raw, coefficient_section, coefficients, vector

from snarkline.errors import FormatError
from snarkline.formats.circom import (
    load_proving_key,
    load_r1cs,
    load_witness,
    save_proving_key,
    save_r1cs,
    save_witness,
)

LIGHT = settings(
    max_examples=100, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def test_the_corpus_is_accepted(tmp_path: Path) -> None:
    for file, data in CORPUS:
        public_of_the_larger_curve = file == "public.json" and len(data) > 100
        assert attempt(file, data, tmp_path) or public_of_the_larger_curve


@LIGHT
@given(entry=st.sampled_from(range(len(CORPUS))), changes=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_broken_files(entry: int, changes: int, seed: int, tmp_path: Path) -> None:
    file, data = CORPUS[entry]
    rng = random.Random(seed)
    for _ in range(changes):
        data = mutate(data, rng)
    attempt(file, data, tmp_path)


@LIGHT
@given(file=st.sampled_from(sorted(PARSERS)), data=st.binary(max_size=300))
def test_random_bytes(file: str, data: bytes, tmp_path: Path) -> None:
    for head in (b"", b"r1cs\x01\0\0\0", b"wtns\x02\0\0\0", b"zkey\x01\0\0\0", b"[", b'{"protocol": "groth16", '):
        attempt(file, head + data, tmp_path)


NAMES = ["protocol", "curve", "nPublic", "IC", "pi_a", "pi_b", "pi_c", "vk_alpha_1", "vk_beta_2", "x"]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=90) | st.integers(0).map(str)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=20,
)


@LIGHT
@given(file=st.sampled_from(["verification_key.json", "proof.json", "public.json"]), document=JSON)
def test_random_documents(file: str, document: object, tmp_path: Path) -> None:
    attempt(file, json.dumps(document).encode(), tmp_path)


SAVERS: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "circuit.r1cs": (load_r1cs, save_r1cs),
    "circuit.wtns": (load_witness, save_witness),
    "circuit.zkey": (load_proving_key, save_proving_key),
}


def in_one_order(raw: Raw) -> list[tuple[int, bytes]]:
    """The sections by id, the coefficients of a key by row and matrix."""
    if raw.magic == b"zkey":
        records = sorted(coefficients(raw), key=lambda record: (record[1], record[0]))
        raw = raw.with_section(4, coefficient_section(records))
    return sorted(raw.sections)


@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MULTIPLIERS)
@pytest.mark.parametrize("file", SAVERS)
@pytest.mark.filterwarnings("ignore")
def test_a_bit_anywhere(step: int, name: str, file: str, tmp_path: Path) -> None:
    """A flipped bit in every `step`th byte: refused, or read as it stands. Points of a key are always refused."""
    data, rng = vector(name, file), random.Random(7)
    load, save = SAVERS[file]
    raw = Raw.split(data)
    path, again = tmp_path / "broken", tmp_path / "again"
    always = (1, 2, 3, 5, 6, 7, 8, 9) if file == "circuit.zkey" else ()
    covered = {raw.offset(i) + k for i in always for k in range(len(raw[i]))}
    for at in range(rng.randrange(step), len(data), step):
        broken = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        path.write_bytes(broken)
        try:
            loaded = load(path)
        except FormatError:
            continue
        assert at not in covered
        save(loaded, again)
        assert in_one_order(Raw.split(again.read_bytes())) == in_one_order(Raw.split(broken))
