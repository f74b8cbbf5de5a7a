"""proof.json, public.json and verification_key.json: what snarkjs writes is read and written, all else is refused."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raw_files import NAMES, Q, R, vector

from snarkline.curves.curve import BLS12_381, BN254, CURVES
from snarkline.errors import FormatError, MismatchError, SecurityWarning
from snarkline.formats.circom import (
    load_symbols,
    load_verifying_key,
    proof_from_json,
    proof_to_calldata,
    proof_to_json,
    public_from_json,
    public_to_json,
    save_verifying_key,
    verifying_key_to_json,
)
from snarkline.groth16.verify import verify

BN, BLS = "multiplier_bn128", "multiplier_bls12381"
PROOF: dict[str, Any] = json.loads(vector(BN, "proof.json"))
KEY: dict[str, Any] = json.loads(vector(BN, "verification_key.json"))


def text(name: str, file: str) -> str:
    return vector(name, file).decode()


def changed(document: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> str:
    other = copy.deepcopy(document)
    change(other)
    return json.dumps(other)


def write(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "file.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_proofs_of_snarkjs_are_read_verified_and_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    proof = proof_from_json(text(name, "proof.json"), text(name, "public.json"))
    assert proof.public == tuple(int(v) for v in json.loads(text(name, "public.json")))
    assert proof_to_json(proof) == text(name, "proof.json")
    assert public_to_json(proof.public) == text(name, "public.json")
    key = load_verifying_key(write(tmp_path, text(name, "verification_key.json")))
    assert verify(key, proof)
    other = (proof.public[0] ^ 1, *proof.public[1:])
    assert not verify(key, proof, other)


@pytest.mark.parametrize("name", NAMES)
def test_verifying_keys_of_snarkjs_are_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    """vk_alphabeta_12, the pairing of alpha and beta, included."""
    key = load_verifying_key(write(tmp_path, text(name, "verification_key.json")))
    assert verifying_key_to_json(key) == text(name, "verification_key.json")
    save_verifying_key(key, tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == text(name, "verification_key.json")


def test_a_path_object_is_a_file_and_a_string_is_text(tmp_path: Path) -> None:
    path = write(tmp_path, text(BN, "proof.json"))
    assert proof_from_json(path) == proof_from_json(text(BN, "proof.json")) == proof_from_json(path.read_bytes())
    with pytest.raises(FormatError):
        proof_from_json(str(path))
    with pytest.raises(FileNotFoundError):
        proof_from_json(tmp_path / "none")


def test_a_proof_that_does_not_name_its_curve() -> None:
    """rapidsnark writes none."""
    unnamed = changed(PROOF, lambda d: d.pop("curve"))
    assert proof_from_json(unnamed, curve=BN254).curve is BN254
    with pytest.raises(FormatError, match="'curve'"):
        proof_from_json(unnamed)


@pytest.mark.parametrize("alias", ["bn128", "bn254", "BN254", "alt_bn128"])
def test_names_of_a_curve(alias: str) -> None:
    named = changed(PROOF, lambda d: d.update(curve=alias))
    assert proof_from_json(named, curve=BN254) == proof_from_json(text(BN, "proof.json"))
    with pytest.raises(FormatError, match=r"\$.curve"):
        proof_from_json(named, curve=BLS12_381)


BAD_NUMBERS: list[Any] = [
    "",
    " 1",
    "1 ",
    "+1",
    "-1",
    "0x1",
    "1e3",
    "1.0",
    "01",
    "1_000",
    "\u0661\u0662",  # Arabic digits
    "\u00b2",
    "NaN",
    "9" * 121,
    1,
    0,
    -1,
    True,
    None,
    [],
    {},
    ["1"],
]


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, str(R["bn254"]), str(R["bn254"] + 5), "9" * 120])
def test_public_inputs_that_are_no_numbers_below_r(bad: Any) -> None:
    with pytest.raises(FormatError) as caught:
        public_from_json(json.dumps(["0", bad]), BN254)
    assert caught.value.where == "$[1]"


def test_fractions_are_refused_wherever_they_stand() -> None:
    with pytest.raises(FormatError, match=r"the number 1.5, which is not a whole one"):
        public_from_json("[1.5]", BN254)


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, str(Q["bn254"]), str(Q["bn254"] + 1)])
def test_coordinates_that_are_no_numbers_below_q(bad: Any) -> None:
    with pytest.raises(FormatError) as caught:
        proof_from_json(changed(PROOF, lambda d: d["pi_a"].__setitem__(0, bad)))
    assert caught.value.where == "$.pi_a[0]"
    with pytest.raises(FormatError) as caught:
        proof_from_json(changed(PROOF, lambda d: d["pi_b"][1].__setitem__(0, bad)))
    assert caught.value.where == "$.pi_b[1][0]"


def test_the_largest_public_inputs() -> None:
    for curve in CURVES.values():
        values = (0, 1, curve.r - 1)
        assert public_from_json(public_to_json(values), curve) == values


@pytest.mark.parametrize("digits", [10**4, 10**7])
@pytest.mark.parametrize("quoted", [True, False])
def test_numbers_of_a_million_digits_take_no_time(digits: int, quoted: bool) -> None:
    number = "7" * digits
    start = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        public_from_json(f'["{number}"]' if quoted else f"[{number}]", BN254)
    assert time.perf_counter() - start < 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "broken",
    ["", " ", "{", "[1,", "nul", "{}{}", "\ufeff[]", '{"a": NaN}', '{"a": Infinity}', '{"a": 1e5}', '{"a": 1, "a": 2}',
     "[" * 100_000, '{"a":' * 100_000, '"\ud800"', '{"protocol": "groth16", "protocol": "groth16"}'],
)  # fmt: skip
def test_documents_that_are_not_json(broken: str) -> None:
    for source in (broken, broken.encode("utf-8", "surrogatepass")):
        with pytest.raises(FormatError):
            proof_from_json(source)
        with pytest.raises(FormatError):
            public_from_json(source, BN254)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"\x80", bytes(100)])
def test_bytes_that_are_not_text(data: bytes, tmp_path: Path) -> None:
    for source in (data, write(tmp_path, data)):
        with pytest.raises(FormatError):
            proof_from_json(source)
    with pytest.raises(FormatError):
        load_verifying_key(tmp_path / "file.json")


@pytest.mark.parametrize("broken", ["{}", "[]", "0", '"x"', "null", "true"])
def test_documents_of_another_shape(broken: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        proof_from_json(broken)
    with pytest.raises(FormatError):
        load_verifying_key(write(tmp_path, broken))
    if broken != "[]":
        with pytest.raises(FormatError):
            public_from_json(broken, BN254)
    assert public_from_json("[]", BN254) == ()


CHANGES: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("no protocol", lambda d: d.pop("protocol"), "$"),
    ("another protocol", lambda d: d.update(protocol="plonk"), "$.protocol"),
    ("another curve", lambda d: d.update(curve="bls12377"), "$.curve"),
    ("a curve that is no string", lambda d: d.update(curve=1), "$.curve"),
    ("no point", lambda d: d.pop("pi_a"), "$"),
    ("a point that is null", lambda d: d.update(pi_a=None), "$.pi_a"),
    ("two coordinates", lambda d: d["pi_a"].pop(), "$.pi_a"),
    ("four coordinates", lambda d: d["pi_c"].append("1"), "$.pi_c"),
    ("z = 2", lambda d: d["pi_a"].__setitem__(2, "2"), "$.pi_a[2]"),
    ("z = 0", lambda d: d["pi_a"].__setitem__(2, "0"), "$.pi_a[2]"),
    ("infinity", lambda d: d.update(pi_a=["0", "1", "0"]), "$.pi_a"),
    ("(0, 0)", lambda d: d.update(pi_c=["0", "0", "1"]), "$.pi_c"),
    ("off the curve", lambda d: d.update(pi_a=["1", "1", "1"]), "$.pi_a"),
    ("x and y in turn", lambda d: d["pi_a"].insert(0, d["pi_a"].pop(1)), "$.pi_a"),
    ("G1 in place of G2", lambda d: d.update(pi_b=d["pi_a"]), "$.pi_b[0]"),
    ("a pair of three", lambda d: d["pi_b"][0].append("0"), "$.pi_b[0]"),
    ("z of G2 = u", lambda d: d["pi_b"].__setitem__(2, ["0", "1"]), "$.pi_b[2]"),
    ("infinity in G2", lambda d: d.update(pi_b=[["0", "0"], ["1", "0"], ["0", "0"]]), "$.pi_b"),
    ("parts of G2 in turn", lambda d: d["pi_b"][0].reverse(), "$.pi_b"),
]


@pytest.mark.parametrize(("what", "change", "where"), CHANGES, ids=[c[0] for c in CHANGES])
def test_proofs_that_are_refused(what: str, change: Callable[[dict[str, Any]], object], where: str) -> None:
    with pytest.raises(FormatError) as caught:
        proof_from_json(changed(PROOF, change))
    assert caught.value.where == where


def test_a_proof_point_outside_the_subgroup() -> None:
    """On BLS12-381, x = 4 gives a point of G1's curve that is not of order r."""
    q = Q["bls12_381"]
    y = pow(4**3 + 4, (q + 1) // 4, q)
    assert (y * y - 68) % q == 0
    proof = json.loads(vector(BLS, "proof.json"))
    with pytest.raises(FormatError, match="outside the subgroup"):
        proof_from_json(changed(proof, lambda d: d.update(pi_a=["4", str(y), "1"])))


KEY_CHANGES: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("no IC", lambda d: d.pop("IC"), "$"),
    ("one point of IC too many", lambda d: d["IC"].append(d["IC"][0]), "$.IC"),
    ("one too few", lambda d: d["IC"].pop(), "$.IC"),
    ("nPublic as a string", lambda d: d.update(nPublic="1"), "$.nPublic"),
    ("nPublic negative", lambda d: d.update(nPublic=-1), "$.nPublic"),
    ("nPublic true", lambda d: d.update(nPublic=True), "$.nPublic"),
    ("nPublic absurd", lambda d: d.update(nPublic=2**31), "$.IC"),
    ("delta at infinity", lambda d: d.update(vk_delta_2=[["0", "0"], ["1", "0"], ["0", "0"]]), "$.vk_delta_2"),
    ("alpha at infinity", lambda d: d.update(vk_alpha_1=["0", "1", "0"]), "$.vk_alpha_1"),
    ("a point of IC off the curve", lambda d: d["IC"][1].__setitem__(0, "5"), "$.IC[1]"),
    ("beta off the curve", lambda d: d["vk_beta_2"][0].__setitem__(0, "5"), "$.vk_beta_2"),
]


