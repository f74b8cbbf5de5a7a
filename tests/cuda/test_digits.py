"""The sort of digits by bucket, in emulation, against digits cut in Python."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from emulation import EmulatedDevice

import snarkline.backend.cuda.buckets
import snarkline.backend.cuda.digits
from snarkline.backend.cuda.buckets import Sorter
from snarkline.backend.cuda.digits import Lengths
from snarkline.backend.cuda.gpu import Gpu
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows
from snarkline.curves.curve import BLS12_381, BN254, Curve
from snarkline.curves.vector import Form, FrVector

NEGATE = 1 << 31


def magnitude(curve: Curve, s: int) -> int:
    return min(s, curve.r - s)


def digits_of(windows: Windows, s: int) -> list[int]:
    """Signed digits, the lowest first, by carries."""
    digits, carry = [], 0
    for start, bits in list(zip(windows.starts, windows.bits, strict=True))[:-1]:
        d = (s >> start) % (1 << bits) + carry
        carry = int(d >= 1 << (bits - 1))
        digits.append(d - (carry << bits))
    return [*digits, (s >> windows.starts[-1]) + carry]


def expected_buckets(curve: Curve, windows: Windows, scalars: list[int]) -> dict[int, list[int]]:
    buckets = defaultdict(list)
    for i, s in enumerate(scalars):
        negative = s > curve.r // 2
        for base, d in zip(windows.bases, digits_of(windows, magnitude(curve, s)), strict=False):
            if d != 0:
                buckets[base + abs(d) - 1].append(i + (NEGATE if (d < 0) != negative else 0))
    return {b: sorted(values) for b, values in buckets.items()}


def lengths_of(curve: Curve, scalars: list[int]) -> Lengths:
    sizes = [magnitude(curve, s) for s in scalars]
    return Lengths(sum(s >> 32 > 0 for s in sizes), sum(1 < s < 1 << 32 for s in sizes), sizes.count(1))


def check_sort(device: Gpu, curve: Curve, scalars: list[int], form: Form) -> None:
    device.prepare([Module("digits", curve.name)])
    sorter = Sorter(device, curve)
    on_device = device.upload(FrVector.from_ints(curve, scalars, form).limbs)
    lengths = Lengths(len(scalars), 0, 0)
    if form is Form.CANONICAL:
        (counts,) = sorter.count(on_device).wait()
        lengths = Lengths(*(int(x) for x in counts))
        assert lengths == lengths_of(curve, scalars)
    there = sorter.sort(on_device, form is Form.MONTGOMERY, lengths)
    (counters,) = there.counts.wait()
    start, end, values = (device.download(a) for a in (there.start, there.end, there.values))
    expected = expected_buckets(curve, there.windows, scalars)
    sizes = np.array([len(expected.get(b, ())) for b in range(there.windows.n_buckets)])
    assert counters[0] == sizes.sum() and counters[1] == sizes.max() and counters[2] == (sizes // 2).sum()
    assert np.array_equal(end, np.cumsum(sizes)) and np.array_equal(start, end - sizes)
    assert counters[0] <= lengths.entries(there.windows)
    assert len(values) == lengths.listed(len(scalars)).entries(there.windows)
    for b, entries in expected.items():
        assert sorted(values[start[b] : end[b]].tolist()) == entries, b


def check(curve: Curve, scalars: list[int], form: Form) -> list[str]:
    """In emulation; returns the kernels that ran."""
    device = EmulatedDevice()
    check_sort(device, curve, scalars, form)
    return device.driver.kernels()


def any_below(limit: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.randrange(limit)


KINDS: dict[str, Callable[[Curve], Callable[[random.Random], int]]] = {
    "random": lambda curve: any_below(curve.r),
    "bits": lambda curve: any_below(2),
    "32 bits": lambda curve: any_below(1 << 32),
    "mixed": lambda curve: lambda rng: rng.choice([0, 1, curve.r - 1, rng.randrange(1 << 32), rng.randrange(curve.r)]),
    "edges": lambda curve: (
        lambda rng: rng.choice(
            [0, 1, 2, curve.r - 1, curve.r - 2, curve.r // 2, curve.r // 2 + 1, (1 << 32) - 1, 1 << 32, 1 << 252]
        )
    ),
    "few are short": lambda curve: lambda rng: rng.randrange(rng.choice([3] + [curve.r] * 15)),
    "one": lambda curve: lambda rng: 1,
    "minus one": lambda curve: lambda rng: curve.r - 1,
    "equal": lambda curve: lambda rng: curve.r // 3,
}


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, Form.CANONICAL) for kind in KINDS] + [("random", Form.MONTGOMERY), ("mixed", Form.MONTGOMERY)],
)
def test_digits_are_sorted_by_bucket(kind: str, form: Form) -> None:
    for n in (1, 2, 3, 513):
        rng = random.Random(n)
        scalars = [KINDS[kind](BN254)(rng) for _ in range(n)]
        if any(scalars):
            check(BN254, scalars, form)


@pytest.mark.parametrize("last", [1, 2, BN254.r - 1, BN254.r // 3])
def test_all_but_one_are_zero(last: int) -> None:
    check(BN254, [0] * 511 + [last], Form.CANONICAL)


@pytest.mark.parametrize("kind", ["random", "mixed", "edges"])
@pytest.mark.parametrize("count", [16, 19])
def test_many_segments(monkeypatch: pytest.MonkeyPatch, kind: str, count: int) -> None:
    """Windows of one or two widths, most segments empty or all but."""
    monkeypatch.setattr(snarkline.backend.cuda.digits, "LOG_SEGMENT", 7)
    monkeypatch.setattr(snarkline.backend.cuda.buckets, "best_count", lambda curve, n: count)
    rng = random.Random(count)
    check(BLS12_381, [KINDS[kind](BLS12_381)(rng) for _ in range(1000)], Form.CANONICAL)


@pytest.mark.parametrize("kind", ["one", "mixed"])
def test_segments_too_large_for_a_block(kind: str) -> None:
    rng = random.Random(5)
    assert "sort_parts" in check(BN254, [KINDS[kind](BN254)(rng) for _ in range(20_000)], Form.CANONICAL)


@pytest.mark.slow
@pytest.mark.parametrize("n", [(17 << 10) - 1, 17 << 10, (17 << 10) + 1, 3 << 13, 100_001])
@pytest.mark.parametrize("kind", ["minus one", "equal", "bits", "random"])
def test_sizes_about_the_room_of_a_block(kind: str, n: int) -> None:
    rng = random.Random(n)
    check(BN254, [KINDS[kind](BN254)(rng) for _ in range(n)], Form.CANONICAL)
