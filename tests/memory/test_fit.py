"""The line of a sweep: exact on a line, unmoved by spoilt rows, with intervals of Kendall's published quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from snarkline.cli.bench.release import _sweep_table
from snarkline.memory.experiment import Row
from snarkline.memory.fit import fits, slopes_outside


def rows(seconds: Sequence[float], policy: str = "sync", pages: str = "4k") -> list[Row]:
    """At 1/4 GiB, 2/4, and so on."""
    kind = {"policy": policy, "pages": pages, "runs": 1}
    return [{**kind, "bytes": (i + 1) << 28, "teardown_s": s} for i, s in enumerate(seconds)]


LINE = [0.09 * (i + 1) / 4 + 0.001 for i in range(8)]


def test_a_line_is_recovered() -> None:
    (line,) = fits(rows(LINE))
    assert (line.policy, line.pages) == ("sync", "4k")
    found = [line.slope_s_per_gib, line.low_s_per_gib, line.high_s_per_gib, line.offset_s, line.r_squared]
    assert np.allclose(found, [0.09, 0.09, 0.09, 0.001, 1.0])


@pytest.mark.parametrize("spoilt", [(0, 1), (1, 3), (5, 7), (6, 7)])
def test_two_rows_of_a_busy_moment_are_borne(spoilt: tuple[int, int]) -> None:
    seconds = [s + (5.0 if i in spoilt else 0.0) for i, s in enumerate(LINE)]
    (line,) = fits(rows(seconds))
    assert np.isclose(line.slope_s_per_gib, 0.09) and np.isclose(line.offset_s, 0.001)
    assert line.low_s_per_gib <= line.slope_s_per_gib <= line.high_s_per_gib
    assert line.r_squared < 0.9
    least_squares = np.polyfit(np.arange(1, 9) / 4, seconds, 1)[0]
    assert abs(least_squares - 0.09) > 0.2


@pytest.mark.parametrize(("n", "statistic"), [(5, 10), (6, 13), (7, 15), (8, 18), (9, 20), (10, 23)])
def test_intervals_have_the_ranks_of_kendalls_table(n: int, statistic: int) -> None:
    """Two-sided critical values of Kendall's S at 5 %: (pairs - S) / 2 slopes lie on each side (Sen 1968)."""
    pairs = n * (n - 1) // 2
    assert slopes_outside(n) == (pairs - statistic) // 2


def test_few_rows_have_the_interval_of_all_slopes() -> None:
    assert [slopes_outside(n) for n in (2, 3, 4)] == [0, 0, 0]
    (line,) = fits(rows([0.0, 1.0, 1.0]))
    assert (line.low_s_per_gib, line.slope_s_per_gib, line.high_s_per_gib) == (0.0, 2.0, 4.0)


def test_an_interval_holds_the_slope_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        (line,) = fits(rows([s + e for s, e in zip(LINE, random.standard_cauchy(8), strict=True)]))
        held += line.low_s_per_gib <= 0.09 <= line.high_s_per_gib
    assert 0.94 < held / 400 < 1


def test_every_policy_and_page_size_has_a_line_and_a_column() -> None:
    swept = [row for pages in ("4k", "2m") for policy in ("sync", "recycle") for row in rows(LINE, policy, pages)]
    lines = fits(swept)
    assert [(line.policy, line.pages) for line in lines] == [
        ("sync", "4k"), ("recycle", "4k"), ("sync", "2m"), ("recycle", "2m"),
    ]  # fmt: skip
    table = _sweep_table(swept, lines)
    assert [str(cell) for cell in table.columns[0].cells] == [
        *(f"{(i + 1) / 4:.2f}" for i in range(8)), "ms a GiB", "low", "high", "R²",
    ]  # fmt: skip
    assert [str(cell) for cell in table.columns[1].cells][-4:] == ["90.00", "90.00", "90.00", "1.0000"]
