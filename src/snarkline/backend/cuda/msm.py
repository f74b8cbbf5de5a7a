"""Multi-scalar multiplication on the device: digits, sort, rounds of affine additions, reduction of the buckets.

The kernels and their reasons are in csrc/device/{digits,rounds,buckets}.cu. Tables that share their scalars share the
digits, the sort and the lists of additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.inverse import invert_planes, scratch_elements
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.windows import Windows, best_count, make_windows
from snarkline.curves.curve import Curve, Group
from snarkline.curves.pairing import fold_windows
from snarkline.curves.point import Point
from snarkline.trace import device_span

SORT_TILE = SCAN_TILE = 4096
MAX_ROUNDS = 27
MIN_ADDITIONS = 200_000
"""A round of fewer additions takes longer than they do in XYZZ coordinates: its one inversion is 0.16 ms."""
HEAVY = 16
"""More points than these left in one bucket are summed by whole blocks, in slices."""
SLICE = 512
NARROW_BITS = 32


def log_chunk_of(n_buckets: int) -> int:
    """Buckets that one thread adds by running sums: many where there are threads enough, two where latency counts."""
    return max(1, min(4, n_buckets.bit_length() - 17))


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

    @property
    def rounds(self) -> int:
        """How many rounds pay."""
        rounds = 1
        while rounds + 1 < MAX_ROUNDS and self.additions[rounds + 1] >= MIN_ADDITIONS:
            rounds += 1
        return rounds

    @property
    def left(self) -> int:
        """Points in all buckets after the rounds: each addition takes one away."""
        return self.n_entries - sum(self.additions[1 : self.rounds + 1])


class Msm:
    """Multi-scalar multiplication of one curve on one device."""

    def __init__(self, device: Device, curve: Curve) -> None:
        self._device, self._curve = device, curve
        self._digits = Module("digits", curve.name)
        self._inverse = Module("inverse", curve.name)
        self._window_arrays: dict[Windows, tuple[Array, Array]] = {}

    def run(self, tables: Sequence[tuple[Group, Array]], scalars: Array, montgomery: bool) -> list[Point]:
        """sum scalars[i] * table[i] for every (group, points on the device); all have len(scalars) points."""
        clock = self._device.clock
        with device_span(clock, "msm.sort", items=len(scalars)):
            buckets = self._sort(scalars, montgomery)
        if buckets is None:
            return [Point.infinity(self._curve, group) for group, _ in tables]
        with device_span(clock, "msm.rounds", items=sum(buckets.additions[1 : buckets.rounds + 1])):
            sums = self._add_in_rounds(buckets, tables)
        with device_span(clock, "msm.reduce", items=buckets.windows.n_buckets):
            windows = [self._reduce(buckets, group, s) for (group, _), s in zip(tables, sums, strict=True)]
        return [
            fold_windows(self._curve, group, self._device.download(w), buckets.windows.starts)
            for (group, _), w in zip(tables, windows, strict=True)
        ]

    def bytes_needed(self, n: int, groups: Sequence[Group]) -> int:
        """An upper bound for the memory that `run` takes at a time for n scalars of full width."""
        windows = make_windows(self._curve, best_count(self._curve, n))
        entries, buckets, fp = n * len(windows.bits), windows.n_buckets, 8 * self._curve.fp_limbs
        lists = entries * (16 + 8) + buckets * 20
        sums = sum((entries + buckets) // 2 * 8 * self._curve.point_limbs(group) for group in groups)
        chunks = max(2 * buckets * 16 * self._curve.point_limbs(group) for group in groups)
        return lists + sums + max(entries // 2 * fp * 5 // 4, chunks) + (1 << 24)

    # ---- digits and buckets ----

    def _sort(self, scalars: Array, montgomery: bool) -> Buckets | None:
        n = len(scalars)
        # Vectors in Montgomery form are polynomials, which have no short coefficients to speak of.
        wide = n if montgomery else self._count_wide(scalars)
        windows = make_windows(self._curve, best_count(self._curve, wide))
        bound = wide * len(windows.bits) + (n - wide) * windows.covering(NARROW_BITS)
        keys, values, count = self._u32(bound), self._u32(bound), self._device.zeros(1, "u4")
        table, halves = self._arrays(windows)
        self._launch("make_entries", n, scalars, n, montgomery, table, len(windows.bits), halves, keys, values, count)
        n_entries = int(self._device.download(count)[0])
        if n_entries == 0:
            return None
        keys, values = self._radix_sort(keys, values, n_entries, (windows.n_buckets - 1).bit_length())
        start, end = (self._device.zeros(windows.n_buckets, "u4") for _ in range(2))
        self._launch("find_buckets", n_entries, keys, n_entries, start, end)
        totals = self._device.zeros(MAX_ROUNDS + 1, "u4")
        grid = min(blocks(windows.n_buckets, 256), 4 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_additions", grid, 256, start, end, windows.n_buckets, totals)
        additions = [int(x) for x in self._device.download(totals)]
        return Buckets(windows, keys, values, n_entries, start, end, additions)

    def _count_wide(self, scalars: Array) -> int:
        count = self._device.zeros(1, "u4")
        grid = min(blocks(len(scalars), 256), 8 * self._device.multiprocessors)
        self._device.launch(self._digits, "count_wide", grid, 256, scalars, len(scalars), False, count)
        return int(self._device.download(count)[0])

    def _arrays(self, windows: Windows) -> tuple[Array, Array]:
        if windows not in self._window_arrays:
            rows = [(s, b, base, 0) for s, b, base in zip(windows.starts, windows.bits, windows.bases, strict=False)]
            arrays = (np.array(rows, np.uint32), np.array(windows.halves, np.uint32))
            self._window_arrays[windows] = (self._device.upload(arrays[0]), self._device.upload(arrays[1]))
        return self._window_arrays[windows]

    def _radix_sort(self, keys: Array, values: Array, n: int, key_bits: int) -> tuple[Array, Array]:
        n_passes = max(1, -(-key_bits // 8))
        bits = -(-key_bits // n_passes)
        tiles = blocks(n, SORT_TILE)
        other_keys, other_values, counts = self._u32(n), self._u32(n), self._u32(tiles << bits)
        for shift in range(0, bits * n_passes, bits):
            self._device.launch(self._digits, "sort_count", tiles, 256, keys, n, shift, bits, counts)
            self._prefix_sum(tiles << bits, counts, "sum_tiles", "scan_tiles", counts)
            self._device.launch(
                self._digits, "sort_scatter", tiles, 256,
                keys, values, n, shift, bits, counts, other_keys, other_values,
            )  # fmt: skip
            keys, values, other_keys, other_values = other_keys, other_values, keys, values
        return keys, values

    def _prefix_sum(self, n: int, out: Array, sum_kernel: str, scan_kernel: str, *source: object) -> None:
        tiles = blocks(n, SCAN_TILE)
        sums = self._u32(tiles)
        self._device.launch(self._digits, sum_kernel, tiles, 256, *source, n, sums)
        self._device.launch(self._digits, "scan_sums", 1, 256, sums, tiles)
        self._device.launch(self._digits, scan_kernel, tiles, 256, *source, n, sums, out)

    # ---- rounds ----

    def _add_in_rounds(self, b: Buckets, tables: Sequence[tuple[Group, Array]]) -> list[Array]:
        n_sums = (b.n_entries + b.windows.n_buckets) // 2 + 2
        sums = [self._device.empty((n_sums, self._curve.point_limbs(group)), "u8") for group, _ in tables]
        offsets, next_offsets = self._u32(b.windows.n_buckets), self._u32(b.windows.n_buckets)
        n = b.additions[1]
        first_list, list_buckets = self._u32(2 * n), self._u32(n)
        self._offsets(b, 1, offsets)
        self._launch(
            "list_first_round", b.n_entries, b.keys, b.n_entries, b.start, b.end, offsets, first_list, list_buckets
        )
        work = _RoundMemory(self, b.additions[1 : b.rounds + 1])
        for (group, points), out in zip(tables, sums, strict=True):
            module = Module("rounds", self._curve.name, group.value)
            self._device.launch(
                module, "copy_odd_entries", blocks(b.windows.n_buckets, 128), 128,
                b.start, b.end, b.windows.n_buckets, b.values, points, out,
            )  # fmt: skip
            work.run(module, "first", n, first_list, b.values, points, out)
        del first_list
        for r in range(1, b.rounds):
            n_next = b.additions[r + 1]
            later_list, next_buckets = self._u32(n_next), self._u32(n_next)
            self._offsets(b, r + 1, next_offsets)
            self._launch(
                "list_next_round", n,
                list_buckets, offsets, n, b.start, b.end, next_offsets, r, later_list, next_buckets,
            )  # fmt: skip
            for (group, _), out in zip(tables, sums, strict=True):
                work.run(
                    Module("rounds", self._curve.name, group.value), "later", n_next, later_list, out, 1 << (r - 1)
                )
            offsets, next_offsets, list_buckets, n = next_offsets, offsets, next_buckets, n_next
        return sums

    def _offsets(self, b: Buckets, r: int, out: Array) -> None:
        self._prefix_sum(b.windows.n_buckets, out, "sum_additions", "scan_additions", b.start, b.end, r)

    # ---- reduction ----

    def _reduce(self, b: Buckets, group: Group, sums: Array) -> Array:
        """The sums of the windows, on the device."""
        module = Module("buckets", self._curve.name, group.value)
        heavy, heavy_sums = self._sum_heavy(b, module, group, sums)
        log_window = min(b.windows.bits) - 1
        log_chunk = log_chunk_of(b.windows.n_buckets)
        n = b.windows.n_buckets >> log_chunk
        chunks = self._sums(group, 2 * n)
        self._device.launch(
            module, "reduce_buckets", blocks(n, 128), 128,
            b.start, b.end, heavy, b.rounds, sums, heavy_sums, 1 << log_chunk, n, chunks,
        )  # fmt: skip
        for levels in range(1, log_window - log_chunk + 1):
            n //= 2
            out = self._sums(group, (levels + 2) * n)
            self._device.launch(module, "reduce_pairs", blocks((levels + 1) * n, 128), 128, chunks, levels, n, out)
            chunks = out
        counts = [1 << (bits - 1 - log_window) for bits in b.windows.bits]
        ranges = [(sum(counts[:i]), count) for i, count in enumerate(counts)]
        out = self._sums(group, len(ranges))
        windows = self._device.upload(np.array(ranges, np.uint32))
        self._device.launch(
            module, "finish_windows", len(ranges), 64, chunks, n, log_chunk, log_window, windows, out,
            shared=32 * 8 * 2 * self._curve.point_limbs(group),
        )  # fmt: skip
        return out

    def _sum_heavy(self, b: Buckets, module: Module, group: Group, sums: Array) -> tuple[Array, Array]:
        n_buckets, max_heavy = b.windows.n_buckets, b.left // (HEAVY + 1) + 1
        max_slices = b.left // SLICE + max_heavy
        heavy, counts = self._u32(n_buckets), self._device.zeros(2, "u4")
        slices, heavy_buckets = self._u32(2 * max_slices), self._u32(2 * max_heavy)
        self._launch(
            "find_heavy", n_buckets,
            b.start, b.end, n_buckets, b.rounds, HEAVY, SLICE, heavy, slices, heavy_buckets, counts,
        )  # fmt: skip
        slice_sums, heavy_sums = self._sums(group, max_slices), self._sums(group, max_heavy)
        shared = 32 * 8 * 2 * self._curve.point_limbs(group)
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
