"""Memory that is given back off the critical path: arenas, release policies, budgets. Useful without the prover."""

from snarkline.memory.arena import Arena, ArenaStats
from snarkline.memory.policy import Release

__all__ = ["Arena", "ArenaStats", "Release"]
