"""The digits of the scalars of one sum, sorted by bucket (csrc/device/digits.cu, sort.h)."""

from __future__ import annotations

from dataclasses import dataclass

from snarkline.backend.cuda.device import NULL, Argument, Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows

DIGIT_THREADS = SORT_THREADS = 512
PARTITION_THREADS, PARTITION_TILE = 1024, 11264
SEGMENT_ROOM, PART_SIZE = 17 << 10, 8 << 10
"""The most entries of a segment that one block sorts, and the entries of a part of a larger one."""
LOG_SEGMENT, MAX_HIGH_BITS, MAX_LOW_BITS = 14, 10, 11
"""Segments have from half of 2^LOG_SEGMENT entries to as many, so long as the bits of a bucket that choose its segment,
and those within it, are no more than these."""
FEW_HIGH_BITS = 6
"""Up to so many bits that choose a segment, segments are half as large: there are multiprocessors enough for them."""
PLACES = 4
"""Counters: the places taken by scalars of each length, and the parts of large segments."""
NARROW_BITS = 32


@dataclass(frozen=True)
class Lengths:
    """How many scalars have more than `NARROW_BITS` bits, how many 2 to so many, and how many are one; |s| is meant.
    The others are zero."""

    wide: int
    narrow: int
    ones: int

    def any(self) -> bool:
        return self.wide + self.narrow + self.ones > 0

    def listed(self, n: int) -> Lengths:
        """As which the sort takes n scalars: so few short ones that a list of the others does not pay, as wide ones."""
        return self if self.wide < n - n // 8 else Lengths(n, 0, 0)

    def entries(self, windows: Windows) -> int:
        """The most non-zero digits that the scalars can have."""
        return self.wide * len(windows.bits) + self.narrow * windows.covering(NARROW_BITS) + self.ones


@dataclass(frozen=True)
class WindowArrays:
    """What kernels read about windows: start, bits and first bucket; halves; and as which chunks each ends (`Msm`)."""

    table: Array
    halves: Array
    chunks: Array


class DigitSort:
    """One sort. All digits of the scalars are written down, window by window, then parted by segments of neighbouring
    buckets, then each segment is sorted."""

    def __init__(
        self, device: Device, module: Module, windows: Windows, arrays: WindowArrays, lengths: Lengths
    ) -> None:
        self._device, self._module, self._windows, self._arrays = device, module, windows, arrays
        self._lengths = lengths
        self._columns = (lengths.wide, lengths.narrow, lengths.ones, windows.covering(NARROW_BITS))
        self._high_bits = high_bits(windows, lengths.wide)
        self._low_bits = max(windows.bits) - 1 - self._high_bits
        self._n_segments = len(windows.bits) << self._high_bits
        self._most = lengths.entries(windows)

    @property
    def n_zeroed(self) -> int:
        """Words of zeros that `run` takes: places, sizes of the segments, counts of the buckets, and their cursors."""
        return PLACES + self._n_segments + 2 * self._windows.n_buckets

    def run(self, scalars: Array, montgomery: bool, zeroed: Array, n_entries: Array, start: Array) -> Array:
        """The values of the entries; how many there are, and where those of each bucket begin, with the end of the last
        behind."""
        places, zeroed = zeroed[:PLACES], zeroed[PLACES:]
        cursors, counts, n_parts = zeroed[: self._n_segments], zeroed[self._n_segments :], places[3:]
        parts, segments = self._u32(2 * self._most_parts), self._u32(self._n_segments + 1)
        digits, indices = self._cut(scalars, montgomery, places, cursors)
        self._launch(
            "plan_segments", 1, 1024,
            cursors, self._n_segments, segments, parts, n_parts, n_entries, start[self._windows.n_buckets :],
        )  # fmt: skip
        lows, values = self._partition(digits, indices, cursors)
        self._sort_segments(lows, values, segments, parts, n_parts, counts, start, digits)
        return digits

    @property
    def _most_parts(self) -> int:
        return self._most // PART_SIZE + self._most // SEGMENT_ROOM

    def _cut(self, scalars: Array, montgomery: bool, places: Array, sizes: Array) -> tuple[Array, Array | int]:
        """The digits, window by window, and of which scalars they are; `sizes` are those of the segments."""
        n, resident = len(scalars), 3 * self._device.multiprocessors
        digits = self._u32(self._most)
        indices = NULL if self._lengths.wide == n else self._u32(sum(self._columns[:3]))
        self._launch(
            "make_digits", min(blocks(n, DIGIT_THREADS), resident), DIGIT_THREADS,
            scalars, n, int(montgomery), self._arrays.table, len(self._windows.bits), self._arrays.halves,
            *self._columns, self._high_bits, digits, indices, places, sizes,
            shared=4 * (10 * DIGIT_THREADS + self._n_segments + 1),
        )  # fmt: skip
        return digits, indices

    def _partition(self, digits: Array, indices: Array | int, cursors: Array) -> tuple[Array, Array]:
        """Low bits and values by segment."""
        lows, values = self._device.empty(self._most, "u2"), self._u32(self._most)
        tiles = blocks(sum(self._columns[:3]), PARTITION_TILE)
        self._launch(
            "partition_digits", (tiles, len(self._windows.bits)), PARTITION_THREADS,
            digits, indices, *self._columns, self._arrays.table, self._high_bits, cursors, lows, values,
            shared=8 * (PARTITION_TILE + (1 << self._high_bits)) + 4,
        )  # fmt: skip
        return lows, values

    def _sort_segments(
        self,
        lows: Array,
        values: Array,
        segments: Array,
        parts: Array,
        n_parts: Array,
        counts: Array,
        start: Array,
        out: Array,
    ) -> None:
        n_buckets, bins = self._windows.n_buckets, 1 << self._low_bits
        counting = min(4 * self._device.multiprocessors, self._most_parts)
        operands = (lows, values, self._arrays.table, self._high_bits, segments, parts, n_parts)
        self._launch(
            "sort_segments", counting + self._n_segments, SORT_THREADS, *operands, counting, counts, start, out,
            shared=4 * (SEGMENT_ROOM + bins + 1),
        )  # fmt: skip
        if counting:
            self._launch(
                "sort_parts", counting, SORT_THREADS, *operands, counts, counts[n_buckets:], start, out,
                shared=6 * PART_SIZE + 8 * (bins + 1),
            )  # fmt: skip

    def _u32(self, n: int) -> Array:
        return self._device.empty(max(n, 1), "u4")

    def _launch(
        self, kernel: str, grid: int | tuple[int, int], threads: int, *arguments: Argument, shared: int = 0
    ) -> None:
        self._device.launch(self._module, kernel, grid, threads, *arguments, shared=shared)


def high_bits(windows: Windows, n: int) -> int:
    """How many bits of a bucket choose its segment, for sums of n scalars of full width."""
    log_n = max(n - 1, 0).bit_length()
    wanted = max(0, log_n - LOG_SEGMENT, min(FEW_HIGH_BITS, log_n - LOG_SEGMENT + 1))
    return min(max(min(wanted, MAX_HIGH_BITS), max(windows.bits) - 1 - MAX_LOW_BITS), min(windows.bits) - 1)
