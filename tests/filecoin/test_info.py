"""What `snarkline info` tells of Filecoin's files."""

from __future__ import annotations

import base64
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
from reference import VECTORS

from snarkline.errors import FormatError
from snarkline.filecoin.info import read_info
from snarkline.filecoin.registry import sector_size

SECTOR = VECTORS / "seal_2KiB"
SIZE = sector_size("2KiB")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return dict(json.loads(lzma.decompress((SECTOR / "c1.json.xz").read_bytes())))


def written(folder: Path, document: object) -> Path:
    (folder / "c1.json").write_text(json.dumps(document))
    return folder / "c1.json"


def test_all_forms_of_a_c1_output(document: dict[str, Any], tmp_path: Path) -> None:
    sealed = json.loads((SECTOR / "seal.json").read_text())
    path = written(tmp_path, document)
    plain = read_info(path)
    assert (plain.kind, plain.n_bytes, plain.path) == ("vanilla proofs", path.stat().st_size, str(path))
    expected = {"sector size": "2KiB", "partitions": 1, "challenges": 2, "layers": 2}
    expected |= {name: bytes(document[name]).hex() for name in ("comm_r", "comm_d", "replica_id", "seed", "ticket")}
    assert plain.facts == {"form": "filecoin-proofs", **expected}
    assert {name: plain.facts[name] for name in ("comm_r", "comm_d")} == {n: sealed[n] for n in ("comm_r", "comm_d")}
    api = {"registered_proof": "StackedDrg2KiBV1_1", **document}
    api["vanilla_proofs"] = {"StackedDrg2KiBV1": document["vanilla_proofs"]}
    named = {"registered proof": "StackedDrg2KiBV1_1", **expected}
    assert read_info(written(tmp_path, api)).facts == {"form": "filecoin-proofs-api", **named}
    text = base64.b64encode(json.dumps(api).encode()).decode()
    for wrapper in ({"SectorNum": 7, "Phase1Out": text, "SectorSize": 2048}, {"Phase1Out": text}):
        found = read_info(written(tmp_path, wrapper)).facts
        assert found == {"form": "filecoin-proofs-api, wrapped by a sealing node", **named}


def test_documents_that_lack_something(document: dict[str, Any], tmp_path: Path) -> None:
    for name in document:
        less = {key: value for key, value in document.items() if key != name}
        with pytest.raises(FormatError, match=rf"\$: expected an object with {name}"):
            read_info(written(tmp_path, less))
    for proofs, place in ([], "vanilla_proofs"), ([[]], r"vanilla_proofs\[0\]"):
        with pytest.raises(FormatError, match=place + ": expected an array with items, found 0 items"):
            read_info(written(tmp_path, {**document, "vanilla_proofs": proofs}))
    for bad in ('{"vanilla_proofs":', '{"Phase1Out": 5}', '{"Phase1Out": "e30="}', '{"vanilla_proofs": {"a": 1}}'):
        (tmp_path / "bad.json").write_text(bad)
        with pytest.raises(FormatError):
            read_info(tmp_path / "bad.json")


def test_a_key_of_a_registered_name_tells_its_sector_size(tmp_path: Path) -> None:
    vk = SECTOR / "development.vk"
    assert "sector size" not in read_info(vk).facts
    named = shutil.copy(vk, tmp_path / f"{SIZE.parameter_stem()}.vk")
    assert read_info(named).facts == {"sector size": "2KiB, by its name", **read_info(vk).facts}
    assert read_info(vk).facts["public inputs"] == SIZE.n_public_inputs


def test_proofs_and_what_has_no_format() -> None:
    assert (read_info(SECTOR / "proof.bin").kind, read_info(SECTOR / "proof.bin").facts["proofs"]) == ("proof", 1)
    for name in ("sealed", "data"):
        with pytest.raises(FormatError, match=r"expected a \.r1cs, .*\.params or \.vk file"):
            read_info(SECTOR / name)
