"""What a proof on the CPU holds in resident memory, and how it stays within a cap.

A proof's memory peaks twice: in the quotient, with three vectors of the domain's size, and in a sum over a query, with
the query's points (pages of the key where it is mapped), two half-length scalars for each of them, and the sorted
digits and buckets of some windows. The values of a packed witness are there in both. Sums can be cut: over slices of
the points one after the other, with the key's pages given back in between, they take less memory and more time, as
small sums have narrower windows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snarkline.curves.curve import Curve, Group
from snarkline.errors import BudgetError, printable

WORD = 8
SCALAR_BYTES = 32 + 2 * 4
"""Of a sum, for each point: two half-scalars, and places in the lists of wide scalars and of ones."""
DIGIT_BYTES = 4 + 2
"""Of a sorted digit: which point, which bucket."""
TASK_DIGITS = 1 << 14
TASKS_PER_THREAD = 24
"""Digits of a task, and tasks for which windows are held at once (csrc/host/msm_kernels.cpp)."""
TASK_BUCKETS = 1 << 10
"""Buckets that a task fills, at most."""
THREAD_BYTES = 5 << 20
"""Of a thread: its stack, the accumulators and lists of a task in G2, a tile of a transform."""
RECORD_BYTES = 44
"""Of a coefficient in a key's file."""
CHECKED_POINTS = 1 << 16
"""Of a key, that are checked at a time while it is loaded."""
SLACK_BYTES = 12 << 20
"""What the allocator keeps between sums, and the interpreter's own growth."""
POINTS_AT_ONCE = 1 << 18
"""Of a sum without a cap. Larger ones are no faster: their lists outgrow the caches."""
LEAST_SLICE = 1 << 12


@dataclass(frozen=True)
class Sizes:
    """What memory follows from: wires, the domain's size, the threads that work."""

    curve: Curve
    n_wires: int
    domain_size: int
    threads: int
    packed: bool = False
    """The witness is that of a structured circuit: its values are written out beside it for the sums."""
    n_gathered: int = 0
    """Scalars that are copied together, for queries with points for some of the wires only."""

    @property
    def element_bytes(self) -> int:
        return WORD * self.curve.fr_limbs

    def load_bytes(self, n_entries: int) -> int:
        """Loading a circom key and its witness: the matrices A and B, and the file's records while they are read."""
        rows = WORD * 2 * self.domain_size + 2 * 4 * n_entries
        witness = self.element_bytes * self.n_wires
        return rows + max(
            2 * witness, RECORD_BYTES * n_entries, CHECKED_POINTS * WORD * self.curve.point_limbs(Group.G2)
        )

    def held_bytes(self, n_entries: int) -> int:
        """What stays of that while a proof is made."""
        return WORD * 2 * self.domain_size + 2 * 4 * n_entries + self.element_bytes * self.n_wires

    @property
    def written_bytes(self) -> int:
        """The values of a packed witness."""
        return self.element_bytes * self.n_wires if self.packed else 0

    @property
    def quotient_bytes(self) -> int:
        """Beyond what the process and the witness hold: a, b and c."""
        return 3 * self.element_bytes * self.domain_size + self.written_bytes + self.threads * THREAD_BYTES

    def sum_bytes(self, groups: Sequence[Group], n: int) -> int:
        """A sum over `n` points of tables in these groups, which share their scalars."""
        points = sum(WORD * self.curve.point_limbs(group) for group in groups)
        largest = max(WORD * self.curve.point_limbs(group) for group in groups)
        digits = min(TASKS_PER_THREAD * self.threads * TASK_DIGITS + 2 * n, 64 * n)
        buckets = digits // TASK_DIGITS * TASK_BUCKETS * largest
        return n * (points + SCALAR_BYTES) + digits * DIGIT_BYTES + buckets + self.threads * THREAD_BYTES

    def commit_bytes(self, n: int = POINTS_AT_ONCE) -> int:
        """The sums of a proof, over at most `n` points at a time: h and their scalars stay beside them."""
        held = self.element_bytes * (self.domain_size + self.n_gathered) + self.written_bytes
        wires, rows = (min(n, size) for size in (self.n_wires, self.domain_size))
        return held + max(self.sum_bytes((Group.G1, Group.G1, Group.G2), wires), self.sum_bytes((Group.G1,), rows))

    def proof_bytes(self) -> int:
        """The peak of a proof without a cap. The three vectors stay pooled beside the sums."""
        pooled = 2 * self.element_bytes * self.domain_size
        return max(self.quotient_bytes, pooled + self.commit_bytes()) + SLACK_BYTES

    def least_bytes(self) -> int:
        """The peak of a proof in the smallest slices."""
        return max(self.quotient_bytes, self.commit_bytes(LEAST_SLICE)) + SLACK_BYTES

    def whole_bytes(self, n_entries: int) -> int:
        """The peak of loading a key and making a proof without a cap, beyond what the process holds."""
        return max(self.load_bytes(n_entries), self.held_bytes(n_entries) + self.proof_bytes())

    def least_whole_bytes(self, n_entries: int) -> int:
        """The same with the smallest cap."""
        return max(self.load_bytes(n_entries), self.held_bytes(n_entries) + self.least_bytes())

    def slice_within(self, cap_bytes: int, held_bytes: int, key: str | None = None) -> int:
        """The most points that sums may take at a time, for a process that holds `held_bytes` to stay within a cap.

        Raises BudgetError, which says what is needed with this `key`, if no number is small enough.
        """
        require(held_bytes + self.least_bytes(), cap_bytes, key=key)
        n = LEAST_SLICE
        while n < POINTS_AT_ONCE and held_bytes + self.commit_bytes(2 * n) + SLACK_BYTES <= cap_bytes:
            n *= 2
        return n


def require(needed_bytes: int, cap_bytes: int, *, option: str = "max_memory", key: str | None = None) -> None:
    """Raises BudgetError, naming what set the cap and the key, for a proof that does not fit it."""
    if needed_bytes > cap_bytes:
        cause = f"{option} is below what a proof with {key or 'this key'} holds at least"
        raise BudgetError(needed_bytes, cap_bytes, printable(cause))


def resident_bytes() -> int:
    """Resident memory of this process, in bytes; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
