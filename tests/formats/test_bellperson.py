"""bellperson's files: against arkworks' encodings, published bytes, and proofs that verify after a round trip."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from snarkline.curves.curve import BLS12_381, BN254, Group
from snarkline.curves.pairing import combine
from snarkline.curves.point import Point
from snarkline.errors import FormatError, MismatchError, SecurityWarning
from snarkline.formats import (
    bellperson,
    load_proving_key,
    load_r1cs,
    load_verifying_key,
    load_witness,
    read_info,
    save_proving_key,
)
from snarkline.formats.bellperson.encoding import compress, decompress
from snarkline.formats.facts import FileInfo
from snarkline.groth16.keys import ProvingKey
from snarkline.groth16.layout import bellperson_layout
from snarkline.groth16.prover import Prover
from snarkline.groth16.setup import setup
from snarkline.groth16.verify import verify
from snarkline.r1cs.matrices import R1CS

UNSTEADY = "expected data that stays as it is while it is read, found a file that is written to"
SCALARS = [1, 2, 3, 12345, BLS12_381.r - 1, BLS12_381.r - 2, 1 << 200]


@pytest.fixture(scope="module")
def r1cs(vectors: Path) -> R1CS:
    return load_r1cs(vectors / "circom/multiplier_bls12381/circuit.r1cs")


@pytest.fixture(scope="module")
def key(r1cs: R1CS) -> ProvingKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return setup(r1cs, layout=bellperson_layout)


@pytest.fixture
def params(key: ProvingKey, tmp_path: Path) -> Path:
    bellperson.save_parameters(key, tmp_path / "key.params")
    return tmp_path / "key.params"


@pytest.mark.parametrize("k", SCALARS)
def test_compression_is_that_of_arkworks(k: int) -> None:
    for group, theirs in ((Group.G1, G1Point() * Scalar(k)), (Group.G2, G2Point() * Scalar(k))):
        point = combine([Point.generator(BLS12_381, group)], [k])
        assert compress(point) == bytes(theirs.to_compressed_bytes())
        assert decompress(None, "point", compress(point), group) == point


def test_the_generators_are_encoded_as_published() -> None:
    """draft-irtf-cfrg-pairing-friendly-curves and the ZCash specification print these."""
    g1, g2 = (Point.generator(BLS12_381, group) for group in Group)
    assert compress(g1).hex().startswith("97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58")
    assert compress(g2).hex().startswith("93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049")
    assert compress(Point.infinity(BLS12_381, Group.G1)).hex() == "c0" + 47 * "00"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("17f1d3a7" + 44 * "00", "compressed point"),
        ("c0" + 47 * "00", "infinity"),
        ("80" + 46 * "00" + "01", "no point has"),
        ("9fffffff" + 44 * "ff", "modulus"),
        ("80" + 46 * "00" + "04", "outside the subgroup"),
    ],
)
def test_a_bad_encoding_is_refused(data: str, expected: str) -> None:
    with pytest.raises(FormatError, match=expected):
        decompress("proof.bin", "offset 0 (A)", bytes.fromhex(data), Group.G1)


def test_a_key_that_was_saved_and_loaded_proves(
    key: ProvingKey, params: Path, r1cs: R1CS, vectors: Path, tmp_path: Path
) -> None:
    loaded = bellperson.load_parameters(params, check_subgroup=True)
    witness = load_witness(vectors / "circom/multiplier_bls12381/circuit.wtns")
    proofs = []
    for k in (key, loaded):
        with Prover(k, r1cs=r1cs) as prover:
            proofs.append(prover.prove(witness, blinding_for_tests=(5, 6)))
    assert proofs[0] == proofs[1]
    bellperson.save_verifying_key(loaded, tmp_path / "key.vk")
    vk = bellperson.load_verifying_key(tmp_path / "key.vk")
    data = bellperson.proof_to_bytes(proofs[0])
    assert len(data) == 192
    assert verify(vk, bellperson.proof_from_bytes(data, proofs[0].public))
    assert not verify(vk, bellperson.proof_from_bytes(data, (proofs[0].public[0] + 1, *proofs[0].public[1:])))
    assert params.read_bytes()[: len((tmp_path / "key.vk").read_bytes())] == (tmp_path / "key.vk").read_bytes()


def test_the_doors_know_the_files_by_their_names(key: ProvingKey, tmp_path: Path) -> None:
    save_proving_key(key, tmp_path / "key.params")
    bellperson.save_verifying_key(key, tmp_path / "key.vk")
    assert load_proving_key(tmp_path / "key.params").verifying_key.ic == key.verifying_key.ic
    assert load_verifying_key(tmp_path / "key.vk").ic == key.verifying_key.ic


def test_a_key_that_anyone_can_forge_for_is_refused(params: Path) -> None:
    data = params.read_bytes()
    with pytest.raises(FormatError, match="forge"):
        bellperson.load_parameters(damage(params, 672, data[384:576]))


def test_lengths_are_those_of_the_circuit(key: ProvingKey, params: Path, r1cs: R1CS) -> None:
    """h: n - 1, l: the private wires, a: all bound wires and those of A, b: those of B (bellperson's generator)."""
    a, b = (set(m.column.tolist()) for m in (r1cs.matrices.a, r1cs.matrices.b))
    bound = set(range(r1cs.n_public + 1))
    sizes = (key.domain.size - 1, r1cs.n_wires - len(bound), len(a | bound), len(b))
    assert (len(key.h), len(key.l.points), len(key.a.points), len(key.b1.points)) == sizes
    h, l, na, nb = sizes  # noqa: E741
    assert params.stat().st_size == 868 + 96 * len(bound) + 20 + 96 * (h + l + na + nb) + 192 * nb


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_file_is_not_mapped(params: Path) -> None:
    key = bellperson.load_parameters(params)
    assert str(params) not in Path("/proc/self/maps").read_text()
    assert key.path == str(params)


@pytest.mark.parametrize("load", [bellperson.load_parameters, load_proving_key, read_info])
def test_a_file_cut_short_while_it_is_read_is_an_error(
    params: Path, load: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut within each of its arrays in turn, when the first bytes have been read."""
    data, preadv = params.read_bytes(), os.preadv
    for n in range(400, len(data), 300):
        params.write_bytes(data)
        begun: list[int] = []

        def cut(descriptor: int, buffers: list[bytearray], offset: int, n: int = n, begun: list[int] = begun) -> int:
            if begun:
                os.truncate(params, n)
            begun.append(offset)
            return preadv(descriptor, buffers, offset)

        monkeypatch.setattr(os, "preadv", cut)
        with pytest.raises(FormatError, match=UNSTEADY):
            load(params)
        monkeypatch.undo()


def test_a_file_written_to_while_it_is_read_is_an_error(params: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preadv = os.preadv

    def written(descriptor: int, buffers: list[bytearray], offset: int) -> int:
        os.utime(params, ns=(1, 1))
        return preadv(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", written)
    with pytest.raises(FormatError, match=UNSTEADY):
        bellperson.load_parameters(params)


def test_sizes_are_read_without_the_points(key: ProvingKey, params: Path) -> None:
    tables = (key.h, key.l.points, key.a.points, key.b1.points, key.b2.points)
    sizes = (key.domain.size, key.n_wires, len(key.a.points), len(key.b1.points), sum(t.limbs.nbytes for t in tables))
    assert bellperson.parameter_sizes(params) == sizes
    first_count = 868 + 96 * (key.n_public + 1)  # of h
    with pytest.raises(FormatError, match=f"h: {1 << 30} points.* bytes left"):
        bellperson.parameter_sizes(damage(params, first_count, (1 << 30).to_bytes(4, "big")))


def test_facts(key: ProvingKey, params: Path, tmp_path: Path) -> None:
    bellperson.save_verifying_key(key, tmp_path / "key.vk")
    point = Point.generator(BLS12_381, Group.G1), Point.generator(BLS12_381, Group.G2)
    (tmp_path / "proof").write_bytes((compress(point[0]) + compress(point[1]) + compress(point[0])) * 3)
    protocol = {"protocol": "groth16", "curve": "bls12_381"}
    head = {**protocol, "public inputs": 1, "anyone can forge (gamma = delta)": False}
    arrays = "ic 2 points (192 bytes)"
    assert read_info(tmp_path / "key.vk") == FileInfo(
        str(tmp_path / "key.vk"), "verifying key", 868 + 192, {**head, "arrays": arrays}
    )
    for name, table in (("h", key.h), ("l", key.l.points), ("a", key.a.points), ("b_g1", key.b1.points)):
        arrays += f", {name} {len(table)} points ({96 * len(table)} bytes)"
    arrays += f", b_g2 {len(key.b2.points)} points ({192 * len(key.b2.points)} bytes)"
    sizes = {"wires": key.n_wires, "domain size": key.domain.size, "arrays": arrays}
    assert read_info(params) == FileInfo(str(params), "proving key", params.stat().st_size, {**head, **sizes})
    proofs = read_info(tmp_path / "proof")
    assert (proofs.kind, proofs.n_bytes, proofs.facts) == ("proof", 576, {**protocol, "proofs": 3})


def test_facts_of_a_key_that_anyone_can_forge_for(params: Path) -> None:
    data = params.read_bytes()
    forged = damage(params, 672, data[384:576])
    assert read_info(forged).facts["anyone can forge (gamma = delta)"] is True


def test_no_facts_of_files_that_are_cut(params: Path, tmp_path: Path) -> None:
    data = params.read_bytes()
    for name in ("cut.params", "cut.vk"):
        for n in [0, 1, 95, 867, 868, 900, len(data) // 2, len(data) - 1]:
            (tmp_path / name).write_bytes(data[:n])
            with pytest.raises(FormatError):
                read_info(tmp_path / name)
    (tmp_path / "none.vk").write_bytes(data[:864] + bytes(4))
    with pytest.raises(FormatError, match="ic: count: expected 1 or more, found 0"):
        read_info(tmp_path / "none.vk")
    (tmp_path / "long.vk").write_bytes(data[: 868 + 192] + b"\0")
    with pytest.raises(FormatError, match="expected the end of the file"):
        read_info(tmp_path / "long.vk")


@pytest.mark.parametrize("change", [{191: None}, {48: 0x17}, {144: 0xC0}, {0: 0xFF}])
def test_bytes_that_are_no_proofs(change: dict[int, int | None], tmp_path: Path) -> None:
    point = Point.generator(BLS12_381, Group.G1), Point.generator(BLS12_381, Group.G2)
    data = bytearray(compress(point[0]) + compress(point[1]) + compress(point[0]))
    for at, value in change.items():
        data[at : at + 1] = b"" if value is None else bytes([value])
    (tmp_path / "proof").write_bytes(data)
    with pytest.raises(FormatError, match="bellperson's proofs"):
        read_info(tmp_path / "proof")


def damage(path: Path, offset: int, value: bytes) -> Path:
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    other = path.with_name("damaged.params")
    other.write_bytes(data)
    return other


@pytest.mark.parametrize(
    ("offset", "value", "expected"),
    [
        (0, b"\x40", "alpha_g1.*|point 0.*infinity|an uncompressed point"),
        (0, b"\x1f" + 47 * b"\xff", "modulus"),
        (95, b"\x00", "off the curve"),
        (864, (1 << 30).to_bytes(4, "big"), "bytes left"),
        (864, bytes(4), "count"),
    ],
)
def test_a_damaged_file_is_refused(params: Path, offset: int, value: bytes, expected: str) -> None:
    with pytest.raises(FormatError, match=expected):
        bellperson.load_parameters(damage(params, offset, value))


def test_no_point_at_all_is_refused(key: ProvingKey, params: Path) -> None:
    """(0, 0) is how points at infinity are kept in memory; in a file it is no point."""
    first_of_h = 868 + 96 * (key.n_public + 1) + 4
    with pytest.raises(FormatError, match="no point"):
        bellperson.load_parameters(damage(params, first_of_h, bytes(96)))


def test_every_cut_is_refused(params: Path) -> None:
    data = params.read_bytes()
    for n in [*range(0, 900, 97), len(data) - 1, len(data) - 96, *range(1000, len(data), 517)]:
        params.with_name("cut.params").write_bytes(data[:n])
        with pytest.raises(FormatError):
            bellperson.load_parameters(params.with_name("cut.params"))
    params.with_name("long.params").write_bytes(data + b"\0")
    with pytest.raises(FormatError, match="1 more bytes"):
        bellperson.load_parameters(params.with_name("long.params"))


def test_a_key_of_another_circuit_is_refused(params: Path, vectors: Path) -> None:
    other = load_r1cs(vectors / "circom/edge/compare_bls12381/circuit.r1cs")
    with pytest.raises(MismatchError):
        Prover(bellperson.load_parameters(params), r1cs=other)
    with pytest.raises(MismatchError, match="carries no matrices"):
        Prover(bellperson.load_parameters(params))


def test_what_the_format_cannot_hold_is_refused(vectors: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        circom = setup(load_r1cs(vectors / "circom/multiplier_bls12381/circuit.r1cs"))
        bn254 = setup(load_r1cs(vectors / "circom/multiplier_bn128/circuit.r1cs"), layout=bellperson_layout)
    assert bn254.curve is BN254
    for key in (circom, bn254):
        with pytest.raises(MismatchError):
            bellperson.save_parameters(key, tmp_path / "no.params")
    assert not list(tmp_path.iterdir())
    assert np.array_equal(circom.matrices.a.columns(), np.unique(circom.matrices.a.column))  # type: ignore[union-attr]
