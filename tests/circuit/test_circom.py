"""Our gadgets and circom's compute the same: circuits of circomlib, with the inputs and witnesses of circom's tools."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import snarkline.cli
from snarkline.circuit import Bit, Bits, Builder, Num, Private, Public, circuit
from snarkline.circuit.gadgets.merkle import merkle_root, poseidon_level
from snarkline.circuit.gadgets.sha256 import sha256
from snarkline.circuit.gadgets.sha256 import sha256_compress as compress
from snarkline.formats.circom import load_witness
from snarkline.r1cs.check import first_violation

DEMO = Path(snarkline.cli.__file__).parent / "data" / "sha256_512"


@circuit
def membership(
    cs: Builder, root: Public[Num], leaf: Private[Num], siblings: Private[Num, 20], bits: Private[Bit, 20]
) -> None:
    cs.equal(merkle_root(cs, poseidon_level, leaf, siblings, bits), root)


@circuit
def digest(cs: Builder, message: Private[Bits[512]]) -> Bits:
    return sha256(cs, message)


def test_poseidon_merkle_path(vectors: Path) -> None:
    inputs = json.loads((vectors / "circom" / "merkle20_bn128" / "input.json").read_text())
    compiled = membership.compile()
    assert first_violation(compiled.r1cs, compiled.assign(inputs)) is None
    # A swap and a hash a level; circom's circuit, optimised by --O1, has 10,400.
    assert compiled.r1cs.n_constraints == 20 * 242 + 20 + 1
    for name, value in (("root", "1"), ("leaf", "0"), ("bits", [1 - int(inputs["bits"][0]), *inputs["bits"][1:]])):
        assert first_violation(compiled.r1cs, compiled.assign(inputs | {name: value})) is not None


def test_sha256_of_64_bytes() -> None:
    message = json.loads((DEMO / "input.json").read_text())["in"]
    expected = load_witness(lzma.decompress((DEMO / "circuit.wtns.xz").read_bytes())).public(256)
    compiled = digest.compile()
    witness = compiled.assign({"message": message})
    assert first_violation(compiled.r1cs, witness) is None
    assert witness.public(256) == expected
    assert compress.name in {template.name for template in compiled.r1cs.templates}
