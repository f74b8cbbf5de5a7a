"""What a span costs: off, on, and on with so much work in between that no reading of the thread's usage is shared.

    python bench/spans.py [--json]

The bounds are 0.3 us off and 5 us on; the exit status is 1 if one is exceeded. Each figure is the least of many rounds,
with the cost of the same loop without the span taken out.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable

from snarkline.trace import Timeline, span

BOUNDS_US = {"off": 0.3, "off with facts": 0.3, "on": 5.0, "on with facts": 5.0, "on, apart": 5.0}


def empty() -> None:
    pass


def plain() -> None:
    with span("work"):
        pass


def with_facts() -> None:
    with span("work", bytes=4096, items=128):
        pass


def work() -> None:
    for _ in range(1000):
        pass


def work_and_span() -> None:
    work()
    with span("work"):
        pass


def best_us(call: Callable[[], None], number: int) -> float:
    """Of 25 rounds and more: short rounds are more often left alone by other processes."""
    return min(timeit.repeat(call, number=number, repeat=25 + 20_000 // number)) / number * 1e6


def measure() -> dict[str, float]:
    nothing = best_us(empty, 2_000)
    found = {"off": best_us(plain, 2_000) - nothing, "off with facts": best_us(with_facts, 2_000) - nothing}
    with Timeline(sample_ms=0):
        found["on"] = best_us(plain, 1_000) - nothing
        found["on with facts"] = best_us(with_facts, 2_000) - nothing
        found["on, apart"] = best_us(work_and_span, 50) - best_us(work, 50)
    return found


def main() -> int:
    found = measure()
    if "--json" in sys.argv[1:]:
        from machine import facts

        print(json.dumps(facts() | {"unit": "us", **{k: round(v, 3) for k, v in found.items()}}, indent=1))
    else:
        for name, us in found.items():
            print(f"{name:<16}{us:8.3f} us   bound {BOUNDS_US[name]} us")
    return int(any(us > BOUNDS_US[name] for name, us in found.items()))


if __name__ == "__main__":
    sys.exit(main())