@pytest.mark.parametrize(("what", "change", "where"), KEY_CHANGES, ids=[c[0] for c in KEY_CHANGES])
def test_keys_that_are_refused(
    what: str, change: Callable[[dict[str, Any]], object], where: str, tmp_path: Path
) -> None:
    path = write(tmp_path, changed(KEY, change))
    with pytest.raises(FormatError) as caught:
        load_verifying_key(path)
    assert (caught.value.where, caught.value.path) == (where, str(path))


def test_weak_keys_are_warned_of_and_refused_when_strict(tmp_path: Path) -> None:
    weak = [
        changed(KEY, lambda d: d.update(vk_delta_2=d["vk_gamma_2"])),
        changed(KEY, lambda d: d["IC"].__setitem__(1, ["0", "1", "0"])),
    ]
    for document in weak:
        path = write(tmp_path, document)
        with pytest.warns(SecurityWarning):
            key = load_verifying_key(path)
        with pytest.raises(FormatError):
            load_verifying_key(path, strict=True)
    assert json.loads(verifying_key_to_json(key))["IC"][1] == ["0", "1", "0"]


@pytest.mark.parametrize("public", [[-1], [R["bn254"]], ["1"], [1.0]])
def test_public_inputs_given_as_numbers_are_checked(public: Any) -> None:
    with pytest.raises(MismatchError):
        proof_from_json(text(BN, "proof.json"), public)


