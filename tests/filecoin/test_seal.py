"""Sealing against a sector that the reference crates sealed, and their published vectors."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reference import VECTORS

from snarkline.errors import FormatError, InputError
from snarkline.filecoin import fr32
from snarkline.filecoin.porep.c1 import parse_phase1, phase1_to_json
from snarkline.filecoin.porep.graph import StackedGraph
from snarkline.filecoin.porep.seal import SealedSector, SectorFacts, label_layers, seal
from snarkline.filecoin.porep.vanilla import Phase1Output, check_phase1, prove_partitions
from snarkline.filecoin.registry import SECTOR_SIZES, PorepVersion, porep_id, sector_size

SIZE = sector_size("2KiB")


@pytest.fixture(scope="module")
def sealed_there() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((VECTORS / "seal_2KiB/seal.json").read_text())
    return facts


@pytest.fixture(scope="module")
def sector(sealed_there: dict[str, Any]) -> SealedSector:
    prover, ticket = (bytes.fromhex(sealed_there[name]) for name in ("prover_id", "ticket"))
    facts = SectorFacts(SIZE, PorepVersion.V1_1, prover, sealed_there["sector_id"], ticket)
    return seal(facts, (VECTORS / "seal_2KiB/data").read_bytes())


@pytest.fixture(scope="module")
def c1() -> bytes:
    return lzma.decompress((VECTORS / "seal_2KiB/c1.json.xz").read_bytes())


@pytest.fixture(scope="module")
def phase1(c1: bytes) -> Phase1Output:
    return parse_phase1(c1, SIZE)


def test_replica_and_commitments(sector: SealedSector, sealed_there: dict[str, Any]) -> None:
    assert sector.facts.porep_id.hex() == sealed_there["porep_id"]
    assert sector.replica_id.hex() == sealed_there["replica_id"]
    assert (sector.comm_d.hex(), sector.comm_r.hex()) == (sealed_there["comm_d"], sealed_there["comm_r"])
    assert sector.replica.tobytes() == (VECTORS / "seal_2KiB/sealed").read_bytes()


def test_c1_is_byte_for_byte_that_of_the_crates(
    sector: SealedSector, sealed_there: dict[str, Any], c1: bytes, phase1: Phase1Output
) -> None:
    ours = prove_partitions(sector, bytes.fromhex(sealed_there["seed"]))
    assert phase1_to_json(ours).encode() == c1
    assert phase1 == ours
    check_phase1(phase1, sector.graph)


@pytest.mark.parametrize(
    ("number", "version", "digest"),
    [
        (0, PorepVersion.V1_0, "3da49221e2ed55371b86d0bf3d6526fcf128af61bed904f966428db1b531750d"),
        (5, PorepVersion.V1_1, "840057702eea7652cf97e04306c30fe57174714d90de156a25eddd6075c25b97"),
    ],
)
def test_the_table_of_parents(number: int, version: PorepVersion, digest: str) -> None:
    """rust-fil-proofs parent_cache.json."""
    graph = StackedGraph(64, bytes([number]) + bytes(31), version)
    base = graph.base_parents(np.arange(64)).tolist()
    table = b"".join(struct.pack("<14I", *base[i], *graph.expander_parents(i)) for i in range(64))
    assert hashlib.sha256(table).hexdigest() == digest


@pytest.mark.slow
def test_the_table_of_parents_of_8_mib() -> None:
    """The same file's row for 8 MiB and version 1.1, half a minute."""
    graph = StackedGraph(1 << 18, bytes([6]) + bytes(31), PorepVersion.V1_1)
    base = graph.base_parents(np.arange(1 << 18))
    expander = np.array([graph.expander_parents(i) for i in range(1 << 18)])
    table = np.concatenate([base, expander], axis=1).astype("<u4").tobytes()
    assert hashlib.sha256(table).hexdigest() == "03cd13565ded97c240a5f52e54295ad127bd0461b57904cb3a4d79b097bbecab"


