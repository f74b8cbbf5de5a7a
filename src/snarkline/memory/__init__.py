"""Memory that is given back off the critical path: arenas, release policies, budgets. Useful alone (docs/memory.md)."""

from snarkline.memory.arena import Arena
from snarkline.memory.fence import Fence
from snarkline.memory.lease import Lease
from snarkline.memory.numpy_handler import numpy_arrays
from snarkline.memory.pages import Pages
from snarkline.memory.pinner import PageLocker, Pinner
from snarkline.memory.policy import Release
from snarkline.memory.stats import ArenaStats

__all__ = [
    "Arena",
    "ArenaStats",
    "Fence",
    "Lease",
    "PageLocker",
    "Pages",
    "Pinner",
    "Release",
    "numpy_arrays",
]
