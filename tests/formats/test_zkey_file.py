"""Proving keys: what is read is what stands in the file, and every check that a key must pass."""

from __future__ import annotations

import random
import struct
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raw_files import MULTIPLIERS, Q, R, Raw, coefficient_section, coefficients, patched, r1cs_rows, vector  # fmt: skip

from snarkline.curves.curve import CURVES, Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.errors import FormatError, MismatchError, SecurityWarning
from snarkline.formats.circom import load_proving_key, load_r1cs, load_verifying_key, load_witness, save_proving_key
from snarkline.formats.circom.zkey import NAMES
from snarkline.groth16.keys import HBasis, ProvingKey, Query
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify
from snarkline.native import core

CURVE = {"multiplier_bn128": "bn254", "multiplier_bls12381": "bls12_381"}


def raw_key(name: str = "multiplier_bn128") -> Raw:
    return Raw.split(vector(name, "circuit.zkey"))


def load(raw: Raw, tmp_path: Path, **options: bool) -> ProvingKey:
    path = tmp_path / "k.zkey"
    path.write_bytes(raw.join())
    return load_proving_key(path, **options)


def refused(raw: Raw, tmp_path: Path, **options: bool) -> FormatError:
    with pytest.raises(FormatError) as caught:
        load(raw, tmp_path, **options)
    assert caught.value.path == str(tmp_path / "k.zkey")
    return caught.value


def limbs(curve: Curve) -> int:
    return 8 * curve.fp_limbs