def test_calldata_is_for_bn254() -> None:
    with pytest.raises(MismatchError):
        proof_to_calldata(proof_from_json(text(BLS, "proof.json"), text(BLS, "public.json")))


def test_calldata_by_hand() -> None:
    data = json.loads("[" + proof_to_calldata(proof_from_json(text(BN, "proof.json"), text(BN, "public.json"))) + "]")
    numbers = [[int(v, 16) for v in data[0]], [[int(v, 16) for v in row] for row in data[1]]]
    assert numbers[0] == [int(v) for v in PROOF["pi_a"][:2]]
    assert numbers[1] == [[int(v) for v in reversed(row)] for row in PROOF["pi_b"][:2]]
    assert [int(v, 16) for v in data[2]] == [int(v) for v in PROOF["pi_c"][:2]]
    assert [int(v, 16) for v in data[3]] == [int(v) for v in json.loads(text(BN, "public.json"))]
    assert all(len(v) == 66 for v in [*data[0], *data[2], *data[3]])


@pytest.mark.parametrize("item", ["{}", "[]", "1", '"1"', "[{}]"])
@pytest.mark.parametrize("n_bytes", [6_000_000, 60_000_000])
def test_millions_of_values_are_refused_at_once(item: str, n_bytes: int, tmp_path: Path) -> None:
    document = f"[{f'{item},' * (n_bytes // (len(item) + 1))}0]"
    path = write(tmp_path, document)
    start = time.process_time()
    for source in (document, path):
        for read in (proof_from_json, lambda source: public_from_json(source, BN254)):
            with pytest.raises(FormatError, match=r"bytes|commas and opening brackets"):
                read(source)
    with pytest.raises(FormatError):
        load_verifying_key(path)
    assert time.process_time() - start < 4


