"""What the files of circom and snarkjs say of themselves."""

from __future__ import annotations

import os
import re
from pathlib import Path

from snarkline.errors import FormatError
from snarkline.formats.binary import Container, describe_magic, first_bytes, open_container
from snarkline.formats.circom import r1cs, wtns, zkey
from snarkline.formats.circom.fields import read_scalar_field
from snarkline.formats.circom.strict_json import KEY, Node, parse
from snarkline.formats.circom.sym import load_symbols
from snarkline.formats.facts import KNOWN, Fact, FileInfo

SECTION_NAMES = {
    "r1cs": {1: "header", 2: "constraints", 3: "labels", 4: "custom gates", 5: "custom gate uses"},
    "wtns": {1: "header", 2: "values"},
    "zkey": {1: "protocol", 2: "header", 4: "coefficients", 10: "contributions", **zkey.NAMES},
}


def read_info(path: str | os.PathLike[str]) -> FileInfo:
    """Facts about a file of circom or snarkjs, known by its content. Values and points are not checked.

    Raises OSError and FormatError.
    """
    head = first_bytes(path, 64)
    magic = head[:4]
    if magic == b"r1cs":
        return _of_container("circuit", open_container(path, "r1cs", r1cs.VERSION))
    if magic == b"wtns":
        return _of_container("witness", open_container(path, "wtns", wtns.VERSION))
    if magic == b"zkey":
        return _of_container("proving key", open_container(path, "zkey", zkey.VERSION))
    if head.lstrip()[:1] in (b"{", b"["):
        return _of_json(path)
    if re.match(rb"\d+,(-1|\d+),\d+,", head):
        return FileInfo(os.fspath(path), "symbols", Path(path).stat().st_size, {"named wires": len(load_symbols(path))})
    raise FormatError(path, "offset 0", KNOWN, describe_magic(magic))


def _of_container(kind: str, container: Container) -> FileInfo:
    facts = {"circuit": _circuit, "witness": _witness, "proving key": _key}[kind](container)
    names = SECTION_NAMES[container.magic]
    facts["sections"] = ", ".join(f"{s.id} {names.get(s.id, 'unknown')} ({s.size} bytes)" for s in container.sections)
    assert container.path is not None
    return FileInfo(container.path, kind, len(container.data), facts)


def _circuit(container: Container) -> dict[str, Fact]:
    header = r1cs.read_header(container.cursor(1, "header"))
    return {
        "curve": header.curve.name,
        "constraints": header.n_constraints,
        "wires": header.n_wires,
        "public outputs": header.n_outputs,
        "public inputs": header.n_public_inputs,
        "private inputs": header.n_private_inputs,
        "labels": header.n_labels,
        "custom gates": container.find(4) is not None,
    }


def _witness(container: Container) -> dict[str, Fact]:
    cursor = container.cursor(1, "header")
    return {"curve": read_scalar_field(cursor).name, "wires": cursor.u32("number of wires")}


def _key(container: Container) -> dict[str, Fact]:
    header = zkey.read_header(container)
    facts: dict[str, Fact] = {
        "protocol": "groth16",
        "curve": header.curve.name,
        "wires": header.n_wires,
        "public inputs": header.n_public,
        "domain size": header.domain_size,
        "coefficients": container.cursor(4, "coefficients").u32("number of coefficients"),
        "anyone can forge (gamma = delta)": header.gamma2 == header.delta2,
    }
    if container.find(10) is not None:
        cursor = container.cursor(10, "contributions")
        facts["circuit hash"] = cursor.bytes(64, "circuit hash").hex()
        facts["contributions"] = cursor.u32("number of contributions")
    return facts


def _of_json(path: str | os.PathLike[str]) -> FileInfo:
    document = parse(Path(path), KEY)
    n_bytes = Path(path).stat().st_size
    if isinstance(document.value, list):
        return FileInfo(os.fspath(path), "public inputs", n_bytes, {"public inputs": len(document.value)})
    document.get("protocol").text("groth16")
    if "pi_a" in document.value:
        return FileInfo(os.fspath(path), "proof", n_bytes, _curve_fact(document))
    facts = {**_curve_fact(document), "public inputs": document.get("nPublic").count()}
    document.get("IC")
    return FileInfo(os.fspath(path), "verifying key", n_bytes, facts)


def _curve_fact(document: Node) -> dict[str, Fact]:
    named = "curve" in document.value
    return {"protocol": "groth16", "curve": document.get("curve").curve().name if named else "not named"}
