"""The memory plan: what stays on the device, in how many pieces, and that the peak is an upper bound."""

from __future__ import annotations

import pytest

from snarkline.backend.base import Sum, Workload
from snarkline.backend.cuda.plan import MIN_SLICE, MemoryPlan, plan_memory
from snarkline.curves.curve import BLS12_381, BN254, Curve, Group
from snarkline.errors import BudgetError

GIB = 1 << 30


def workload(curve: Curve, log_n: int) -> Workload:
    n = 1 << log_n
    sums = (Sum((Group.G1, Group.G1, Group.G2), n), Sum((Group.G1,), n), Sum((Group.G1,), n))
    return Workload(curve, n, n, sums, n_entries=(3 * n, n, n))


def sum_bytes(n: int, groups: object) -> int:
    return n * 1500


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_less_memory_means_more_pieces_then_streamed_tables_then_streamed_matrices(curve: Curve) -> None:
    work, seen = workload(curve, 20), []
    budget = 64 * GIB
    while True:
        try:
            plan = plan_memory(work, budget, sum_bytes)
        except BudgetError as error:
            assert error.budget_bytes == budget < error.asked_bytes
            break
        assert plan.peak_bytes <= budget
        if plan not in seen:
            seen.append(plan)
        budget = budget * 15 // 16
    assert seen[0] == MemoryPlan(True, True, 1 << 20, seen[0].peak_bytes)
    stages = [(not p.keep_tables, not p.keep_matrices, -p.slice_points) for p in seen]
    assert stages == sorted(stages), "what is fast is given up last"
    assert [p.peak_bytes for p in seen] == sorted((p.peak_bytes for p in seen), reverse=True)
    assert {(p.keep_tables, p.keep_matrices) for p in seen} == {(True, True), (False, True), (False, False)}


def test_pieces_have_a_least_size() -> None:
    work = workload(BN254, 14)
    with pytest.raises(BudgetError) as caught:
        plan_memory(work, 1, sum_bytes)
    assert plan_memory(work, caught.value.asked_bytes, sum_bytes).slice_points == MIN_SLICE


def test_the_smallest_circuit_has_a_plan() -> None:
    work = Workload(BN254, 1, 2, (Sum((Group.G1,), 1),), n_entries=(1, 1))
    assert plan_memory(work, GIB, sum_bytes).slice_points == 1
