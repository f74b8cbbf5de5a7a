"""The native decoder of coefficients against NumPy, over many chunks, orders and thread counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snarkline.formats.circom.zkey import COEFFICIENT
from snarkline.native import core

RNG = np.random.default_rng(2016)


def records(n: int, rows: int, columns: int, distinct: int) -> Any:
    out = np.zeros(n, dtype=COEFFICIENT)
    out["matrix"] = RNG.integers(0, 2, n)
    out["row"] = np.sort(RNG.integers(0, max(rows, 1), n))
    out["column"] = RNG.integers(0, columns, n)
    out["value"] = RNG.integers(0, 2**63, (distinct, 4), dtype=np.uint64)[RNG.integers(0, distinct, n)]
    return out


def decode(threads: int, data: Any, max_rows: int, columns: int) -> Any:
    view = data.view(np.uint8)
    n_a, n_b, rows, in_order, fault, _, _ = core.scan_coefficients(threads, view, max_rows, columns)
    assert fault == ""
    outs = [(np.full(rows + 1, 7, np.uint64), np.empty(n, np.uint32), np.empty(n, np.uint32)) for n in (n_a, n_b)]
    return outs, core.gather_coefficients(threads, view, in_order, columns, *outs)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("n", "rows", "distinct"),
    [(0, 0, 1), (1, 1, 1), (2, 1, 2), (16_384, 10, 3), (16_385, 40_000, 3), (50_000, 3, 1), (50_000, 100_000, 50_000)],
)
@pytest.mark.parametrize("order", ["sorted", "shuffled", "reversed"])
def test_matrices_by_rows(threads: int, n: int, rows: int, distinct: int, order: str) -> None:
    data = records(n, rows, 1000, distinct)
    arrange: Callable[[Any], Any] = {
        "sorted": lambda a: a, "shuffled": lambda a: a[RNG.permutation(n)], "reversed": lambda a: a[::-1].copy()
    }[order]  # fmt: skip
    data = arrange(data)
    outs, values = decode(threads, data, max(rows, 1), 1000)
    for m, (start, column, value) in enumerate(outs):
        mine = data[data["matrix"] == m]
        mine = mine[np.argsort(mine["row"], kind="stable")]
        counts = np.bincount(mine["row"], minlength=len(start) - 1)
        assert np.array_equal(start, np.concatenate([[0], np.cumsum(counts)]))
        assert np.array_equal(column, mine["column"])
        assert np.array_equal(values[value], mine["value"])
    assert len(np.unique(values, axis=0)) == len(values)
    assert len(start) - 1 == (data["row"].max() + 1 if n else 0)


def test_numbering_does_not_depend_on_threads() -> None:
    data = records(60_000, 5_000, 100, 999)
    (a1, b1), v1 = decode(1, data, 5_000, 100)
    (a4, b4), v4 = decode(4, data, 5_000, 100)
    assert np.array_equal(v1, v4)
    assert all(np.array_equal(x, y) for x, y in zip((*a1, *b1), (*a4, *b4), strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("index", [0, 16_383, 16_384, 49_999])
@pytest.mark.parametrize(("field", "bad"), [("matrix", 2), ("row", 60_000), ("column", 100), ("column", 2**32 - 1)])
def test_the_first_bad_record_is_found(threads: int, index: int, field: str, bad: int) -> None:
    data = records(50_000, 50_000, 100, 3)
    data[field][index] = bad
    data["matrix"][index + 1 :][-1:] = 9
    found = core.scan_coefficients(threads, data.view(np.uint8), 50_000, 100)
    assert found[4:] == ((field, index, bad) if field != "matrix" or index < 49_999 else ("matrix", index, bad))


@pytest.mark.parametrize("field", ["matrix", "row", "column"])
@pytest.mark.parametrize("in_order", [True, False])
def test_data_that_changes_between_the_passes_is_not_followed(field: str, in_order: bool) -> None:
    """Arrays were sized by one look at the records; another look finds them changed."""
    data = records(40_000, 1_000, 100, 3)
    n_a, n_b, rows, _, _, _, _ = core.scan_coefficients(2, data.view(np.uint8), 1_000, 100)
    outs = [(np.zeros(rows + 1, np.uint64), np.zeros(n, np.uint32), np.zeros(n, np.uint32)) for n in (n_a, n_b)]
    data[field][20_000:] = {"matrix": 1 - data["matrix"][20_000:], "row": 2**31, "column": 2**31}[field]
    if field == "matrix":
        data["matrix"][30_000] = 1 - data["matrix"][30_000]
        if abs(int((data["matrix"] == 0).sum()) - n_a) == 0:
            data["matrix"][30_001] = 7
    with pytest.raises(RuntimeError, match="changed while it was read"):
        core.gather_coefficients(2, data.view(np.uint8), in_order, 100, *outs)


def test_values_that_hash_alike_take_no_longer() -> None:
    """Values that differ in their high words only, in a regular pattern."""
    n = 200_000
    data = np.zeros(n, dtype=COEFFICIENT)
    data["row"] = np.arange(n)
    data["value"][:, 3] = np.arange(n, dtype=np.uint64) << np.uint64(32)
    (a, _), values = decode(2, data, n, 1)
    assert np.array_equal(a[2], np.arange(n))
    assert np.array_equal(values, data["value"])


@pytest.mark.parametrize("length", [1, 43, 45])
def test_part_of_a_record_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="multiple of 44"):
        core.scan_coefficients(1, np.zeros(length, np.uint8), 1, 1)
