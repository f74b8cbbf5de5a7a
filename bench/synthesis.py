"""Record the ways from a circuit to a, b and c on this machine, for docs/performance.md.

    python bench/synthesis.py MACHINE [--sizes 18,20,22,24] [--output FOLDER]

The result is docs/data/synthesis/MACHINE.json, with the load average before. About four minutes on 2 quiet cores; 2^24
takes 4 GiB. Then `python bench/render_docs.py`.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from machine import ROOT, facts

SNARKLINE = [sys.executable, "-c", "from snarkline.cli import main; main()", "bench", "synthesis"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine")
    parser.add_argument("--sizes", default="18,20,22,24")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "data" / "synthesis")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    words = ["--sizes", options.sizes]
    done = subprocess.run([*SNARKLINE, *words, "--json"], stdout=subprocess.PIPE, check=True, text=True)
    result = {
        **facts(),
        "load_average": load,
        "command": f"snarkline bench synthesis {' '.join(words)}",
        **json.loads(done.stdout),
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{options.machine}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
