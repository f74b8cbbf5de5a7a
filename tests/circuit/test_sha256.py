"""SHA-256: constraint counts and non-zero entries of bellman's gadget, values of hashlib."""

from __future__ import annotations

import hashlib

import pytest
from evaluation import satisfied

from snarkline.circuit.gadgets.sha256 import initial_state, sha256, sha256_compress
from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.r1cs.structured import StructuredR1CS


def bits_of(data: bytes) -> list[int]:
    return [byte >> (7 - i) & 1 for byte in data for i in range(8)]


def entries(r1cs: StructuredR1CS, run: int) -> tuple[int, ...]:
    template = r1cs.template_of(r1cs.runs[run])
    return tuple(matrix.n_entries for matrix in (template.a, template.b, template.c))


# Counts: bellman's test_full_block (25,840 with 512 allocated bits and a constant state), and the same block with an
# allocated state; entries from a model of bellperson that reproduces published totals.
def test_compression_of_a_chain() -> None:
    cs = ConstraintSystem(BLS12_381)
    blocks = cs.batch([cs.alloc_bits(512) for _ in range(4)])
    state = cs.scan(sha256_compress, initial_state(cs), blocks)
    for word in state:
        cs.output(word.num())
    r1cs = cs.finish()
    assert [run.count for run in r1cs.runs] == [1, 1, 3, 1]
    first, rest = (r1cs.template_of(run) for run in r1cs.runs[1:3])
    assert (first.n_rows, first.n_aux, entries(r1cs, 1)) == (25_840, 25_814, (59_456, 25_872, 56_886))
    assert (rest.n_rows, rest.n_aux, entries(r1cs, 2)) == (26_192, 26_166, (60_848, 26_192, 57_686))

    message = bytes(range(190, 190 + 0x37)) * 4  # 220 bytes: the padding ends in the fourth block
    padded = message + b"\x80" + bytes(256 - len(message) - 9) + (8 * len(message)).to_bytes(8, "big")
    wires = satisfied(r1cs, bits_of(padded))
    assert b"".join(word.to_bytes(4, "big") for word in wires[1:9]) == hashlib.sha256(message).digest()


@pytest.mark.parametrize("length", [0, 55, 56])
def test_whole_messages(length: int) -> None:
    cs = ConstraintSystem(BN254)
    digest = sha256(cs, cs.alloc_bits(8 * length))
    for start in range(0, 256, 32):
        cs.output(digest[start : start + 32].num())
    r1cs = cs.finish()
    message = bytes([255, 0, 129] * 20)[:length]
    wires = satisfied(r1cs, bits_of(message))
    expected = int("".join(map(str, bits_of(hashlib.sha256(message).digest()))), 2)
    found = "".join(f"{word:032b}"[::-1] for word in wires[1:9])
    assert int(found, 2) == expected
    assert (r1cs.n_constraints == 8) == (length == 0)  # nothing but outputs: a constant message folds away


def test_64_bytes_cost_what_bellman_counts() -> None:
    cs = ConstraintSystem(BLS12_381)
    sha256(cs, cs.alloc_bits(512))
    r1cs = cs.finish()
    assert r1cs.n_constraints - 512 == 44_874  # bellman, test_full_hash
    assert r1cs.n_wires - 1 - 512 == 44_828
