"""Recordings on disk: they come back as they were, and nothing stale or damaged is used."""

from __future__ import annotations

import hashlib
import os
import random
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snarkline.circuit import Builder, ConstraintSystem, Library, Num, TemplateStore, gadget
from snarkline.circuit.fingerprint import UnknownSourceError, fingerprint
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.sha256 import initial_state, sha256_compress
from snarkline.circuit.recording import Recording
from snarkline.circuit.store import decode, encode
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.errors import FormatError
from snarkline.r1cs.structured import StructuredR1CS


def build(curve: Curve, library: Library) -> StructuredR1CS:
    cs = ConstraintSystem(curve, library=library)
    hash_ = poseidon if curve is BN254 else neptune_poseidon
    x, y = cs.alloc(), cs.alloc()
    cs.output(cs.call(hash_, [x, y]))
    cs.output(cs.call(sha256_compress, initial_state(cs), cs.alloc_bits(512))[0].num())
    return cs.finish()


def same(a: StructuredR1CS, b: StructuredR1CS) -> bool:
    flat, other = a.flatten(), b.flatten()
    pairs = [(getattr(flat.matrices, side), getattr(other.matrices, side)) for side in "abc"]
    return all(x.row(k) == y.row(k) for x, y in pairs for k in range(0, x.n_rows, 97)) and all(
        np.array_equal(s.program.code, t.program.code) and s.paths == t.paths and s.bits.tobytes() == t.bits.tobytes()
        for s, t in zip(a.templates, b.templates, strict=True)
    )


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda curve: curve.name)
def test_a_store_spares_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curve: Curve) -> None:
    first = build(curve, Library(curve, TemplateStore(tmp_path)))
    assert len(list(tmp_path.glob("*.template"))) == 2
    monkeypatch.setattr("snarkline.circuit.library.record", None)
    again = build(curve, Library(curve, TemplateStore(tmp_path)))
    again.check()
    assert same(first, again)
    natives = [(a.native, b.native) for a, b in zip(first.templates, again.templates, strict=True)]
    assert sum(a is not None for a, _ in natives) == 2
    for a, b in natives:
        if a is not None and b is not None:
            assert (a.name, a.inputs.tolist(), a.outputs.tolist()) == (b.name, b.inputs.tolist(), b.outputs.tolist())
            assert (a.parameters and a.parameters.to_ints()) == (b.parameters and b.parameters.to_ints())


def recording() -> Recording:
    library = Library(BN254)
    cs = ConstraintSystem(BN254, library=library)
    cs.call(poseidon, [cs.alloc(), cs.constant(5)])
    (found,) = library._recordings.values()
    return found


def test_damage_is_noticed() -> None:
    data = encode(recording())
    assert encode(decode(data, BN254)) == data
    source = random.Random(1)
    places = {0, 4, 8, 39, 40, 47, 48, len(data) - 1, *(source.randrange(len(data)) for _ in range(30))}
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << source.randrange(8)
        with pytest.raises(FormatError, match=r"cache\.template: offset"):
            decode(bytes(damaged), BN254, "cache.template")
    for length in (0, 7, 8, 47, len(data) - 1):
        with pytest.raises(FormatError):
            decode(data[:length], BN254)
    for payload in (bytes(8), (2).to_bytes(8, "little") + b"{}", data[40:-8]):
        with pytest.raises(FormatError, match="a header and its arrays"):
            decode(data[:8] + hashlib.sha256(payload).digest() + payload, BN254)


def test_a_damaged_entry_is_recorded_again(tmp_path: Path) -> None:
    first = build(BN254, Library(BN254, TemplateStore(tmp_path)))
    entries = sorted(tmp_path.glob("*.template"))
    whole = [entry.read_bytes() for entry in entries]
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"\.template: offset 8 \(SHA-256\).*recorded again"):
        again = build(BN254, Library(BN254, TemplateStore(tmp_path)))
    assert same(first, again) and [entry.read_bytes() for entry in entries] == whole


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cs = ConstraintSystem(BN254, library=Library(BN254, TemplateStore(tmp_path / "file" / "below")))
    cs.output(cs.call(poseidon, [cs.alloc()]))
    assert cs.finish().n_constraints == 215


MODULE = """
from snarkline.circuit import gadget

ROUNDS = {rounds}

def helper(x):
    return x * {factor}

@gadget
def user(cs, x):
    for _ in range(ROUNDS):
        x = helper(x * x)
    return x
"""


def user_gadget(folder: Path, name: str, **values: int) -> Any:
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(MODULE).format(**values))
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(path.read_text(), os.fspath(path), "exec"), namespace)
    return namespace["user"]


def test_the_key_follows_sources_and_constants(tmp_path: Path) -> None:
    keys = {
        fingerprint(user_gadget(tmp_path, f"m{rounds}{factor}", rounds=rounds, factor=factor))
        for rounds, factor in ((2, 3), (3, 3), (2, 4))
    }
    assert len(keys) == 3
    (tmp_path / "again").mkdir()
    assert fingerprint(user_gadget(tmp_path / "again", "m23", rounds=2, factor=3)) in keys


def closure(k: object) -> Any:
    @gadget
    def inner(cs: Builder, x: Num) -> Num:
        return x * int(str(k))

    return inner


def test_closures_are_part_of_the_key() -> None:
    assert fingerprint(closure(2)) == fingerprint(closure(2)) != fingerprint(closure(3))


def test_what_cannot_be_told_is_not_kept(tmp_path: Path) -> None:
    unknown = closure(object())
    with pytest.raises(UnknownSourceError):
        fingerprint(unknown)
    cs = ConstraintSystem(BN254, library=Library(BN254, TemplateStore(tmp_path)))
    cs.call(closure(type("Five", (), {"__str__": lambda self: "5"})()), cs.alloc())
    assert list(tmp_path.iterdir()) == []
