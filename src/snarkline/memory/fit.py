"""How the teardown of a call grows with its bytes: a line that bears rows from a busy moment of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from statistics import median
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Fit:
    """teardown = slope * GiB + offset, in seconds.

    The slope is the median of the slopes between any two rows (Theil 1950), which two spoilt rows of eight hardly move;
    `low_s_per_gib` to `high_s_per_gib` is its interval of 95 % (Sen 1968). Narrow and about zero, it says that the cost
    does not grow with the bytes; wide, that the machine was busy. The offset is the median of what the slope leaves.
    `r_squared` is the share of the variance that a line explains at most (least squares).
    """

    policy: str
    pages: str
    slope_s_per_gib: float
    low_s_per_gib: float
    high_s_per_gib: float
    offset_s: float
    r_squared: float


def fit(rows: Sequence[Mapping[str, Any]]) -> Fit:
    """The line through the rows of one policy and page size, at least two and all of different `bytes`."""
    x = np.array([row["bytes"] / 2**30 for row in rows])
    y = np.array([row["teardown_s"] for row in rows])
    slopes = sorted(float((y[j] - y[i]) / (x[j] - x[i])) for i, j in combinations(range(len(rows)), 2))
    slope, outside = median(slopes), slopes_outside(len(rows))
    return Fit(
        policy=rows[0]["policy"],
        pages=rows[0]["pages"],
        slope_s_per_gib=slope,
        low_s_per_gib=slopes[outside],
        high_s_per_gib=slopes[-1 - outside],
        offset_s=float(np.median(y - slope * x)),
        r_squared=float(np.corrcoef(x, y)[0, 1] ** 2) if np.ptp(y) else 1.0,
    )


def fits(rows: Iterable[Mapping[str, Any]]) -> list[Fit]:
    """A line for each policy and page size."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row["pages"]), []).append(row)
    return [fit(group) for group in groups.values()]


def slopes_outside(n: int) -> int:
    """How many of the slopes between n rows lie on each side of the interval; none if n is too small for it.

    If y is the line's and noise, the slopes below the true one are as many as a random order of n has inversions, so
    that the quantiles of that number (Kendall's distribution) are the interval's ranks.
    """
    inversions = [1]  # how many orders of k things have so many, k by k
    for k in range(2, n + 1):
        longer = [0] * (len(inversions) + k - 1)
        for i, orders in enumerate(inversions):
            for j in range(k):
                longer[i + j] += orders
        inversions = longer
    outside, below = 0, inversions[0]
    while below <= (1 - CONFIDENCE) / 2 * factorial(n):
        outside += 1
        below += inversions[outside]
    return max(outside - 1, 0)
