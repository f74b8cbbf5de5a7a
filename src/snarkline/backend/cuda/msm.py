"""Multi-scalar multiplication on the device: digits, sort, rounds of affine additions, reduction of the buckets.

The kernels and their reasons are in csrc/device/{digits,rounds,buckets}.cu. Tables that share their scalars share the
digits, the sort and the lists of additions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from snarkline.backend.cuda.buckets import MAX_ROUNDS, Scans, Sorted, Sorter
from snarkline.backend.cuda.device import Argument, Array, Device, Reading, blocks
from snarkline.backend.cuda.digits import Lengths
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.rounds import RoundMemory
from snarkline.backend.cuda.windows import Windows, WindowSums, best_count, make_windows
from snarkline.curves.curve import Curve, Group
from snarkline.trace import DeviceClock, current_span, device_span, span

LIST_ENTRIES = 512
"""Entries whose additions of the first round one warp lists."""
MIN_ADDITIONS = 200_000
"""A round of fewer additions in G1 over 381 bits takes longer than they do in XYZZ coordinates: its one inversion and
its lists are 0.1 ms whatever the number. Divided by the weight of the additions (`weight_of`)."""
HEAVY = 16
"""More points than these left in one bucket, and than 4 times the mean, are summed by whole blocks, in slices."""
SLICE = 512
QUAD_ADDITIONS = 512
"""Up to so many additions a multiprocessor are done by four threads each."""


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
    values: Array
    n_entries: int
    start: Array
    end: Array
    scans: Scans
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


class Msm:
    """Multi-scalar multiplication of one curve on one device."""

    def __init__(self, device: Device, curve: Curve) -> None:
        self._device, self._curve = device, curve
        self._digits = Module("digits", curve.name)
        self._inverse = Module("inverse", curve.name)
        self._rounds = {group: Module("rounds", curve.name, group.value) for group in Group}
        self._buckets = {group: Module("buckets", curve.name, group.value) for group in Group}
        self.sorter = Sorter(device, curve)

    @property
    def curve(self) -> Curve:
        return self._curve

    @property
    def clock(self) -> DeviceClock:
        return self._device.clock

    def begin(
        self,
        groups: Sequence[Group],
        tables: Iterable[Array],
        scalars: Array,
        montgomery: bool,
        *,
        side_by_side: bool = True,
    ) -> RunningSum:
        """sum scalars[i] * table[i] for every table, of len(scalars) points on the device. They are added up
        `side_by_side`, or one after the other, which takes less memory; then they are asked for one by one too."""
        return RunningSum(self, groups, tables, scalars, montgomery, side_by_side)

    def run(self, tables: Sequence[tuple[Group, Array]], scalars: Array, montgomery: bool) -> WindowSums:
        """The same, but for the end that is the host's."""
        groups, points = [group for group, _ in tables], [points for _, points in tables]
        sums = self.begin(groups, points, scalars, montgomery).window_sums()
        self._device.join()
        return sums

    def add(self, b: Buckets, tables: Sequence[tuple[Group, Array]], under: span | None) -> list[Reading]:
        """For each table the sums of its windows, on their way to the host."""
        with device_span(self._device.clock, "msm.rounds", under=under, items=sum(b.additions[1 : b.rounds + 1])):
            sums = self._add_in_rounds(b, tables)
        self._device.join()
        return self._device.beside(
            [partial(self._end, b, group, s, under) for (group, _), s in zip(tables, sums, strict=True)]
        )

    def add_one(self, b: Buckets, table: tuple[Group, Array], under: span | None) -> Reading:
        """The same for one table, with nothing beside."""
        self._device.join()
        with device_span(self._device.clock, "msm.rounds", under=under, items=sum(b.additions[1 : b.rounds + 1])):
            (sums,) = self._add_in_rounds(b, [table])
        return self._end(b, table[0], sums, under)

    def _end(self, b: Buckets, group: Group, sums: Array, under: span | None) -> Reading:
        with device_span(self._device.clock, "msm.reduce", under=under, items=b.windows.n_buckets):
            return self._device.download_later([self._reduce(b, group, sums)])

    def bytes_needed(self, n: int, groups: Sequence[Group]) -> int:
        """An upper bound for the memory that `run` takes at a time for n scalars of full width."""
        windows = make_windows(self._curve, best_count(self._curve, n))
        entries, buckets, fp = n * len(windows.bits), windows.n_buckets, 8 * self._curve.fp_limbs
        lists = entries * (8 + 8) + buckets * 36  # with the sorted entries of the next sum, or its sort
        sums = sum((entries + buckets) // 2 * 8 * self._curve.point_limbs(group) for group in groups)
        rounds = entries // 2 * fp * 5 // 4 + sum(entries * self._curve.point_limbs(group) for group in groups)
        chunks = 7 * (buckets >> log_chunk_of(buckets)) // 2
        chunks += buckets // 2 + entries // SLICE  # sums of heavy buckets and of their slices
        ends = sum(chunks * 16 * self._curve.point_limbs(group) for group in groups)
        return lists + sums + max(rounds, ends) + (1 << 24)

    # ---- rounds ----

    def _add_in_rounds(self, b: Buckets, tables: Sequence[tuple[Group, Array]]) -> list[Array]:
        n_buckets, n = b.windows.n_buckets, b.additions[1]
        n_sums = (b.n_entries + n_buckets) // 2 + 2
        sums = [self._device.empty((n_sums, self._curve.point_limbs(group)), "u8") for group, _ in tables]
        offsets = self._u32(n_buckets)
        operands, places = self._u32(2 * n), self._u32(n)
        self._offsets(b, 1, offsets)
        self._list(b, "list_first_round", 1, b.values, b.n_entries, b.start, b.end, n_buckets, offsets,
                   int(b.rounds == 1), operands, places)  # fmt: skip
        work = RoundMemory(
            self._device, self._inverse, self._curve, b.additions[1 : b.rounds + 1], [group for group, _ in tables]
        )
        for i, ((group, points), out) in enumerate(zip(tables, sums, strict=True)):
            module = self._rounds[group]
            self._device.launch(
                module, "copy_odd_entries", blocks(n_buckets, 128), 128,
                b.start, b.end, n_buckets, b.values, points, out,
            )  # fmt: skip
            work.first(module, i, n, operands, places, points, out)
        del operands
        if b.rounds > 1:
            sources, next_offsets = self._u32(b.additions[2]), self._u32(n_buckets)
        for r in range(2, b.rounds + 1):
            n_before, n = n, b.additions[r]
            self._offsets(b, r, next_offsets)
            self._list(b, "list_later_round", r, b.n_entries, b.start, b.end, n_buckets, next_offsets,
                       offsets, r, int(r == b.rounds), places, sources)  # fmt: skip
            for i, ((group, _), out) in enumerate(zip(tables, sums, strict=True)):
                work.later(self._rounds[group], i, n, n_before, places, out, 1 << (r - 2), sources)
            offsets, next_offsets = next_offsets, offsets
        return sums

    def _list(self, b: Buckets, kernel: str, r: int, *arguments: Argument) -> None:
        warps = blocks(b.n_entries, LIST_ENTRIES << (r - 1))
        self._launch(kernel, 32 * warps, *arguments)

    def _offsets(self, b: Buckets, r: int, out: Array) -> None:
        b.scans.launch("scan_additions", b.windows.n_buckets, [b.start, b.end, r], out)

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
            chunks, n, log_chunk, log_window, self.sorter.arrays(b.windows).chunks, totals,
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

    def _launch(self, kernel: str, threads: int, *arguments: Argument) -> None:
        self._device.launch(self._digits, kernel, blocks(threads, 256), 256, *arguments)


class RunningSum:
    """A sum on its way through the device. Each step makes those before it, where they are not yet made: `count` only
    queues work, `sort` waits for what `count` has found, `add` for what `sort` has, `window_sums` for the result."""

    def __init__(
        self,
        msm: Msm,
        groups: Sequence[Group],
        tables: Iterable[Array],
        scalars: Array,
        montgomery: bool,
        side_by_side: bool,
    ) -> None:
        self._msm, self._groups, self._tables, self._scalars = msm, groups, tables, scalars
        self._montgomery, self._side_by_side = montgomery, side_by_side
        self._under = current_span()
        self._counting: Reading | None = None
        self._lengths: Lengths | None = None
        self._sorted: Sorted | None = None
        self._starts: Sequence[int] = ()
        self._totals: list[Reading] = []
        self.added = False

    def __len__(self) -> int:
        return len(self._scalars)

    @property
    def counted(self) -> bool:
        """Whether `sort` has anything to wait for."""
        return not self._montgomery

    @property
    def rank(self) -> tuple[float, bool]:
        """Sums are added up in this order: those with most additions first."""
        return -len(self._groups) * weight_of(self._msm.curve, self._groups), self.counted

    @property
    def bytes_needed(self) -> int:
        """An upper bound for the memory that `add` takes."""
        together = [self._groups] if self._side_by_side else [[group] for group in self._groups]
        return max(self._msm.bytes_needed(len(self), groups) for groups in together)

    def count(self) -> None:
        if self._montgomery:  # polynomials, which have no short coefficients to speak of
            self._lengths = Lengths(len(self), 0, 0)
        elif self._counting is None and self._lengths is None:
            with self._span("msm.count"):
                self._counting = self._msm.sorter.count(self._scalars)

    def sort(self) -> None:
        if self._sorted is not None or self.added:
            return
        self.count()
        if self._counting is not None:
            (counts,) = self._counting.wait()
            self._counting, self._lengths = None, Lengths(*(int(x) for x in counts))
        assert self._lengths is not None
        if self._lengths.any():
            with self._span("msm.sort"):
                self._sorted = self._msm.sorter.sort(self._scalars, self._montgomery, self._lengths)

    def add(self) -> None:
        if self.added:
            return
        self.sort()
        buckets = self._counted()
        if buckets is not None:
            self._starts = buckets.windows.starts
            tables = zip(self._groups, self._tables, strict=False)
            if self._side_by_side:
                self._totals = self._msm.add(buckets, list(tables), self._under)
            else:
                self._totals = [self._msm.add_one(buckets, table, self._under) for table in tables]
        self._sorted, self._tables, self._scalars = None, [], None
        self.added = True

    def window_sums(self) -> WindowSums:
        """May be called once."""
        self.add()
        sums = [sums for reading in self._totals for sums in reading.wait()]
        self._totals = []
        return WindowSums(self._msm.curve, self._groups, self._starts, sums)

    def ready(self) -> bool:
        """Whether `window_sums` has nothing to wait for."""
        return self.added and all(reading.ready() for reading in self._totals)

    def rewind(self) -> None:
        """Gives back the memory of the sort."""
        self._sorted = None

    def halves(self) -> list[RunningSum]:
        """Two sums whose sum this one is."""
        middle = len(self) // 2
        return [
            self._msm.begin(
                self._groups,
                [points[part] for points in self._tables],
                self._scalars[part],
                self._montgomery,
                side_by_side=self._side_by_side,
            )
            for part in (slice(middle), slice(middle, None))
        ]

    def _counted(self) -> Buckets | None:
        """The sorted entries with their counts, None if there are none."""
        there = self._sorted
        if there is None:
            return None
        (counts,) = there.counts.wait()
        n_entries, *additions = (int(x) for x in counts[: MAX_ROUNDS + 2])
        if n_entries == 0:
            return None
        weight = weight_of(self._msm.curve, self._groups)
        return Buckets(there.windows, there.values, n_entries, there.start, there.end, there.scans, additions, weight)

    def _span(self, name: str) -> AbstractContextManager[object]:
        return device_span(self._msm.clock, name, under=self._under, items=len(self))
