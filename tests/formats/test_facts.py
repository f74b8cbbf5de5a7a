"""Symbols, file facts, and where warnings point."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from raw_files import MULTIPLIERS, Raw, vector

from snarkline import formats
from snarkline.errors import FormatError, SecurityWarning
from snarkline.formats.binary import read_at_most
from snarkline.formats.circom import load_proving_key, load_symbols, load_verifying_key, read_info


def write(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_symbols(tmp_path: Path) -> None:
    path = write(tmp_path, "c.sym", vector("multiplier_bn128", "circuit.sym"))
    assert load_symbols(path) == {1: "main.d", 2: "main.a", 3: "main.b", 4: "main.k", 5: "main.c"}


def test_the_first_name_of_a_wire_counts_and_removed_signals_have_none(tmp_path: Path) -> None:
    path = write(tmp_path, "c.sym", b"1,1,0,main.a\n2,1,0,main.b\n3,-1,0,main.gone\n4,2,1,main.x[0],[1]")
    assert load_symbols(path) == {1: "main.a", 2: "main.x[0],[1]"}
    assert load_symbols(write(tmp_path, "empty.sym", b"")) == {}


@pytest.mark.parametrize(
    "line", [b"1,1,0", b"", b"x,y,z,w", b"1,-2,0,a", b"1,99999999999,0,a", b"1,0x1,0,a", b"1,,0,a", b"\xff" * 70_000]
)
def test_lines_that_are_no_symbols(line: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, "c.sym", b"1,1,0,main.a\n" + line + b"\n")
    with pytest.raises(FormatError) as caught:
        load_symbols(path)
    assert (caught.value.path, caught.value.where) == (str(path), "line 2")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_facts(name: str, tmp_path: Path) -> None:
    curve = {"multiplier_bn128": "bn254", "multiplier_bls12381": "bls12_381"}[name]
    expected = {
        "circuit.r1cs": ("circuit", {"curve": curve, "constraints": 2, "wires": 6, "public outputs": 1}),
        "circuit.wtns": ("witness", {"curve": curve, "wires": 6}),
        "circuit.zkey": ("proving key", {"curve": curve, "wires": 6, "public inputs": 1, "domain size": 4,
                                         "coefficients": 6, "contributions": 1}),
        "verification_key.json": ("verifying key", {"curve": curve, "public inputs": 1}),
        "proof.json": ("proof", {"curve": curve}),
        "public.json": ("public inputs", {"public inputs": 1}),
    }  # fmt: skip
    if name == "multiplier_bn128":
        expected["circuit.sym"] = ("symbols", {"named wires": 5})
    for file, (kind, facts) in expected.items():
        data = vector(name, file)
        info = read_info(write(tmp_path, file, data))
        assert (info.kind, info.n_bytes, info.path) == (kind, len(data), str(tmp_path / file))
        assert facts.items() <= info.facts.items()


@pytest.mark.parametrize("data", [b"", b"hello", b"ptau\x01\0\0\0", b"\xfd7zXZ", b"{", b"{}", b'{"protocol": "plonk"}'])
def test_files_of_other_kinds(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read_info(write(tmp_path, "f", data))


def test_warnings_point_to_the_caller(tmp_path: Path) -> None:
    raw = Raw.split(vector("multiplier_bn128", "circuit.zkey"))
    path = write(tmp_path, "k.zkey", raw.with_section(3, raw[3][:64] + bytes(64)).join())
    for load in (load_proving_key, load_verifying_key):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load(path)
        assert [(w.category, w.filename) for w in caught] == [(SecurityWarning, __file__)]


def test_a_small_file_takes_no_memory_for_what_it_might_have_been(tmp_path: Path) -> None:
    path = write(tmp_path, "small", b"few")
    assert read_at_most(path, 1 << 60) == b"few"
    with pytest.raises(FormatError, match="at most 2 bytes"):
        read_at_most(path, 2)


def test_what_is_no_file_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected a regular file, found a device, pipe or folder"):
        formats.read_info(tmp_path)
    with pytest.raises(FormatError, match=r"offset 0: expected a \.r1cs, .*, found no bytes"):
        formats.read_info(write(tmp_path, "empty", b""))
