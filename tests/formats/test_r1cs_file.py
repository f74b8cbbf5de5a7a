"""Circuits: what is read is what stands in the file, and what is written is read back."""

from __future__ import annotations

import struct
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_files import NAMES, R, Raw, patched, r1cs_file, r1cs_rows, vector

from snarkline.curves.curve import CURVES
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import FormatError
from snarkline.formats.circom import load_r1cs, save_r1cs
from snarkline.r1cs.matrices import R1CS

ROWS: list[Any] = [
    ([(1, 1)], [(2, 3)], [(3, 1)]),
    ([], [], []),
    ([(0, 0), (4, 7), (4, 9)], [(0, R["bn254"] - 1)], [(1, 2**253)]),
]


def load(raw: Raw, tmp_path: Path) -> R1CS:
    path = tmp_path / "c.r1cs"
    path.write_bytes(raw.join())
    return load_r1cs(path)


def refused(raw: Raw, tmp_path: Path) -> FormatError:
    with pytest.raises(FormatError) as caught:
        load(raw, tmp_path)
    assert caught.value.path == str(tmp_path / "c.r1cs")
    return caught.value


def rows_of(r1cs: R1CS) -> list[Any]:
    m = r1cs.matrices
    assert m.c is not None
    return [(m.a.row(k), m.b.row(k), m.c.row(k)) for k in range(r1cs.n_constraints)]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_file(name: str, tmp_path: Path) -> None:
    raw = Raw.split(vector(name, "circuit.r1cs"))
    r1cs = load(raw, tmp_path)
    wires, outputs, public = struct.unpack_from("<III", raw[1], 36)
    assert (r1cs.n_wires, r1cs.n_outputs, r1cs.n_public) == (wires, outputs, outputs + public)
    rows = r1cs_rows(raw)
    assert r1cs.n_constraints == len(rows)
    step = max(1, len(rows) // 500)
    for k in range(0, len(rows), step):
        m = r1cs.matrices
        assert m.c is not None
        assert (m.a.row(k), m.b.row(k), m.c.row(k)) == rows[k]


@pytest.mark.parametrize("name", NAMES)
def test_saving_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    data = vector(name, "circuit.r1cs")
    save_r1cs(load(Raw.split(data), tmp_path), tmp_path / "out.r1cs")
    assert (tmp_path / "out.r1cs").read_bytes() == data


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_circuit_of_our_own(n: int, tmp_path: Path) -> None:
    """Zero coefficients, a wire twice in one combination, empty combinations and no constraint at all are kept."""
    r1cs = load(r1cs_file("bn254", 5, 1, 1, ROWS[:n]), tmp_path)
    assert rows_of(r1cs) == ROWS[:n]
    save_r1cs(r1cs, tmp_path / "again")
    assert r1cs_rows(Raw.split((tmp_path / "again").read_bytes())) == ROWS[:n]


def test_a_circuit_that_is_not_from_a_file_can_be_saved(tmp_path: Path) -> None:
    read = load(r1cs_file("bn254", 5, 1, 1, ROWS), tmp_path)
    own = R1CS(read.curve, read.n_wires, read.n_public, read.n_outputs, read.matrices)
    save_r1cs(own, tmp_path / "own")
    assert (tmp_path / "own").read_bytes() == r1cs_file("bn254", 5, 1, 1, ROWS).join()


def test_coefficients_in_canonical_form_are_saved_right(tmp_path: Path) -> None:
    read = load(r1cs_file("bn254", 5, 1, 1, ROWS), tmp_path)
    a = read.matrices.a
    canonical = FrVector.from_ints(a.coefficients.curve, a.coefficients.to_ints(), Form.CANONICAL)
    m = [replace(x, coefficients=canonical) for x in (a, read.matrices.b, read.matrices.c) if x is not None]
    matrices = replace(read.matrices, a=m[0], b=m[1], c=m[2])
    save_r1cs(R1CS(read.curve, 5, 2, 1, matrices), tmp_path / "own")
    assert r1cs_rows(Raw.split((tmp_path / "own").read_bytes())) == ROWS


def test_many_rows_over_many_chunks(tmp_path: Path) -> None:
    """Combinations of 0 to 3 terms over more rows than the native decoder takes in one piece."""
    values = [1, 5, R["bls12_381"] - 1, 2**200 + 17]
    rows: list[Any] = [
        tuple(
            [((k * 7 + m * 3 + j) % 1000, values[(k + j + m) % 4] + k // 5000) for j in range((k + m) % 4)]
            for m in range(3)
        )
        for k in range(9_000)
    ]
    rows = [tuple([(w, v % R["bls12_381"]) for w, v in terms] for terms in row) for row in rows]
    raw = r1cs_file("bls12_381", 1000, 0, 3, rows)
    r1cs = load(raw, tmp_path)
    assert rows_of(r1cs) == rows
    save_r1cs(r1cs, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw.join()


def test_a_circuit_without_labels_is_read(tmp_path: Path) -> None:
    assert rows_of(load(r1cs_file("bn254", 5, 1, 1, ROWS, labels=False), tmp_path)) == ROWS


def test_custom_gates_are_ignored_with_a_warning(tmp_path: Path) -> None:
    raw = r1cs_file("bn254", 5, 1, 1, ROWS).with_section(4, bytes(4)).with_section(5, bytes(4))
    with pytest.warns(UserWarning, match="custom gates"):
        r1cs = load(raw, tmp_path)
    assert rows_of(r1cs) == ROWS
    save_r1cs(r1cs, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw.join()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(r1cs_file("bn254", 5, 1, 1, ROWS), tmp_path)


@pytest.mark.parametrize(
    ("offset", "new", "where"),
    [
        (0, struct.pack("<I", 0), "bytes of prime"),
        (0, struct.pack("<I", 31), "bytes of prime"),
        (0, struct.pack("<I", 40), "prime"),
        (0, struct.pack("<I", 2**31), "bytes of prime"),
        (4, bytes(32), "prime"),
        (4, (R["bn254"] + 2).to_bytes(32, "little"), "prime"),
        (36, struct.pack("<I", 0), "number of wires"),
        (36, struct.pack("<I", 2), "number of wires"),
        (40, struct.pack("<I", 2**32 - 1), "number of wires"),
        (44, struct.pack("<I", 2**32 - 1), "number of wires"),
        (60, struct.pack("<I", 4), "section 2"),
        (60, struct.pack("<I", 2), "section 2"),
        (60, struct.pack("<I", 2**31), "section 2"),
        (60, struct.pack("<I", 2**32 - 1), "section 2"),
    ],
)
def test_headers_that_do_not_fit_are_refused(offset: int, new: bytes, where: str, tmp_path: Path) -> None:
    raw = r1cs_file("bn254", 5, 1, 1, ROWS)
    error = refused(raw.with_section(1, patched(raw[1], offset, new)), tmp_path)
    assert where in error.where


@pytest.mark.parametrize("change", [-1, 1])
def test_header_of_another_length(change: int, tmp_path: Path) -> None:
    raw = r1cs_file("bn254", 5, 1, 1, ROWS)
    assert "section 1" in refused(raw.with_section(1, (raw[1] + b"\0")[: 64 + change]), tmp_path).where


def test_labels_for_other_wires(tmp_path: Path) -> None:
    raw = r1cs_file("bn254", 5, 1, 1, ROWS)
    assert "section 3 (labels" in refused(raw.with_section(3, bytes(32)), tmp_path).where


def test_a_wire_that_does_not_exist_is_named(tmp_path: Path) -> None:
    rows = [*ROWS, ([(1, 1)], [(5, 1)], [])]
    error = refused(r1cs_file("bn254", 5, 1, 1, rows), tmp_path)
    assert "constraint 3, B" in error.where
    assert (error.expected, error.found) == ("a wire below 5", 5)
    rows[1] = ([], [], [(2**32 - 1, 1)])
    assert "constraint 1, C" in refused(r1cs_file("bn254", 5, 1, 1, rows), tmp_path).where


@pytest.mark.parametrize("value", [R["bn254"], R["bn254"] + 1, 2**256 - 1])
def test_a_coefficient_that_is_not_below_r_is_named(value: int, tmp_path: Path) -> None:
    rows = [*ROWS, ([(1, 1)], [], [(4, 1), (3, value)])]
    error = refused(r1cs_file("bn254", 5, 1, 1, rows), tmp_path)
    assert "constraint 3, C" in error.where
    assert error.found == hex(value)


@pytest.mark.parametrize("count", [1, 2, 2**28, 2**31, 2**32 - 1])
def test_counts_of_terms_that_do_not_fit(count: int, tmp_path: Path) -> None:
    raw = r1cs_file("bn254", 5, 1, 1, ROWS)
    at = len(raw[2]) - 40
    assert struct.unpack_from("<I", raw[2], at) == (1,)
    broken = raw.with_section(2, patched(raw[2], at, struct.pack("<I", count)) + bytes(35 if count == 2 else 1))
    assert "section 2 (constraints), offset" in refused(broken, tmp_path).where


def test_the_array_of_values_is_kept_once(tmp_path: Path) -> None:
    r1cs = load(Raw.split(vector("merkle20_bn128", "circuit.r1cs")), tmp_path)
    m = r1cs.matrices
    assert m.c is not None
    distinct = {v for row in r1cs_rows(Raw.split(vector("merkle20_bn128", "circuit.r1cs"))) for t in row for _, v in t}
    assert sorted(m.a.coefficients.to_ints()) == sorted(distinct)
    assert m.a.coefficients is m.b.coefficients is m.c.coefficients
    assert all(np.all(x.column < r1cs.n_wires) for x in (m.a, m.b, m.c))
    assert r1cs.curve is CURVES["bn254"]


@pytest.mark.parametrize("n_wires", [2**27, 2**32 - 1, 10 + 2**20])
def test_wires_that_nothing_accounts_for_are_refused(n_wires: int, tmp_path: Path) -> None:
    """Memory of a setup follows from the number of wires, which the header of a file of 300 bytes can choose."""
    raw = r1cs_file("bn254", 5, 1, 1, ROWS, labels=False)
    header = patched(raw[1], 36, struct.pack("<I", n_wires))
    error = refused(raw.with_section(1, header), tmp_path)
    n_terms = sum(len(terms) for row in ROWS for terms in row)
    assert error.where == "section 1 (header): number of wires"
    assert error.found == n_wires
    assert str(1 + n_terms + 2**20) in str(error.expected)


def test_wires_that_no_constraint_mentions_are_legal(tmp_path: Path) -> None:
    n_terms = sum(len(terms) for row in ROWS for terms in row)
    for n_wires, labels in ((1 + n_terms + 2**20, False), (3 * 2**19, True)):
        raw = r1cs_file("bn254", n_wires, 1, 1, ROWS, labels=labels)
        assert load(raw, tmp_path).n_wires == n_wires
