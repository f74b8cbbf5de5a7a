"""What `snarkline ghosts` costs code that does nothing but call, as a whole program.

    python bench/ghosts.py [--json]

The program is run as it is, watched, and with --exact: its own CPU seconds, in fresh processes, least of several. The
bound is 3 times on Python 3.12 and later, where exact mode has none; the exit status is 1 if it is exceeded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import facts

from snarkline.trace.ghosts import find_ghosts

BOUND = 3.0
ROUNDS = 5

PROGRAM = """
import sys, time
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
class Counter:
    def __init__(self): self.n = 0
    def add(self, n): self.n += n
def methods(n):
    counter = Counter()
    for i in range(n): counter.add(i)
    return counter.n
def callbacks(n): return len(sorted(range(n), key=lambda i: -i))
def generator(n):
    for i in range(n): yield i
work = {"recursion": lambda: fibonacci(25), "methods": lambda: methods(400_000),
        "callbacks from C": lambda: callbacks(400_000), "a generator": lambda: sum(generator(1_000_000))}[sys.argv[1]]
begin = time.thread_time()
work()
open(sys.argv[2], "w").write(str(time.thread_time() - begin))
"""
KINDS = ("recursion", "methods", "callbacks from C", "a generator")


def seconds(script: Path, kind: str, mode: str) -> float:
    result = script.with_name("seconds")
    if mode == "plain":
        subprocess.run([sys.executable, str(script), kind, str(result)], check=True)
    else:
        find_ghosts([str(script), kind, str(result)], exact=mode == "exact")
    return float(result.read_text())


def measure() -> dict[str, dict[str, float]]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(PROGRAM)
        for kind in KINDS:
            best = {m: min(seconds(script, kind, m) for _ in range(ROUNDS)) for m in ("plain", "watched", "exact")}
            found[kind] = {m: best[m] / best["plain"] for m in ("watched", "exact")}
    return found


def main() -> int:
    found = measure()
    if "--json" in sys.argv[1:]:
        slow_downs = {k: {m: round(x, 2) for m, x in v.items()} for k, v in found.items()}
        print(json.dumps(facts() | {"slow-down": slow_downs}, indent=1))
    else:
        for kind, v in found.items():
            print(f"{kind:<18}{v['watched']:5.2f} times   exact {v['exact']:5.2f} times")
    return int(sys.version_info >= (3, 12) and any(v["watched"] > BOUND for v in found.values()))


if __name__ == "__main__":
    sys.exit(main())
