"""A corpus of files and the ways to break them, for `test_mutations.py`; run as a program, it fuzzes for a while.

python tests/formats/mutate.py SECONDS [SEED]
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from raw_files import MULTIPLIERS, Raw, r1cs_file, vector, witness_file

from snarkline.curves.curve import BN254
from snarkline.errors import InputError
from snarkline.formats.circom import (
    load_proving_key,
    load_r1cs,
    load_symbols,
    load_verifying_key,
    load_witness,
    proof_from_json,
    public_from_json,
    read_info,
)

PARSERS: dict[str, Callable[[Path], object]] = {
    "circuit.r1cs": load_r1cs,
    "circuit.wtns": load_witness,
    "circuit.zkey": load_proving_key,
    "verification_key.json": load_verifying_key,
    "proof.json": proof_from_json,
    "public.json": lambda path: public_from_json(path, BN254),
    "circuit.sym": load_symbols,
}

CORPUS: list[tuple[str, bytes]] = [
    (file, vector(name, file)) for name in MULTIPLIERS for file in PARSERS if file != "circuit.sym"
] + [
    ("circuit.sym", vector("multiplier_bn128", "circuit.sym")),
    ("circuit.r1cs", r1cs_file("bn254", 1, 0, 0, []).join()),
    ("circuit.r1cs", r1cs_file("bls12_381", 3, 1, 1, [([(0, 1)], [], [(2, 5), (2, 0)])] * 3, labels=False).join()),
    ("circuit.wtns", witness_file("bls12_381", [1, 0, 2**200]).join()),
    ("public.json", b"[]"),
]  # fmt: skip

# Numbers at which counts, sizes and indices tip over.
SPECIAL = [0, 1, 2, 3, 4, 8, 16, 31, 32, 48, 64, 2**16, 2**27, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]

TOKENS = [b'"', b"[", b"]", b"{", b"}", b",", b"-", b"0", b"9" * 50, b"1e9", b"null", b"\xff", b"\n"]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One change: a bit, a number, a cut, a piece taken out, put in or moved, or sections in another arrangement."""
    at = rng.randrange(len(data) + 1)
    n = min(rng.choice([1, 4, 8, 12, 32, 44, 64, 100]), len(data) - at)
    match rng.randrange(9):
        case 0 if data:
            at = rng.randrange(len(data))
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case 1:
            value = struct.pack("<I", rng.choice(SPECIAL) % 2**32)
            at -= at % 4 * rng.randrange(2)
            return data[:at] + value + data[at + 4 :]
        case 2:
            return data[:at] + struct.pack("<Q", rng.choice(SPECIAL)) + data[at + 8 :]
        case 3:
            return data[:at]
        case 4:
            return data[:at] + data[at + n :]
        case 5:
            return data[:at] + data[at : at + n] * 2 + data[at + n :]
        case 6:
            return data[:at] + rng.randbytes(n) + data[at + n :]
        case 7:
            return data[:at] + rng.choice(TOKENS) + data[at + rng.randrange(2) :]
        case _:
            return _rearrange(data, rng)


def _rearrange(data: bytes, rng: random.Random) -> bytes:
    try:
        raw = Raw.split(data)
    except (struct.error, AssertionError, MemoryError, OverflowError):
        return data[::-1]
    sections = list(raw.sections)
    rng.shuffle(sections)
    if sections and rng.randrange(2):
        i, content = sections[0]
        sections[0] = (rng.choice([i, 0, 5, 99]), content[: rng.randrange(len(content) + 1)])
    if sections and rng.randrange(3) == 0:
        sections.append(sections[-1])
    return Raw(raw.magic, raw.version, tuple(sections)).join()


def attempt(file: str, data: bytes, folder: Path) -> bool:
    """Whether `data` is accepted as `file`; anything but an InputError goes up."""
    path = folder / "broken"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for parser in (read_info, PARSERS[file]):
            try:
                parser(path)
            except InputError:
                if parser is not read_info:
                    return False
    return True


def main(seconds: float, seed: int) -> None:
    rng = random.Random(seed)
    end, runs, accepted = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            file, data = rng.choice(CORPUS)
            for _ in range(rng.choice([1, 1, 2, 3, 8])):
                data = mutate(data, rng)
            try:
                accepted += attempt(file, data, Path(folder))
            except BaseException:
                Path(f"crash-{seed}-{runs}-{file}").write_bytes(data)
                raise
            runs += 1
    print(f"{runs} inputs, {accepted} accepted, seed {seed}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32))