@pytest.mark.parametrize(
    ("nodes", "byte", "version", "limbs"),
    [
        (64, 0, PorepVersion.V1_0, (0xD3FAA96B9A0FBA04, 0xEA81A283D106485E, 0xE3D51B9AFA5AC2B3, 0x0462F4F4F1A68D37)),
        (128, 0, PorepVersion.V1_0, (0x7E191E52C4A8DA86, 0x5AE8A1C9E6FAC148, 0xCE239F3B88A894B8, 0x234C00D1DC1D53BE)),
        (64, 0x7B, PorepVersion.V1_1, (0xABB3F38BB70DEFCF, 0x777A2E4D7769119F, 0x3448959D495490BC, 0x06021188C7A71CB5)),
        (
            128,
            0x7B,
            PorepVersion.V1_1,
            (0x22AB81CF68C4676D, 0x7A77A82FC7C9C189, 0xC6C03D32C1E42D23, 0x0F777C18CC2C55BD),
        ),
    ],
)
def test_labels(nodes: int, byte: int, version: PorepVersion, limbs: tuple[int, ...]) -> None:
    """The last label of layer 11 (storage-proofs-porep, test_stacked_porep_generate_labels)."""
    graph = StackedGraph(nodes, bytes([byte]) * 32, version)
    assert label_layers(graph, bytes([9]) * 32, 11)[-1][-1].tobytes() == struct.pack("<4Q", *limbs)


def test_empty_sector_has_the_known_comm_d() -> None:
    facts = SectorFacts(SIZE, PorepVersion.V1_1, bytes(32), 0, bytes(32))
    comm_d = seal(facts, bytes(SIZE.unpadded_bytes)).comm_d
    assert comm_d.hex() == "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"


def test_fr32() -> None:
    """fr32's test_exotic, in the bytes that its rows spell out; and there and back."""
    data = bytes([*range(1, 32), 0xFF, *range(1, 32), 0xFF, 9, 9, 9, 0xFF]) + bytes(127 - 68)
    padded = fr32.pad(data)
    assert padded[:31] == bytes(range(1, 32)) and (padded[31], padded[32]) == (0x3F, 0x07)
    assert padded[33:63] == bytes(4 * (i - 31) for i in range(33, 63))
    assert padded[63:69].hex() == "3c9f9090f00f"
    assert fr32.unpad(padded) == data
    with pytest.raises(InputError, match="32-byte unit 1"):
        fr32.unpad(padded[:63] + b"\xff" + padded[64:])
    with pytest.raises(InputError, match="multiple of 127"):
        fr32.pad(bytes(128))


def test_names_of_parameter_files() -> None:
    """The keys of rust-fil-proofs' parameters.json."""
    ends = {
        "2KiB": "8-0-0-sha256_hasher-032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f",
        "8MiB": "8-0-0-sha256_hasher-ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb",
        "32GiB": "8-8-0-sha256_hasher-82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820",
        "64GiB": "8-8-2-sha256_hasher-96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2",
    }
    for name, end in ends.items():
        assert SECTOR_SIZES[name].parameter_stem().endswith(end)


def flipped(element: bytes) -> bytes:
    return bytes([element[0] ^ 1]) + element[1:]


def tampered(output: Phase1Output, what: str) -> Phase1Output:
    """One thing of the second challenge changed."""
    first, second = output.partitions[0]
    column, label = second.column, second.labels[1]
    inclusion, levels = column.inclusion, column.inclusion.path
    too_high = (replace(levels[0], index=8), *levels[1:])
    changed = {
        "data leaf": lambda: replace(second, comm_d=replace(second.comm_d, leaf=flipped(second.comm_d.leaf))),
        "replica leaf": lambda: replace(
            second, comm_r_last=replace(second.comm_r_last, leaf=flipped(second.comm_r_last.leaf))
        ),
        "own row": lambda: replace(second, column=replace(column, rows=(flipped(column.rows[0]), *column.rows[1:]))),
        "parent order": lambda: replace(second, expander_parents=second.expander_parents[::-1]),
        "parent missing": lambda: replace(second, base_parents=second.base_parents[:-1]),
        "label parent": lambda: replace(
            second, labels=(second.labels[0], replace(label, parents=(flipped(label.parents[0]), *label.parents[1:])))
        ),
        "encoding": lambda: replace(second, encoding=second.labels[0]),
        "path cut": lambda: replace(second, column=replace(column, inclusion=replace(inclusion, path=levels[:-1]))),
        "index": lambda: replace(second, column=replace(column, inclusion=replace(inclusion, path=too_high))),
        "challenge": lambda: first,
    }[what]()
    return replace(output, partitions=((first, changed),))