def test_the_sizes_of_documents_are_bounded() -> None:
    proof = text(BN, "proof.json")
    room = (64 << 10) - len(proof)
    assert proof_from_json(proof + " " * room) == proof_from_json(proof)
    with pytest.raises(FormatError, match="at most 65536 bytes, found 65537"):
        proof_from_json(proof + " " * (room + 1))
    many = public_to_json([R["bn254"] - 1] * 100_000)
    assert len(public_from_json(many, BN254)) == 100_000
    with pytest.raises(FormatError, match="at most 16777216 bytes"):
        public_from_json(" " * (16 << 20) + "[]", BN254)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_read(kind: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "x"
    if kind != "device":
        (os.mkfifo if kind == "pipe" else os.mkdir)(path)
    proof = text(BN, "proof.json")
    for read in (
        lambda: proof_from_json(path),
        lambda: proof_from_json(proof, path),
        lambda: public_from_json(path, BN254),
        lambda: load_verifying_key(path),
        lambda: load_symbols(path),
    ):
        with pytest.raises(FormatError, match="expected a regular file") as caught:
            read()
        assert caught.value.path == str(path)


def test_names_reach_a_terminal_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a\nb\x1b[2J\u202e.json"
    path.write_text(json.dumps({"\x1b]0;x\x07\r\n": 1, "é": 2}))
    with pytest.raises(FormatError) as caught:
        proof_from_json(path)
    message = str(caught.value)
    assert message.isprintable()
    assert r"a\nb\x1b[2J\u202e.json" in message and r"\x1b]0;x\x07\r\n, é" in message
    assert caught.value.path == str(path), "the attribute is the path itself"
