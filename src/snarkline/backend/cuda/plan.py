"""What of a proof stays on the device, and in how many pieces its sums are taken, from sizes alone.

The peak is computed before anything is uploaded. Where the budget is small, sums are taken in pieces; then the tables
of points are streamed from the host, a slice ahead; then each matrix is there only while it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from snarkline.backend.base import Sum, Workload
from snarkline.backend.cuda.structured import SUMS_AT_ONCE
from snarkline.curves.curve import Group
from snarkline.errors import BudgetError

MIN_SLICE = 1 << 12
"""The fewest points of a piece of a sum."""
FIXED_BYTES = 64 << 20
"""Constants, counters, and what the steps of a sum round up."""
MAX_RESIDENT_PIECES = 8
"""In more pieces than these, sums over resident tables take longer than whole sums over streamed ones."""

SumBytes = Callable[[int, Sequence[Group]], int]
"""Bytes that a sum takes besides points and scalars: `Msm.bytes_needed`."""


@dataclass(frozen=True)
class MemoryPlan:
    """`slice_points`: of a piece of a sum at most. `peak_bytes`: in use at a time at most."""

    keep_tables: bool
    keep_matrices: bool
    slice_points: int
    peak_bytes: int


def plan_memory(work: Workload, budget: int, sum_bytes: SumBytes) -> MemoryPlan:
    """The fastest plan within `budget` bytes. Raises BudgetError, with the least that would do."""
    largest = work.largest_sum
    plan = None
    for keep_tables, keep_matrices in ((True, True), (False, True), (False, False)):
        pieces, slice_points = 1, largest
        while pieces == 1 or (slice_points >= MIN_SLICE and (pieces <= MAX_RESIDENT_PIECES or not keep_tables)):
            peak = peak_bytes(work, sum_bytes, slice_points, keep_tables=keep_tables, keep_matrices=keep_matrices)
            plan = MemoryPlan(keep_tables, keep_matrices, slice_points, peak)
            if peak <= budget:
                return plan
            pieces *= 2
            slice_points = -(-largest // pieces)
    assert plan is not None
    raise BudgetError(plan.peak_bytes, budget, "the least device memory that a proof of this circuit takes")


def peak_bytes(
    work: Workload, sum_bytes: SumBytes, slice_points: int, *, keep_tables: bool, keep_matrices: bool
) -> int:
    """An upper bound of what is in use at a time."""
    vector, wires = 8 * work.curve.fr_limbs * work.domain_size, 8 * work.curve.fr_limbs * work.n_wires
    matrices = [8 * n_entries + 8 * work.domain_size for n_entries in work.n_entries] or [work.structure_bytes]
    packed = work.packed_bytes and work.packed_bytes + SUMS_AT_ONCE * 8 * work.curve.fr_limbs
    # The factors of the transforms there and back are as many as the domain has elements.
    kept = FIXED_BYTES + 2 * vector
    kept += sum(table_bytes(work, s) for s in work.sums) if keep_tables else 0
    kept += sum(matrices) if keep_matrices else 0
    quotient = wires + 3 * vector + (0 if keep_matrices else max(matrices)) + packed
    # Sums over tables that are on the device are begun together, those over others one by one.
    selected = [8 * work.curve.fr_limbs * s.n_points for s in work.sums]
    sums = max(_sum_peak(work, s, sum_bytes, slice_points, streamed=not keep_tables) for s in work.sums)
    sums += sum(selected) if keep_tables else max(selected)
    # A witness that was made on the device stays until the sums are done.
    peak = kept + max(quotient, wires + vector + work.packed_bytes + sums)
    return peak + peak // 16  # blocks may be larger than what is asked for


def table_bytes(work: Workload, s: Sum) -> int:
    """Of all tables of a sum."""
    return s.n_points * _point_bytes(work, s)


def _sum_peak(work: Workload, s: Sum, sum_bytes: SumBytes, slice_points: int, *, streamed: bool) -> int:
    n = min(s.n_points, slice_points)
    slices = (0 if not streamed else 1 if n == s.n_points else 2) * n * _point_bytes(work, s)
    return sum_bytes(n, s.groups) + slices


def _point_bytes(work: Workload, s: Sum) -> int:
    return sum(8 * work.curve.point_limbs(group) for group in s.groups)
