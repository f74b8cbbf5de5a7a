"""The first half of a sum: digits, sorted by bucket (csrc/device/digits.cu, sort.h)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snarkline.backend.cuda.device import Argument, Array, Device, Reading, blocks
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows, best_count, make_windows
from snarkline.curves.curve import Curve

SORT_TILE, SORT_THREADS, SORT_SHARED = 8192, 512, 2 * 4 * 8192 + 2 * 4 * 256 + 2 * 16 * 256
SCAN_TILE = 4096
COUNTERS = 32
"""Words at the head of a run's memory: the number of entries, then the additions of each round."""
MAX_ROUNDS = 27
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

    def entries(self, windows: Windows) -> int:
        """The most non-zero digits that the scalars can have."""
        return self.wide * len(windows.bits) + self.narrow * windows.covering(NARROW_BITS) + self.ones


@dataclass(frozen=True)
class WindowArrays:
    """What kernels read about windows: start, bits and first bucket; halves; and as which chunks each ends (`Msm`)."""

    table: Array
    halves: Array
    chunks: Array


class Scans:
    """Exclusive prefix sums over up to `most` values, of one run; `status` is zero before."""

    def __init__(self, device: Device, module: Module, status: Array) -> None:
        self._device, self._module, self._status = device, module, status
        self._run = 0

    def launch(self, kernel: str, n: int, before: Sequence[Argument], *after: Argument) -> None:
        self._run += 1
        self._device.launch(
            self._module, kernel, blocks(n, SCAN_TILE), 256, *before, n, self._status, self._run, *after
        )


@dataclass(frozen=True)
class Sorted:
    """The entries of one run in the order of their buckets, on the device. `start` and `end` are by bucket; `counts`
    are the number of entries and the additions of each round, on their way to the host."""

    windows: Windows
    keys: Array
    values: Array
    start: Array
    end: Array
    scans: Scans
    counts: Reading


class Sorter:
    """Cuts scalars of one curve into digits and sorts these by bucket."""

    def __init__(self, device: Device, curve: Curve) -> None:
        self._device, self._curve = device, curve
        self._digits = Module("digits", curve.name)
        self._window_arrays: dict[Windows, WindowArrays] = {}

    def count(self, scalars: Array) -> Reading:
        """The `Lengths` of canonical scalars."""
        counts = self._device.zeros(3, "u4")
        grid = min(blocks(len(scalars), 256), 8 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_lengths", grid, 256, scalars, len(scalars), counts)
        return self._device.download_later([counts])

    def sort(self, scalars: Array, montgomery: bool, lengths: Lengths) -> Sorted:
        """The entries of scalars that are not all zero. Queued without a look at what comes of it."""
        windows = make_windows(self._curve, best_count(self._curve, lengths.wide))
        n, most, n_buckets = len(scalars), lengths.entries(windows), windows.n_buckets
        passes, bits = _passes(n_buckets)
        tiles = blocks(most, SORT_TILE)
        n_status = 2 * blocks(max(tiles << bits, n_buckets), SCAN_TILE)
        words = self._device.zeros(n_status + COUNTERS + 2 * n_buckets, "u4")
        scans = Scans(self._device, self._digits, words[:n_status])
        counters, ends = words[n_status : n_status + COUNTERS], words[n_status + COUNTERS :]
        start, end = ends[:n_buckets], ends[n_buckets:]

        keys, values, other_keys, other_values = (self._u32(most) for _ in range(4))
        arrays = self.arrays(windows)
        self._launch(
            "make_entries", n,
            scalars, n, int(montgomery), arrays.table, len(windows.bits), arrays.halves, keys, values, counters,
        )  # fmt: skip
        counts = self._u32(tiles << bits)
        for shift in range(0, bits * passes, bits):
            self._device.launch(self._digits, "sort_count", tiles, SORT_THREADS, keys, counters, shift, bits, counts)
            scans.launch("scan_array", tiles << bits, [counts])
            self._device.launch(
                self._digits, "sort_scatter", tiles, SORT_THREADS,
                keys, values, counters, shift, bits, counts, other_keys, other_values, shared=SORT_SHARED,
            )  # fmt: skip
            keys, values, other_keys, other_values = other_keys, other_values, keys, values
        self._launch("find_buckets", most, keys, counters, start, end)
        grid = min(blocks(n_buckets, 256), 4 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_additions", grid, 256, start, end, n_buckets, counters[1:])
        return Sorted(windows, keys, values, start, end, scans, self._device.download_later([counters]))

    def arrays(self, windows: Windows) -> WindowArrays:
        if windows not in self._window_arrays:
            rows = [(s, b, base, 0) for s, b, base in zip(windows.starts, windows.bits, windows.bases, strict=False)]
            counts = [1 << (bits - min(windows.bits)) for bits in windows.bits]
            chunks = [(sum(counts[:i]), count) for i, count in enumerate(counts)]
            self._window_arrays[windows] = WindowArrays(
                *(self._device.upload(np.array(a, np.uint32)) for a in (rows, windows.halves, chunks))
            )
        return self._window_arrays[windows]

    def _u32(self, n: int) -> Array:
        return self._device.empty(max(n, 1), "u4")

    def _launch(self, kernel: str, threads: int, *arguments: Argument) -> None:
        self._device.launch(self._digits, kernel, blocks(threads, 256), 256, *arguments)


def _passes(n_buckets: int) -> tuple[int, int]:
    """In how many passes keys below `n_buckets` are sorted, and by how many bits in each."""
    key_bits = (n_buckets - 1).bit_length()
    passes = max(1, -(-key_bits // 8))
    return passes, -(-key_bits // passes)
