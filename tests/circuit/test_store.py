"""Recordings on disk: they come back as they were, and nothing stale or damaged is used."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snarkline.circuit import Builder, ConstraintSystem, Library, Num, TemplateStore, gadget
from snarkline.circuit.fingerprint import fingerprint
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


def closure(k: int) -> Any:
    @gadget
    def inner(cs: Builder, x: Num) -> Num:
        return x * k

    return inner


SQUARE, CUBE = gadget(lambda cs, x: x * x), gadget(lambda cs, x: x * x * x)


def test_gadgets_from_elsewhere_are_not_kept(tmp_path: Path) -> None:
    """What they depend on cannot be told, and another circuit must never come out of the store."""
    for other in (closure(2), closure(3), SQUARE, CUBE):
        assert fingerprint(other) is None
        cs = ConstraintSystem(BN254, library=Library(BN254, TemplateStore(tmp_path)))
        cs.call(other, cs.alloc())
    assert list(tmp_path.iterdir()) == []


def test_a_gadget_that_only_calls_itself_ours_is_not_kept(tmp_path: Path) -> None:
    fake = closure(5)
    fake.function.__module__, fake.function.__qualname__ = poseidon.function.__module__, "poseidon"
    assert fingerprint(fake) is None
    assert fingerprint(poseidon) not in (None, fingerprint(sha256_compress))


def test_an_entry_that_is_no_file_is_done_without(tmp_path: Path) -> None:
    first = build(BN254, Library(BN254, TemplateStore(tmp_path)))
    for entry in list(tmp_path.glob("*.template")):
        entry.unlink()
        entry.mkdir()
    assert same(first, build(BN254, Library(BN254, TemplateStore(tmp_path))))
