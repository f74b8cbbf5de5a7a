"""The first half of a sum: digits sorted by bucket, and how many additions that makes (csrc/device/digits.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snarkline.backend.cuda.device import Argument, Array, Device, Reading, blocks
from snarkline.backend.cuda.digits import DigitSort, Lengths, WindowArrays
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows, best_count, make_windows
from snarkline.curves.curve import Curve

SCAN_TILE = 4096
COUNTERS = 32
"""Words at the head of a run's memory: the number of entries, then the additions of each round."""
MAX_ROUNDS = 27


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
        lengths = lengths.listed(len(scalars))
        windows = make_windows(self._curve, best_count(self._curve, lengths.wide))
        n_buckets, n_status = windows.n_buckets, 2 * blocks(windows.n_buckets, SCAN_TILE)
        sort = DigitSort(self._device, self._digits, windows, self.arrays(windows), lengths)
        words = self._device.zeros(n_status + COUNTERS + sort.n_zeroed, "u4")
        scans = Scans(self._device, self._digits, words[:n_status])
        counters, zeroed = words[n_status : n_status + COUNTERS], words[n_status + COUNTERS :]
        start = self._device.empty(n_buckets + 1, "u4")
        values = sort.run(scalars, montgomery, zeroed, counters, start)
        grid = min(blocks(n_buckets, 256), 4 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_additions", grid, 256, start, start[1:], n_buckets, counters[1:])
        return Sorted(windows, values, start[:-1], start[1:], scans, self._device.download_later([counters]))

    def arrays(self, windows: Windows) -> WindowArrays:
        if windows not in self._window_arrays:
            rows = [(s, b, base, 0) for s, b, base in zip(windows.starts, windows.bits, windows.bases, strict=False)]
            counts = [1 << (bits - min(windows.bits)) for bits in windows.bits]
            chunks = [(sum(counts[:i]), count) for i, count in enumerate(counts)]
            self._window_arrays[windows] = WindowArrays(
                *(self._device.upload(np.array(a, np.uint32)) for a in (rows, windows.halves, chunks))
            )
        return self._window_arrays[windows]
