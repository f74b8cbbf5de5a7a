"""When a call across a language boundary passed its statements, and what that says of its teardown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Moments:
    """Nanoseconds of CLOCK_MONOTONIC. The native function was entered, had done its work, and came to its last
    statement; it was back in Python; the Python function came to its last statement; its caller went on.

    `kernels_ns` is what transforms and sums took of the work, with the uploads that they wait for."""

    begun: int = 0
    entered: int = 0
    work_done: int = 0
    native_last: int = 0
    native_back: int = 0
    last: int = 0
    back: int = 0
    kernels_ns: int = 0

    def seconds(self, reclaimed: int) -> dict[str, float]:
        """What the row of a run says about them. `reclaimed`: when no release was pending any more."""
        return {
            "inner_s": (self.native_last - self.entered) * 1e-9,
            "wrapper_s": (self.back - self.begun) * 1e-9,
            "teardown_s": (self.native_back - self.native_last + self.back - self.last) * 1e-9,
            "reclaimed_s": (reclaimed - self.work_done) * 1e-9,
        }
