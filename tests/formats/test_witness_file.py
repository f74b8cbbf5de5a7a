"""Witnesses: from files, bytes and arrays, and everything that can be wrong with them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_files import MULTIPLIERS, R, Raw, patched, r1cs_rows, vector, witness_file, witness_values

from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.errors import FormatError, InputError, MismatchError
from snarkline.formats.circom import load_witness, save_witness
from snarkline.r1cs.check import check_witness


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_values_are_those_of_the_file_and_satisfy_the_circuit(name: str, tmp_path: Path) -> None:
    data = vector(name, "circuit.wtns")
    (tmp_path / "w").write_bytes(data)
    values = witness_values(Raw.split(data))
    r = load_witness(data).curve.r
    for row in r1cs_rows(Raw.split(vector(name, "circuit.r1cs"))):
        a, b, c = (sum(v * values[wire] for wire, v in terms) for terms in row)
        assert (a * b - c) % r == 0
    sources: list[Any] = [tmp_path / "w", str(tmp_path / "w"), data, bytearray(data), memoryview(data)]
    for source in [*sources, np.frombuffer(data, dtype=np.uint8)]:
        assert load_witness(source).values.to_ints() == values


@pytest.mark.parametrize("curve", CURVES.values())
@pytest.mark.parametrize("values", [[1], [1, 0], [1, 2, 3, 0, 0]])
def test_round_trip(curve: Curve, values: list[int], tmp_path: Path) -> None:
    values = [*values, curve.r - 1]
    data = witness_file(curve.name, values).join()
    witness = load_witness(data)
    assert witness.curve is curve
    assert witness.values.to_ints() == values
    save_witness(witness, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == data


def test_a_file_cut_short_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, preadv = vector("multiplier_bn128", "circuit.wtns"), os.preadv
    for n in (0, 1, len(data) // 2, len(data) - 1):
        (tmp_path / "w").write_bytes(data)

        def cut(descriptor: int, buffers: list[bytearray], offset: int, n: int = n) -> int:
            os.truncate(tmp_path / "w", n)
            return preadv(descriptor, buffers, offset)

        monkeypatch.setattr(os, "preadv", cut)
        with pytest.raises(FormatError, match="found a file that is written to"):
            load_witness(tmp_path / "w")
        monkeypatch.undo()


def test_an_array_of_values() -> None:
    array = np.array([[1, 0, 0, 0], [5, 0, 0, 1]], dtype=np.uint64)
    witness = load_witness(array, BN254)
    assert witness.values.to_ints() == [1, 5 + (1 << 192)]
    array[1, 0] = 9
    assert witness.values.to_ints()[1] == 5 + (1 << 192)


@pytest.mark.parametrize(
    ("array", "curve"),
    [
        (np.zeros((2, 4), np.uint64), None),
        (np.zeros((2, 3), np.uint64), BN254),
        (np.zeros(8, np.uint64), BN254),
        (np.zeros((2, 4), np.int64), BN254),
        (np.zeros((2, 4), np.float64), BN254),
        (np.zeros((0, 4), np.uint64), BN254),
        (np.zeros((2, 4), np.uint64), BN254),
    ],
)
def test_arrays_that_are_no_witness(array: Any, curve: Curve | None) -> None:
    with pytest.raises(FormatError):
        load_witness(array, curve)


def test_a_file_that_changes_later_does_not_change_the_witness(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(witness_file("bn254", [1, 2, 3]).join())
    witness = load_witness(path)
    path.write_bytes(b"")
    assert witness.values.to_ints() == [1, 2, 3]


@pytest.mark.parametrize("curve", CURVES.values())
@pytest.mark.parametrize("wire", [0, 1, 4999])
def test_a_value_that_is_not_below_the_modulus_is_named_and_not_shown(curve: Curve, wire: int) -> None:
    for value in (curve.r, curve.r + 1, 2**256 - 1):
        values = [1] + [curve.r - 1] * 4999
        values[wire] = value
        with pytest.raises(FormatError, match=f"wire {wire}: ") as caught:
            load_witness(witness_file(curve.name, values).join())
        assert str(value) not in str(caught.value)
        assert f"{value:x}" not in str(caught.value)


@pytest.mark.parametrize("value", [0, 2, R["bn254"] - 1])
def test_wire_0_must_be_1(value: int) -> None:
    with pytest.raises(FormatError, match="wire 0: expected 1"):
        load_witness(witness_file("bn254", [value, 1]).join())


def test_no_wires() -> None:
    with pytest.raises(FormatError, match="no wires"):
        load_witness(witness_file("bn254", []).join())


def test_the_curve_must_be_the_one_that_is_asked_for() -> None:
    data = witness_file("bn254", [1]).join()
    assert load_witness(data, BN254).curve is BN254
    with pytest.raises(FormatError, match="expected the scalar field of bls12_381, found that of bn254"):
        load_witness(data, BLS12_381)


def test_values_of_one_curve_under_the_prime_of_the_other() -> None:
    raw = witness_file("bn254", [1, R["bls12_381"] - 1])
    with pytest.raises(FormatError, match="wire 1"):
        load_witness(raw.join())


@pytest.mark.parametrize(
    ("offset", "new", "where"),
    [
        (0, struct.pack("<I", 0), "bytes of prime"),
        (0, struct.pack("<I", 48), "prime"),
        (0, struct.pack("<I", 2**31), "bytes of prime"),
        (4, bytes(32), "prime"),
        (4, (17).to_bytes(32, "little"), "prime"),
        (36, struct.pack("<I", 2), "section 2"),
        (36, struct.pack("<I", 4), "section 2"),
        (36, struct.pack("<I", 2**31), "section 2"),
        (36, struct.pack("<I", 2**32 - 1), "section 2"),
    ],
)
def test_headers_that_do_not_fit_are_refused(offset: int, new: bytes, where: str) -> None:
    raw = witness_file("bn254", [1, 2, 3])
    with pytest.raises(FormatError) as caught:
        load_witness(raw.with_section(1, patched(raw[1], offset, new)).join())
    assert where in caught.value.where
    assert caught.value.path is None


@pytest.mark.parametrize("source", [[1, 2], 5, None, (b"wtns",), 1.5])
def test_sources_of_another_type_are_refused(source: Any) -> None:
    for curve in (None, BN254):
        with pytest.raises(InputError, match=rf"a path, .* found {type(source).__name__}$"):
            load_witness(source, curve)


def test_a_witness_that_does_not_fit_is_named_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "w\n.wtns"
    path.write_bytes(vector(MULTIPLIERS[0], "circuit.wtns"))
    witness = load_witness(path)
    n, shown = len(witness), str(path).replace("\n", "\\n")
    with pytest.raises(MismatchError) as caught:
        check_witness(witness, BN254, n + 1)
    assert str(caught.value) == f"{shown}: the witness has {n} values, the circuit has {n + 1} wires"
    with pytest.raises(MismatchError, match=r"\.wtns: the witness is over bn254, the circuit over bls12_381"):
        check_witness(witness, BLS12_381, n)
    with pytest.raises(MismatchError, match=rf"^the witness has {n} values"):
        check_witness(load_witness(path.read_bytes()), BN254, n + 1)
