"""What of a proof stays on the device, and in how many pieces its sums are taken, from sizes alone.

The peak is computed before anything is uploaded. Where the budget is small, the tables of a sum are taken one after the
other; then sums are taken in pieces; then the tables of points are streamed from the host, a slice ahead; then each
matrix is there only while it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from snarkline.backend.base import Sum, Workload
from snarkline.backend.cuda.structured import SUMS_AT_ONCE
from snarkline.curves.curve import Group
from snarkline.errors import BudgetError

MIN_SLICE = 1 << 12
"""The fewest points of a piece of a sum."""
FIXED_BYTES = 16 << 20
"""Constants, counters, and what the steps of a sum round up."""
MAX_RESIDENT_PIECES, MAX_PIECES_BESIDE_MATRICES = 4, 16
"""In more pieces than these, sums take longer than larger pieces of tables that are streamed, or than matrices that are
uploaded again."""

SumBytes = Callable[[int, Sequence[Group]], int]
"""Bytes that a sum takes besides points and scalars: `Msm.bytes_needed`."""


@dataclass(frozen=True)
class MemoryPlan:
    """`slice_points`: of a piece of a sum at most. `peak_bytes`: in use at a time at most. `side_by_side`: whether the
    tables of a sum are added up together, or one after the other. `sums_at_once`: for how many there is room. Without
    `keep_matrices` the factors of transforms are not kept either."""

    keep_tables: bool
    keep_matrices: bool
    slice_points: int
    peak_bytes: int
    side_by_side: bool = True
    sums_at_once: int = 2

    def best_for(self, work: Workload) -> bool:
        """Whether no memory would make the proof faster."""
        return self.sums_at_once == 2 and self.slice_points >= work.largest_sum


def plan_memory(work: Workload, budget: int, sum_bytes: SumBytes) -> MemoryPlan:
    """The fastest plan within `budget` bytes. Raises BudgetError, with the least that would do."""
    plan = None
    for choice in _choices(work.largest_sum):
        plan = replace(choice, peak_bytes=peak_bytes(work, sum_bytes, choice))
        if plan.peak_bytes <= budget:
            return plan
    assert plan is not None
    raise BudgetError(plan.peak_bytes, budget, "the least device memory that a proof of this circuit takes")


def _choices(largest: int) -> Iterator[MemoryPlan]:
    """All plans for sums of up to `largest` points, the fastest first, the peak not yet known."""
    yield MemoryPlan(True, True, largest, 0)
    yield MemoryPlan(True, True, largest, 0, sums_at_once=1)
    for keep_tables, keep_matrices, most in (
        (True, True, MAX_RESIDENT_PIECES), (False, True, MAX_PIECES_BESIDE_MATRICES), (False, False, largest),
    ):  # fmt: skip
        pieces, slice_points = 1, largest
        while pieces == 1 or (pieces <= most and slice_points >= MIN_SLICE):
            yield MemoryPlan(keep_tables, keep_matrices, slice_points, 0, side_by_side=False, sums_at_once=1)
            pieces += 1 + pieces // 8
            slice_points = -(-largest // pieces)


def peak_bytes(work: Workload, sum_bytes: SumBytes, plan: MemoryPlan) -> int:
    """An upper bound of what is in use at a time."""
    vector, wires = 8 * work.curve.fr_limbs * work.domain_size, 8 * work.curve.fr_limbs * work.n_wires
    matrices = [8 * n_entries + 8 * work.domain_size for n_entries in work.n_entries] or [work.structure_bytes]
    packed = work.packed_bytes and work.packed_bytes + SUMS_AT_ONCE * 8 * work.curve.fr_limbs
    factors = 2 * vector  # of the transforms there and back
    tables = sum(table_bytes(work, s) for s in work.sums) if plan.keep_tables else 0
    quotient = wires + 3 * vector + packed + factors + (sum(matrices) if plan.keep_matrices else max(matrices))
    # Sums over tables that are on the device are begun together, those over others one by one.
    selected = [8 * work.curve.fr_limbs * s.n_points for s in work.sums]
    sums = sum(sorted(_sum_peak(work, s, sum_bytes, plan) for s in work.sums)[-plan.sums_at_once :])
    sums += sum(selected) if plan.keep_tables else max(selected)
    sums += factors + sum(matrices) if plan.keep_matrices else 0
    # A witness that was made on the device stays until the sums are done.
    peak = FIXED_BYTES + tables + max(quotient, wires + vector + work.packed_bytes + sums)
    return peak + peak // 16  # blocks may be larger than what is asked for


def table_bytes(work: Workload, s: Sum) -> int:
    """Of all tables of a sum."""
    return s.n_points * sum(_point_bytes(work, group) for group in s.groups)


def _sum_peak(work: Workload, s: Sum, sum_bytes: SumBytes, plan: MemoryPlan) -> int:
    n = min(s.n_points, plan.slice_points)
    together = [s.groups] if plan.side_by_side else [(group,) for group in s.groups]
    streamed = 0 if plan.keep_tables else 2 * n * max(_point_bytes(work, group) for group in s.groups)
    return max(sum_bytes(n, groups) for groups in together) + streamed


def _point_bytes(work: Workload, group: Group) -> int:
    return 8 * work.curve.point_limbs(group)