def encoded(point: Point) -> bytes:
    return PointTable.from_points(point.curve, point.group, [point]).limbs.tobytes()


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_points_are_those_of_the_file(name: str, tmp_path: Path) -> None:
    raw, curve = raw_key(name), CURVES[CURVE[name]]
    key = load(raw, tmp_path)
    assert (key.curve, key.n_wires, key.n_public) == (curve, 6, 1)
    unit = pow(1 << (64 * curve.fp_limbs), -1, curve.q)
    tables = {5: key.a.points, 6: key.b1.points, 7: key.b2.points, 8: key.l.points, 9: key.h}
    for section_id, table in tables.items():
        data, size = raw[section_id], limbs(curve)
        expected = [int.from_bytes(data[i : i + size], "little") * unit % curve.q for i in range(0, len(data), size)]
        assert [c for p in table.to_points() for c in p.coordinates()] == expected
    assert [q.first for q in (key.a, key.b1, key.b2, key.l)] == [0, 0, 0, 2]
    assert key.h_basis is HBasis.ODD_COSET


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_points_are_mapped_not_copied(name: str, tmp_path: Path) -> None:
    key = load(raw_key(name), tmp_path)
    owners = set()
    for table in (key.a.points, key.b1.points, key.b2.points, key.l.points, key.h):
        assert not table.limbs.flags.owndata
        assert not table.limbs.flags.writeable
        base: Any = table.limbs
        while isinstance(base, np.ndarray):
            base = base.base
        owners.add(id(base.obj if isinstance(base, memoryview) else base))
    assert len(owners) == 1
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert any(line.endswith(str(tmp_path / "k.zkey")) and " r--s " in line for line in maps)


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_the_domain_is_that_of_ffjavascript(name: str, tmp_path: Path) -> None:
    """The root is a power of the smallest non-residue, and the shift is a root of twice the order."""
    key = load(raw_key(name), tmp_path)
    r, n = key.curve.r, key.domain.size
    g = next(g for g in range(2, 100) if pow(g, (r - 1) // 2, r) == r - 1)
    assert g == 5
    assert key.shift == pow(g, (r - 1) // (2 * n), r)
    assert key.domain.root == pow(key.shift, 2, r)
    assert pow(key.shift, n, r) == r - 1


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_matrices_are_those_of_the_circuit(name: str, tmp_path: Path) -> None:
    """A and B as in the .r1cs, then a row for every public wire; the .zkey keeps them times R^2."""
    key = load(raw_key(name), tmp_path)
    rows = r1cs_rows(Raw.split(vector(name, "circuit.r1cs")))
    assert key.matrices is not None and key.matrices.c is None
    for k, (a, b, _) in enumerate(rows):
        assert key.matrices.a.row(k) == a
        assert key.matrices.b.row(k) == b
    for i in range(key.n_public + 1):
        assert key.matrices.a.row(len(rows) + i) == [(i, 1)]
        assert key.matrices.b.row(len(rows) + i) == []
    assert key.matrices.a.n_rows == len(rows) + key.n_public + 1


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_the_verifying_key_is_the_one_that_snarkjs_exports(name: str, tmp_path: Path) -> None:
    path = tmp_path / "vk.json"
    path.write_bytes(vector(name, "verification_key.json"))
    exported, read = load_verifying_key(path), load(raw_key(name), tmp_path).verifying_key
    assert vars(exported) == vars(read)
    assert vars(load_verifying_key(tmp_path / "k.zkey")) == vars(read)


@pytest.mark.parametrize("name", MULTIPLIERS)
@pytest.mark.parametrize("order", [None, [1, 2, 4, 3, 9, 8, 5, 6, 7, 10], [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]])
def test_saving_gives_the_same_bytes(name: str, order: list[int] | None, tmp_path: Path) -> None:
    """Contributions (section 10), unknown sections and the order of sections survive."""
    raw = raw_key(name)
    if order is not None:
        raw = raw.reordered(order).with_section(99, b"what this is nobody knows")
    save_proving_key(load(raw, tmp_path), tmp_path / "out.zkey")
    assert (tmp_path / "out.zkey").read_bytes() == raw.join()


def test_a_key_is_saved_over_the_file_that_it_is_mapped_from(tmp_path: Path) -> None:
    raw = raw_key()
    key = load(raw, tmp_path)
    save_proving_key(key, tmp_path / "k.zkey")
    assert (tmp_path / "k.zkey").read_bytes() == raw.join()
    assert key.a.points.limbs.tobytes() == raw[5]


def test_a_key_that_is_not_from_a_file_is_laid_out_as_snarkjs_does(tmp_path: Path) -> None:
    raw = raw_key()
    key = load(raw, tmp_path)
    fields = {f: getattr(key, f) for f in ProvingKey.__dataclass_fields__}
    save_proving_key(ProvingKey(**fields), tmp_path / "out.zkey")
    written = Raw.split((tmp_path / "out.zkey").read_bytes())
    assert [i for i, _ in written.sections] == [1, 2, 4, 3, 9, 8, 5, 6, 7, 10]
    assert written[10] == bytes(68)
    assert all(written[i] == raw[i] for i in range(1, 10))


def test_keys_that_the_format_cannot_hold_are_refused(tmp_path: Path) -> None:
    key = load(raw_key(), tmp_path)
    few = PointTable(key.curve, Group.G1, key.a.points.limbs[:3])
    broken = [
        replace(key, h_basis=HBasis.COEFFICIENTS),
        replace(key, shift=key.shift + 1),
        replace(key, matrices=None),
        replace(key, a=Query(few)),
        replace(key, a=Query(few, wires=np.array([1, 2, 3], np.uint32))),
        replace(key, l=Query(key.l.points, first=1)),
    ]
    for other in broken:
        with pytest.raises(MismatchError):
            save_proving_key(other, tmp_path / "out.zkey")
    assert not (tmp_path / "out.zkey").exists()


@pytest.mark.parametrize("protocol", [0, 2, 10, 2**32 - 1])
def test_other_protocols_are_named(protocol: int, tmp_path: Path) -> None:
    error = refused(raw_key().with_section(1, struct.pack("<I", protocol)), tmp_path)
    assert error.expected == "1 (Groth16)"
    assert str(protocol) in str(error.found)


HEADER_FIELDS = [
    (0, struct.pack("<I", 0), "bytes of q"),
    (0, struct.pack("<I", 48), "q"),
    (0, struct.pack("<I", 2**31), "bytes of q"),
    (4, bytes(32), "q"),
    (4, Q["bls12_381"].to_bytes(48, "little"), "q"),
    (36, struct.pack("<I", 0), "bytes of r"),
    (36, struct.pack("<I", 2**32 - 1), "bytes of r"),
    (40, R["bls12_381"].to_bytes(32, "little"), "r"),
    (72, struct.pack("<I", 0), "number of public inputs"),
    (72, struct.pack("<I", 1), "number of public inputs"),
    (72, struct.pack("<I", 5), "section 5"),
    (72, struct.pack("<I", 7), "section 5"),
    (72, struct.pack("<I", 2**31), "section 5"),
    (72, struct.pack("<I", 2**32 - 1), "section 5"),
    (76, struct.pack("<I", 0), "section 3"),
    (76, struct.pack("<I", 2), "section 3"),
    (76, struct.pack("<I", 6), "number of public inputs"),
    (76, struct.pack("<I", 2**31), "number of public inputs"),
    (80, struct.pack("<I", 0), "domain size"),
    (80, struct.pack("<I", 1), "domain size"),
    (80, struct.pack("<I", 3), "domain size"),
    (80, struct.pack("<I", 2), "section 9"),
    (80, struct.pack("<I", 8), "section 9"),
    (80, struct.pack("<I", 2**27), "section 9"),
    (80, struct.pack("<I", 2**28), "domain size"),
    (80, struct.pack("<I", 2**31), "domain size"),
    (80, struct.pack("<I", 2**32 - 1), "domain size"),
]


@pytest.mark.parametrize(("offset", "new", "where"), HEADER_FIELDS)
def test_headers_that_do_not_fit_are_refused(offset: int, new: bytes, where: str, tmp_path: Path) -> None:
    raw = raw_key()
    assert where in refused(raw.with_section(2, patched(raw[2], offset, new)), tmp_path).where


@pytest.mark.parametrize("section_id", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("change", [-64, -1, 1, 44, 64])
def test_sections_of_another_length_are_refused(section_id: int, change: int, tmp_path: Path) -> None:
    raw = raw_key()
    content = raw[section_id]
    changed = content[:change] if change < 0 else content + bytes(change)
    assert f"section {section_id} (" in refused(raw.with_section(section_id, changed), tmp_path).where


@pytest.mark.parametrize("name", MULTIPLIERS)
@pytest.mark.parametrize("section_id", [3, 5, 6, 7, 8, 9])
def test_a_point_off_its_curve_is_named(name: str, section_id: int, tmp_path: Path) -> None:
    raw, curve = raw_key(name), CURVES[CURVE[name]]
    size = limbs(curve) * (4 if section_id == 7 else 2)
    n = len(raw[section_id]) // size
    for index in (0, n - 1):
        data = bytearray(raw[section_id])
        data[index * size] ^= 1
        if not any(raw[section_id][index * size : (index + 1) * size]):
            continue
        error = refused(raw.with_section(section_id, bytes(data)), tmp_path)
        assert f"section {section_id} ({NAMES[section_id]})" in error.where
        assert error.where.endswith(f"point {index}")
        assert "off the curve" in str(error.found) or "larger" in str(error.found)


@pytest.mark.parametrize("name", MULTIPLIERS)
@pytest.mark.parametrize("section_id", [3, 5, 6, 7, 8, 9])
def test_a_coordinate_that_is_not_below_q_is_named(name: str, section_id: int, tmp_path: Path) -> None:
    """x + q in place of x is the same residue: only its size shows that it is wrong."""
    raw, curve = raw_key(name), CURVES[CURVE[name]]
    size = limbs(curve) * (4 if section_id == 7 else 2)
    content = raw[section_id]
    index = next(i for i in range(len(content) // size) if any(content[i * size : (i + 1) * size]))
    x = int.from_bytes(content[index * size : index * size + limbs(curve)], "little")
    broken = patched(content, index * size, (x + curve.q).to_bytes(limbs(curve), "little"))
    error = refused(raw.with_section(section_id, broken), tmp_path)
    assert error.where.endswith(f"point {index}")
    assert error.expected == "coordinates below the modulus q"


@pytest.mark.parametrize("name", MULTIPLIERS)
@pytest.mark.parametrize("which", range(6))
def test_points_of_the_header_are_checked(name: str, which: int, tmp_path: Path) -> None:
    raw, curve = raw_key(name), CURVES[CURVE[name]]
    field = ("alpha1", "beta1", "beta2", "gamma2", "delta1", "delta2")[which]
    sizes = [limbs(curve) * k for k in (2, 2, 4, 4, 2, 4)]
    at = 84 + limbs(curve) - 32 + sum(sizes[:which])
    assert field in refused(raw.with_section(2, patched(raw[2], at, bytes(sizes[which]))), tmp_path).where
    flipped = patched(raw[2], at, bytes([raw[2][at] ^ 1]))
    assert field in refused(raw.with_section(2, flipped), tmp_path).where


def outside_subgroup(curve: Curve, group: Group) -> Point:
    """A point of the curve that is not of order r, found by trying x = 1, 2, ..."""
    q = curve.q
    if group is Group.G1:
        for x in range(1, 100):
            y = pow(x**3 + curve.b, (q + 1) // 4, q)
            if (y * y - x**3 - curve.b) % q == 0:
                return Point(curve, group, x, y)
    for x in range(1, 100):  # in Fp2 = Fp[u]/(u^2 + 1), with x in Fp
        c0, c1 = (x**3 + curve.b2[0]) % q, curve.b2[1] % q
        norm = pow(c0 * c0 + c1 * c1, (q + 1) // 4, q)
        if (norm * norm - c0 * c0 - c1 * c1) % q:
            continue
        for root in (norm, -norm):
            half = (c0 + root) * pow(2, -1, q) % q
            y0 = pow(half, (q + 1) // 4, q)
            if y0 and (y0 * y0 - half) % q == 0:
                return Point(curve, group, (x, 0), (y0, c1 * pow(2 * y0, -1, q) % q))
    raise AssertionError


@pytest.mark.parametrize(
    ("name", "section_id"), [("multiplier_bn128", 7), ("multiplier_bls12381", 5), ("multiplier_bls12381", 7),
                             ("multiplier_bls12381", 9)]
)  # fmt: skip
def test_subgroup_on_request(name: str, section_id: int, tmp_path: Path) -> None:
    raw, curve = raw_key(name), CURVES[CURVE[name]]
    point = encoded(outside_subgroup(curve, Group.G2 if section_id == 7 else Group.G1))
    broken = raw.with_section(section_id, patched(raw[section_id], len(point), point))
    load(broken, tmp_path)
    error = refused(broken, tmp_path, check_subgroup=True)
    assert error.where.endswith("point 1")
    assert "outside the subgroup" in str(error.found)
    load(raw, tmp_path, check_subgroup=True)


@pytest.mark.parametrize("section_id", [5, 6, 7, 8, 9])
def test_a_query_that_is_all_infinity_is_read(section_id: int, tmp_path: Path) -> None:
    raw = raw_key()
    key = load(raw.with_section(section_id, bytes(len(raw[section_id]))), tmp_path)
    tables = {5: key.a.points, 6: key.b1.points, 7: key.b2.points, 8: key.l.points, 9: key.h}
    assert all(p.is_infinity for p in tables[section_id].to_points())


def equal_gamma_and_delta(raw: Raw) -> Raw:
    header = raw[2]
    gamma = 84 + 64 + 64 + 128
    return raw.with_section(2, patched(header, gamma + 128 + 64, header[gamma : gamma + 128]))


def test_a_key_without_contributions_is_warned_of_and_refused_when_strict(tmp_path: Path) -> None:
    raw = equal_gamma_and_delta(raw_key())
    with pytest.warns(SecurityWarning, match="anyone can forge"):
        load(raw, tmp_path)
    assert "gamma2 and delta2" in refused(raw, tmp_path, strict=True).where
    with pytest.warns(SecurityWarning, match="anyone can forge"):
        load_verifying_key(tmp_path / "k.zkey")
    with pytest.raises(FormatError, match="anyone can forge"):
        load_verifying_key(tmp_path / "k.zkey", strict=True)


def test_an_unbound_public_input_is_warned_of(tmp_path: Path) -> None:
    raw = raw_key()
    with pytest.warns(SecurityWarning, match="IC point 1"):
        load(raw.with_section(3, raw[3][:64] + bytes(64)), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(raw, tmp_path, strict=True)


@pytest.mark.parametrize(
    ("record", "field", "value", "where"),
    [
        (0, 0, 2, "coefficient 0: matrix"),
        (5, 0, 2**32 - 1, "coefficient 5: matrix"),
        (1, 1, 4, "coefficient 1: constraint"),
        (1, 1, 0x7FFFFFFF, "coefficient 1: constraint"),
        (2, 2, 6, "coefficient 2: wire"),
        (2, 2, 2**32 - 1, "coefficient 2: wire"),
        (3, 3, R["bn254"], "coefficient 3: value"),
        (3, 3, 2**256 - 1, "coefficient 3: value"),
    ],
)
def test_coefficients_are_checked(record: int, field: int, value: int, where: str, tmp_path: Path) -> None:
    raw = raw_key()
    records: list[Any] = [list(c) for c in coefficients(raw)]
    records[record][field] = value
    assert where in refused(raw.with_section(4, coefficient_section(records)), tmp_path).where


@pytest.mark.parametrize("count", [0, 5, 7, 2**31, 2**32 - 1])
def test_counts_of_coefficients_that_do_not_fit(count: int, tmp_path: Path) -> None:
    raw = raw_key()
    broken = raw.with_section(4, patched(raw[4], 0, struct.pack("<I", count)))
    assert "section 4 (coefficients)" in refused(broken, tmp_path).where


def test_coefficients_in_any_order_zero_ones_and_repeated_ones(tmp_path: Path) -> None:
    raw = raw_key()
    records = [*coefficients(raw), (0, 1, 3, 0), (0, 1, 3, 7), (1, 0, 2, 7), (0, 1, 3, 7)]
    random.Random(4).shuffle(records)
    key = load(raw.with_section(4, coefficient_section(records)), tmp_path)
    assert key.matrices is not None
    unit = pow(2, -512, R["bn254"])
    for m, matrix in enumerate((key.matrices.a, key.matrices.b)):
        for k in range(matrix.n_rows):
            expected = [(w, v * unit % R["bn254"]) for mm, row, w, v in records if (mm, row) == (m, k)]
            assert matrix.row(k) == expected


def test_no_coefficient_at_all(tmp_path: Path) -> None:
    key = load(raw_key().with_section(4, bytes(4)), tmp_path)
    assert key.matrices is not None
    assert (key.matrices.a.n_rows, key.matrices.a.n_entries, key.matrices.b.n_entries) == (0, 0, 0)


def test_a_file_that_changes_while_it_is_decoded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at the coefficients reports what is not there any more at the second."""
    real = core.scan_coefficients

    def stale(*arguments: Any) -> Any:
        n_a, n_b, *rest = real(*arguments)
        return n_a + 1, n_b - 1, *rest

    monkeypatch.setattr("snarkline.formats.circom.zkey.core.scan_coefficients", stale)
    assert "changed" in str(refused(raw_key(), tmp_path).found)


@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced by renaming", "saved over"])
def test_a_key_whose_name_goes_after_loading_stays(how: str, tmp_path: Path) -> None:
    raw, path = raw_key(), tmp_path / "k.zkey"
    key = load(raw, tmp_path)
    if how == "deleted":
        path.unlink()
    elif how == "renamed":
        path.rename(tmp_path / "other")
    elif how == "replaced by renaming":
        (tmp_path / "other").write_bytes(b"")
        (tmp_path / "other").rename(path)
    else:
        save_proving_key(key, path)
    key.check_source()
    with Prover(key) as prover:
        proof = prover.prove(load_witness(vector("multiplier_bn128", "circuit.wtns")))
    assert verify(key.verifying_key, proof)
    assert key.a.points.limbs.tobytes() == raw[5]


@pytest.mark.parametrize("content", [b"", b"short", bytes(3703), bytes(100_000)])
def test_a_key_whose_file_is_written_to_after_loading_is_refused(content: bytes, tmp_path: Path) -> None:
    """A file that was cut has no pages to give: the proof must stop before it touches them."""
    key = load(raw_key(), tmp_path)
    witness = load_witness(vector("multiplier_bn128", "circuit.wtns"))
    with Prover(key) as prover:
        prover.prove(witness)
        (tmp_path / "k.zkey").write_bytes(content)
        with pytest.raises(FormatError, match="written to since"):
            prover.prove(witness)
    with pytest.raises(FormatError, match="written to since"):
        save_proving_key(key, tmp_path / "out.zkey")
    assert not (tmp_path / "out.zkey").exists()


def test_the_circuit_and_its_key_agree_on_wires(tmp_path: Path) -> None:
    (tmp_path / "c.r1cs").write_bytes(vector("multiplier_bn128", "circuit.r1cs"))
    assert load_r1cs(tmp_path / "c.r1cs").n_wires == load(raw_key(), tmp_path).n_wires
