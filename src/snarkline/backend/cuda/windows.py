"""How scalars are cut into signed digits (csrc/device/digits.cu), and how the sums of the windows end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from snarkline.curves.curve import Curve, Group
from snarkline.curves.pairing import fold_windows
from snarkline.curves.point import Point, PointTable

MIN_BITS = 5  # the top window has room for the carry from below


@dataclass(frozen=True)
class Windows:
    """Windows of equal width, or of two widths that differ by 1: `starts` and `bits`, lowest first.

    Digits are in [-2^(bits-1), 2^(bits-1)], so a window has 2^(bits-1) buckets. The scalar, replaced by r - s where
    that is smaller, is below 2^(total - 1).
    """

    starts: tuple[int, ...]
    bits: tuple[int, ...]

    @cached_property
    def bases(self) -> list[int]:
        """The first bucket of each window, and the number of all buckets."""
        bases = [0]
        for bits in self.bits:
            bases.append(bases[-1] + (1 << (bits - 1)))
        return bases

    @property
    def n_buckets(self) -> int:
        return self.bases[-1]

    @property
    def halves(self) -> list[int]:
        """Half of every window but the top one, as 8 words of 32 bits."""
        half = sum(1 << (start + bits - 1) for start, bits in zip(self.starts[:-1], self.bits[:-1], strict=True))
        return [half >> (32 * i) & 0xFFFFFFFF for i in range(8)]

    def covering(self, bits: int) -> int:
        """How many windows a scalar below 2^bits has digits in."""
        return sum(start <= bits for start in self.starts)


@cache
def make_windows(curve: Curve, count: int) -> Windows:
    total = curve.r.bit_length()
    starts = tuple(total * i // count for i in range(count))
    return Windows(starts, tuple(b - a for a, b in zip(starts, (*starts[1:], total), strict=True)))


WIDTHS = ((11, 9.0), (16, 12.3), (18, 14.2), (20, 16.7), (24, 19.7), (26, 21.3), (28, 22.0))
"""(log2 of the number of scalars, bits of a window), as measured on an H200; straight lines in between."""


def best_count(curve: Curve, n: int) -> int:
    """The number of windows for n scalars of full width."""
    sizes, widths = ([float(row[k]) for row in WIDTHS] for k in range(2))
    width = float(np.interp(math.log2(max(n, 1)), sizes, widths))
    return max(2, min(curve.r.bit_length() // MIN_BITS, round(curve.r.bit_length() / width)))


@dataclass(frozen=True)
class WindowSums:
    """What the device made of a sum, on the host: for each table one sum a window, in XYZZ coordinates."""

    curve: Curve
    groups: Sequence[Group]
    starts: Sequence[int]
    sums: Sequence[npt.NDArray[np.uint64]]

    def points(self) -> list[Point]:
        """The chains of doublings from window to window: 0.1 to 0.3 ms a table, on the host."""
        return self._points([self._fold(i) for i in range(len(self.sums))])

    def in_background(self, folders: ThreadPoolExecutor) -> Callable[[], list[Point]]:
        """The same in other threads, while the device goes on; the function returned waits for them. They do nothing
        that needs the GIL for long, so the thread that drives the device is not held up."""
        folds = [folders.submit(self._fold, i) for i in range(len(self.sums))]
        return lambda: self._points([fold.result() for fold in folds])

    def _fold(self, i: int) -> PointTable:
        return fold_windows(self.curve, self.groups[i], self.sums[i], self.starts)

    def _points(self, folded: Sequence[PointTable]) -> list[Point]:
        if not self.sums:
            return [Point.infinity(self.curve, group) for group in self.groups]
        return [table.point(0) for table in folded]
