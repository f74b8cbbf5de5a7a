"""How long a process takes to end with a full backlog: from its last statement until it is gone.

    python bench/exit.py [GIB]

Prints one JSON row for each case. `left`: nothing was dropped, the kernel takes everything back. `detached`: everything
was dropped and waits for the release thread. `detached, secret`: the same, and has to be wiped. `drained`: the process
waits for the release thread before it ends.
"""

import json
import os
import subprocess
import sys
import time

CASES = ("left", "detached", "detached, secret", "drained")
BUFFER = 64 << 20

CHILD = """
import sys, time
from snarkline.memory import Arena
case, n = sys.argv[1], int(sys.argv[2])
arena = Arena("detached", pages="4k", idle_s=1e6)
buffers = [arena.empty(64 << 20, "u1", secret="secret" in case) for _ in range(n)]
print(time.monotonic(), flush=True)
if case != "left":
    buffers.clear()
if case == "drained":
    assert arena.drain(600)
"""


def main() -> None:
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 12.0
    n = int(gib * 2**30) // BUFFER
    for case in CASES:
        command = [sys.executable, "-c", CHILD, case, str(n)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as child:
            assert child.stdout is not None
            last = float(child.stdout.readline())
            if child.wait() != 0:
                raise SystemExit(f"{case}: exit code {child.returncode}")
            ended = time.monotonic()
        print(json.dumps({"case": case, "bytes": n * BUFFER, "exit_s": round(ended - last, 4)}), flush=True)


if __name__ == "__main__":
    main()
