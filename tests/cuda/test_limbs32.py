"""Products and squares as GPUs make them, on the processor, against Python's integers."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from emulation import HERE

from snarkline.backend.cuda.module import SOURCE_ROOT
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import ints_to_limbs, limbs_to_ints


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path: Path = tmp_path_factory.mktemp("limbs32") / "limbs32.so"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", f"-I{SOURCE_ROOT.parent / 'common'}"]
    subprocess.run(["g++", *flags, str(HERE / "limbs32.cpp"), "-o", str(path)], check=True)
    return ctypes.CDLL(str(path))


def edges(curve: Curve) -> list[int]:
    """Words of zeros and ones, where carries run far, and the ends of the ranges [0, p) and [0, 2 p)."""
    rng, p, bits = random.Random(5), curve.q, 64 * curve.fp_limbs
    words = [sum(rng.choice((0, 1, 0xFFFFFFFF)) << i for i in range(0, bits, 32)) for _ in range(400)]
    powers = [(1 << k) - d for k in range(0, p.bit_length(), 7) for d in (0, 1)]
    return [0, 1, 2, p - 1, p - 2, p, p + 1, 2 * p - 1, 2 * p - 2, *powers, *(w % (2 * p) for w in words)]


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_products_and_squares(library: ctypes.CDLL, curve: Curve) -> None:
    rng, p, limbs = random.Random(6), curve.q, curve.fp_limbs
    a = edges(curve) + [rng.randrange(2 * p) for _ in range(400)]
    b = rng.sample(a, len(a))
    results = np.empty((4 * len(a), limbs), np.uint64)
    arrays = [ints_to_limbs(values, limbs) for values in (a, b)]
    getattr(library, f"{curve.name}_fp")(
        *(array.ctypes.data_as(ctypes.c_void_p) for array in arrays), ctypes.c_size_t(len(a)),
        results.ctypes.data_as(ctypes.c_void_p),
    )  # fmt: skip
    n, values = len(a), limbs_to_ints(results)
    for i in range(n):
        product, square, lazy_product, lazy_square = values[i::n]
        for found, left, right in ((lazy_product, a[i], b[i]), (lazy_square, a[i], a[i])):
            assert found < 2 * p
            assert (found << (64 * limbs)) % p == left * right % p
        assert (product, square) == (lazy_product % p, lazy_square % p)
