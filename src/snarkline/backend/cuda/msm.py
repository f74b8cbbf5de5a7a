"""Multi-scalar multiplication on the device: digits, sort, rounds of affine additions, reduction of the buckets.

The kernels and their reasons are in csrc/device/{digits,rounds,buckets}.cu. Tables that share their scalars share the
digits, the sort and the lists of additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.inverse import invert_planes, scratch_elements
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows, best_count, make_windows
from snarkline.curves.curve import Curve, Group
from snarkline.curves.pairing import fold_windows
from snarkline.curves.point import Point, PointTable
from snarkline.trace import device_span

SORT_TILE, SORT_THREADS, SORT_SHARED = 8192, 512, 2 * 4 * 8192 + 2 * 4 * 256 + 2 * 16 * 256
SCAN_TILE = 4096
MAX_ROUNDS = 27
MIN_ADDITIONS = 200_000
"""A round of fewer additions in G1 over 381 bits takes longer than they do in XYZZ coordinates: its one inversion is
0.3 ms whatever the number. Divided by the weight of the additions (`weight_of`)."""
HEAVY = 16
"""More points than these left in one bucket, and than 4 times the mean, are summed by whole blocks, in slices."""
SLICE = 512
QUAD_ADDITIONS = 512
"""Up to so many additions a multiprocessor are done by four threads each."""
NARROW_BITS = 32


def log_chunk_of(n_buckets: int) -> int:
    """Buckets that one thread adds by running sums: many where there are threads enough, two where latency counts."""
    return max(1, min(4, n_buckets.bit_length() - 17))


def weight_of(curve: Curve, groups: Sequence[Group]) -> float:
    """What an addition costs in the mean of the tables, in additions in G1 over 381 bits."""
    return sum((4 if group is Group.G2 else 1) * (curve.fp_limbs / 6) ** 2 for group in groups) / len(groups)


@dataclass(frozen=True)
class Buckets:
    """The sorted entries of one run: `start` and `end` by bucket, and how many additions each round has."""

    windows: Windows
    keys: Array
    values: Array
    n_entries: int
    start: Array
    end: Array
    additions: list[int]
    weight: float

    @property
    def rounds(self) -> int:
        """How many rounds pay."""
        rounds = 1
        while rounds + 1 < MAX_ROUNDS and self.weight * self.additions[rounds + 1] >= MIN_ADDITIONS:
            rounds += 1
        return rounds

    @property
    def left(self) -> int:
        """Points in all buckets after the rounds: each addition takes one away."""
        return self.n_entries - sum(self.additions[1 : self.rounds + 1])


@dataclass(frozen=True)
class _WindowArrays:
    """What kernels read about windows: start, bits and first bucket; halves; the chunks each ends as (`_reduce`)."""

    table: Array
    halves: Array
    chunks: Array


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


class Msm:
    """Multi-scalar multiplication of one curve on one device."""

    def __init__(self, device: Device, curve: Curve) -> None:
        self._device, self._curve = device, curve
        self._digits = Module("digits", curve.name)
        self._inverse = Module("inverse", curve.name)
        self._rounds = {group: Module("rounds", curve.name, group.value) for group in Group}
        self._buckets = {group: Module("buckets", curve.name, group.value) for group in Group}
        self._window_arrays: dict[Windows, _WindowArrays] = {}

    def run(self, tables: Sequence[tuple[Group, Array]], scalars: Array, montgomery: bool) -> WindowSums:
        """sum scalars[i] * table[i] for every (group, points on the device), but for the end that is the host's. All
        tables have len(scalars) points."""
        clock, groups = self._device.clock, [group for group, _ in tables]
        with device_span(clock, "msm.sort", items=len(scalars)):
            buckets = self._sort(scalars, montgomery, weight_of(self._curve, groups))
        if buckets is None:
            return WindowSums(self._curve, groups, (), ())
        with device_span(clock, "msm.rounds", items=sum(buckets.additions[1 : buckets.rounds + 1])):
            sums = self._add_in_rounds(buckets, tables)
        with device_span(clock, "msm.reduce", items=buckets.windows.n_buckets):
            totals = [self._reduce(buckets, group, s) for group, s in zip(groups, sums, strict=True)]
        return WindowSums(self._curve, groups, buckets.windows.starts, [self._device.download(t) for t in totals])

    def bytes_needed(self, n: int, groups: Sequence[Group]) -> int:
        """An upper bound for the memory that `run` takes at a time for n scalars of full width."""
        windows = make_windows(self._curve, best_count(self._curve, n))
        entries, buckets, fp = n * len(windows.bits), windows.n_buckets, 8 * self._curve.fp_limbs
        lists = entries * (16 + 8) + buckets * 20
        sums = sum((entries + buckets) // 2 * 8 * self._curve.point_limbs(group) for group in groups)
        chunks = max(2 * buckets * 16 * self._curve.point_limbs(group) for group in groups)
        return lists + sums + max(entries // 2 * fp * 5 // 4, chunks) + (1 << 24)

    # ---- digits and buckets ----

    def _sort(self, scalars: Array, montgomery: bool, weight: float) -> Buckets | None:
        n = len(scalars)
        counters = self._device.zeros(MAX_ROUNDS + 3, "u4")
        n_wide, n_entries, totals = counters[0:1], counters[1:2], counters[2:]
        # Vectors in Montgomery form are polynomials, which have no short coefficients to speak of.
        wide = n if montgomery else self._count_wide(scalars, n_wide)
        windows = make_windows(self._curve, best_count(self._curve, wide))
        bound = wide * len(windows.bits) + (n - wide) * windows.covering(NARROW_BITS)
        keys, values, arrays = self._u32(bound), self._u32(bound), self._arrays(windows)
        self._launch(
            "make_entries", n,
            scalars, n, montgomery, arrays.table, len(windows.bits), arrays.halves, keys, values, n_entries,
        )  # fmt: skip
        found = int(self._device.download(n_entries)[0])
        if found == 0:
            return None
        keys, values = self._radix_sort(keys, values, found, (windows.n_buckets - 1).bit_length())
        ends = self._device.zeros(2 * windows.n_buckets, "u4")
        start, end = ends[: windows.n_buckets], ends[windows.n_buckets :]
        self._launch("find_buckets", found, keys, found, start, end)
        grid = min(blocks(windows.n_buckets, 256), 4 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_additions", grid, 256, start, end, windows.n_buckets, totals)
        additions = [int(x) for x in self._device.download(totals)]
        return Buckets(windows, keys, values, found, start, end, additions, weight)

    def _count_wide(self, scalars: Array, count: Array) -> int:
        grid = min(blocks(len(scalars), 256), 8 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_wide", grid, 256, scalars, len(scalars), False, count)
        return int(self._device.download(count)[0])

    def _arrays(self, windows: Windows) -> _WindowArrays:
        if windows not in self._window_arrays:
            rows = [(s, b, base, 0) for s, b, base in zip(windows.starts, windows.bits, windows.bases, strict=False)]
            counts = [1 << (bits - min(windows.bits)) for bits in windows.bits]
            chunks = [(sum(counts[:i]), count) for i, count in enumerate(counts)]
            self._window_arrays[windows] = _WindowArrays(
                *(self._device.upload(np.array(a, np.uint32)) for a in (rows, windows.halves, chunks))
            )
        return self._window_arrays[windows]

    def _radix_sort(self, keys: Array, values: Array, n: int, key_bits: int) -> tuple[Array, Array]:
        n_passes = max(1, -(-key_bits // 8))
        bits = -(-key_bits // n_passes)
        tiles = blocks(n, SORT_TILE)
        other_keys, other_values, counts = self._u32(n), self._u32(n), self._u32(tiles << bits)
        tile_sums = self._u32(blocks(tiles << bits, SCAN_TILE))
        for shift in range(0, bits * n_passes, bits):
            self._device.launch(self._digits, "sort_count", tiles, SORT_THREADS, keys, n, shift, bits, counts)
            self._prefix_sum(tiles << bits, counts, tile_sums, "sum_tiles", "scan_tiles", counts)
            self._device.launch(
                self._digits, "sort_scatter", tiles, SORT_THREADS,
                keys, values, n, shift, bits, counts, other_keys, other_values, shared=SORT_SHARED,
            )  # fmt: skip
            keys, values, other_keys, other_values = other_keys, other_values, keys, values
        return keys, values

    def _prefix_sum(
        self, n: int, out: Array, tile_sums: Array, sum_kernel: str, scan_kernel: str, *source: object
    ) -> None:
        tiles = blocks(n, SCAN_TILE)
        self._device.launch(self._digits, sum_kernel, tiles, 256, *source, n, tile_sums)
        self._device.launch(self._digits, "scan_sums", 1, 256, tile_sums, tiles)
        self._device.launch(self._digits, scan_kernel, tiles, 256, *source, n, tile_sums, out)

    # ---- rounds ----

    def _add_in_rounds(self, b: Buckets, tables: Sequence[tuple[Group, Array]]) -> list[Array]:
        n_buckets, n = b.windows.n_buckets, b.additions[1]
        n_sums = (b.n_entries + n_buckets) // 2 + 2
        sums = [self._device.empty((n_sums, self._curve.point_limbs(group)), "u8") for group, _ in tables]
        offsets, tile_sums = self._u32(n_buckets), self._u32(blocks(n_buckets, SCAN_TILE))
        first_list, list_buckets = self._u32(2 * n), self._u32(n)
        self._offsets(b, 1, offsets, tile_sums)
        self._launch(
            "list_first_round", b.n_entries, b.keys, b.n_entries, b.start, b.end, offsets, first_list, list_buckets
        )
        work = _RoundMemory(self, b.additions[1 : b.rounds + 1])
        for (group, points), out in zip(tables, sums, strict=True):
            module = self._rounds[group]
            self._device.launch(
                module, "copy_odd_entries", blocks(n_buckets, 128), 128,
                b.start, b.end, n_buckets, b.values, points, out,
            )  # fmt: skip
            work.run(module, "first", n, first_list, b.values, points, out)
        if b.rounds > 1:
            most = b.additions[2]
            later_list, next_buckets, next_offsets = self._u32(most), self._u32(most), self._u32(n_buckets)
        for r in range(1, b.rounds):
            n_next = b.additions[r + 1]
            self._offsets(b, r + 1, next_offsets, tile_sums)
            self._launch(
                "list_next_round", n,
                list_buckets, offsets, n, b.start, b.end, next_offsets, r, later_list, next_buckets,
            )  # fmt: skip
            for (group, _), out in zip(tables, sums, strict=True):
                work.run(self._rounds[group], "later", n_next, later_list, out, 1 << (r - 1))
            offsets, next_offsets = next_offsets, offsets
            list_buckets, next_buckets, n = next_buckets, list_buckets, n_next
        return sums

    def _offsets(self, b: Buckets, r: int, out: Array, tile_sums: Array) -> None:
        self._prefix_sum(b.windows.n_buckets, out, tile_sums, "sum_additions", "scan_additions", b.start, b.end, r)

    # ---- reduction ----

    def _reduce(self, b: Buckets, group: Group, sums: Array) -> Array:
        """The sums of the windows, on the device."""
        module = self._buckets[group]
        heavy, heavy_sums = self._sum_heavy(b, module, group, sums)
        log_window = min(b.windows.bits) - 1
        log_chunk = log_chunk_of(b.windows.n_buckets)
        n = b.windows.n_buckets >> log_chunk
        chunks, out = self._sums(group, 2 * n), self._sums(group, 3 * n // 2)
        self._device.launch(
            module, "reduce_buckets", blocks(n, 128), 128,
            b.start, b.end, heavy, b.rounds, sums, heavy_sums, 1 << log_chunk, n, chunks,
        )  # fmt: skip
        for levels in range(1, log_window - log_chunk + 1):
            n //= 2
            additions = (levels + 1) * n
            kernel, threads = "reduce_pairs", additions
            if additions <= QUAD_ADDITIONS * self._device.multiprocessors:
                kernel, threads = "reduce_pairs_by_quads", 4 * additions
            self._device.launch(module, kernel, blocks(threads, 128), 128, chunks, levels, n, out)
            chunks, out = out, chunks
        n_windows = len(b.windows.bits)
        totals = self._sums(group, n_windows)
        self._device.launch(
            module, "finish_windows", n_windows, 128,
            chunks, n, log_chunk, log_window, self._arrays(b.windows).chunks, totals,
            shared=32 * 8 * 2 * self._curve.point_limbs(group),
        )  # fmt: skip
        return totals

    def _sum_heavy(self, b: Buckets, module: Module, group: Group, sums: Array) -> tuple[Array, Array]:
        n_buckets = b.windows.n_buckets
        limit = max(HEAVY, 4 * b.left // n_buckets)
        max_heavy = b.left // (limit + 1) + 1
        max_slices = b.left // SLICE + max_heavy
        heavy, counts = self._u32(n_buckets), self._device.zeros(2, "u4")
        slices, heavy_buckets = self._u32(2 * max_slices), self._u32(2 * max_heavy)
        self._launch(
            "find_heavy", n_buckets,
            b.start, b.end, n_buckets, b.rounds, limit, SLICE, heavy, slices, heavy_buckets, counts,
        )  # fmt: skip
        slice_sums, heavy_sums = self._sums(group, max_slices), self._sums(group, max_heavy)
        shared = 64 * 8 * 2 * self._curve.point_limbs(group)
        grid = 8 * self._device.multiprocessors
        self._device.launch(
            module, "sum_slices", min(grid, max_slices), 64,
            b.start, b.end, b.rounds, sums, slices, counts, SLICE, slice_sums, shared=shared,
        )  # fmt: skip
        self._device.launch(
            module, "sum_heavy", min(grid, max_heavy), 64, slice_sums, heavy_buckets, counts, heavy_sums, shared=shared
        )
        return heavy, heavy_sums

    # ---- memory and launches ----

    def _u32(self, n: int) -> Array:
        return self._device.empty(max(n, 1), "u4")

    def _sums(self, group: Group, n: int) -> Array:
        return self._device.empty((max(n, 1), 2 * self._curve.point_limbs(group)), "u8")

    def _launch(self, kernel: str, threads: int, *arguments: object) -> None:
        self._device.launch(self._digits, kernel, blocks(threads, 256), 256, *arguments)


class _RoundMemory:
    """What the rounds of one run use: prefixes, products of the denominators, scratch for their inversion."""

    def __init__(self, msm: Msm, additions: Sequence[int]) -> None:
        self._device, self._inverse, self._limbs = msm._device, msm._inverse, msm._curve.fp_limbs
        threads = [self._threads(n) for n in additions]  # not always falling: a wave of few threads is cut finer
        self._prefixes = self._device.empty(max(1, *additions) * self._limbs, "u8")
        self._products = self._device.empty(max(1, *threads) * self._limbs, "u8")
        self._scratch = self._device.empty(max(scratch_elements(t) for t in threads) * self._limbs, "u8")

    def _threads(self, n: int) -> int:
        """Threads for n additions: 16 or 32 additions each, in whole waves of the threads that are resident."""
        resident, per_thread = 512 * self._device.multiprocessors, 32 if n >= 1 << 25 else 16
        waves = -(-n // (resident * per_thread)) or 1
        return -(-n // max(4, -(-n // (resident * waves))))

    def run(self, module: Module, which: str, n: int, *operands: object) -> None:
        """One round of n additions."""
        if n == 0:
            return
        threads = self._threads(n)
        grid = blocks(threads, 128)
        products = self._products[: threads * self._limbs]
        launch: Callable[..., None] = self._device.launch
        launch(module, f"{which}_denominators", grid, 128, *operands, n, threads, self._prefixes, products)
        invert_planes(self._device, self._inverse, products, threads, self._limbs, self._scratch)
        launch(module, f"{which}_additions", grid, 128, *operands, n, threads, self._prefixes, products)