@pytest.mark.parametrize(
    "what",
    [
        *("data leaf", "replica leaf", "own row", "parent order", "parent missing", "label parent", "encoding"),
        *("path cut", "index", "challenge"),
    ],
)
def test_a_tampered_proof_is_named(sector: SealedSector, phase1: Phase1Output, what: str) -> None:
    with pytest.raises(InputError, match=r"partition 0, challenge 1 \(node \d+\): .* does not hold$"):
        check_phase1(tampered(phase1, what), sector.graph)


def test_openings_of_another_version_are_told(phase1: Phase1Output) -> None:
    version = PorepVersion.V1_0
    graph = StackedGraph(SIZE.n_nodes, porep_id(SIZE, version), version)
    with pytest.raises(InputError, match=r"does not hold: the openings are of version 1\.1\.0, expected 1\.0\.0$"):
        check_phase1(phase1, graph)


def test_tampered_commitments_are_named(sector: SealedSector, phase1: Phase1Output) -> None:
    known = phase1.commitments
    for name in ("comm_d", "comm_r", "replica_id", "seed"):
        other = replace(phase1, commitments=replace(known, **{name: flipped(getattr(known, name))}))
        with pytest.raises(InputError, match="partition 0, challenge 0"):
            check_phase1(other, sector.graph)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d.pop("comm_r"), "comm_r"),
        (lambda d: d["comm_d"].pop(), "32 bytes"),
        (lambda d: d["vanilla_proofs"].append([]), "array of 1 items"),
        (lambda d: d["vanilla_proofs"][0][0]["labeling_proofs"].pop(), r"labeling_proofs.*array of 2"),
        (lambda d: d["vanilla_proofs"][0][1]["comm_d_proofs"]["data"].clear(), r"\[1\].comm_d_proofs.data.*Single"),
        (lambda d: d.update(registered_proof="StackedDrg32GiBV1_1"), "2KiB"),
        (lambda d: d.update(seed=[256] * 32), "seed"),
    ],
)
def test_a_bad_document_is_refused(c1: bytes, change: Any, expected: str) -> None:
    document = json.loads(c1)
    change(document)
    with pytest.raises(FormatError, match=expected):
        parse_phase1(json.dumps(document).encode(), SIZE)


def test_other_documents_are_refused(c1: bytes) -> None:
    twice = c1[:-1] + b',"comm_r":[1]}'
    not_ascii = '{"SectorSize":2048,"Phase1Out":"\u00e9"}'.encode()
    for data in (b"", b"[]", b"{", b"[" * 100_000, c1[:-1], b"\xff", twice, b"NaN", b'{"comm_r":1.5}', not_ascii):
        with pytest.raises(FormatError):
            parse_phase1(data, SIZE)
    with pytest.raises(FormatError, match=r"18 levels .* as in 8MiB, found 6 levels"):
        parse_phase1(c1, sector_size("8MiB"))
    with pytest.raises(FormatError, match="array of 10 items"):
        parse_phase1(c1, sector_size("32GiB"))


def test_wrapped_documents(c1: bytes, phase1: Phase1Output) -> None:
    """The forms of filecoin-proofs-api and of sealing nodes."""
    document = json.loads(c1)
    document["registered_proof"] = "StackedDrg2KiBV1_1"
    document["vanilla_proofs"] = {"StackedDrg2KiBV1": document["vanilla_proofs"]}
    api = json.dumps(document).encode()
    wrapper = {"SectorNum": 777, "Phase1Out": base64.b64encode(api).decode(), "SectorSize": 2048}
    assert parse_phase1(api, SIZE) == phase1 == parse_phase1(json.dumps(wrapper).encode(), SIZE)
    wrapper["SectorSize"] = 34359738368
    with pytest.raises(FormatError, match="2048"):
        parse_phase1(json.dumps(wrapper).encode(), SIZE)


def test_a_number_of_thousands_of_digits() -> None:
    with pytest.raises(FormatError, match="found a number of thousands of digits"):
        parse_phase1(b'{"vanilla_proofs": 1' + b"0" * 10_000 + b"}", sector_size("2KiB"))
