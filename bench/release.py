"""Record `snarkline bench release` with the machine's facts, for docs/teardown.md.

    python bench/release.py NAME [OPTIONS OF snarkline bench release]

The result is docs/data/release/NAME.json; its load average says how busy the machine was besides.
"""

import json
import os
import subprocess
import sys

from machine import ROOT, facts


def main() -> None:
    name, *options = sys.argv[1:]
    command = [sys.executable, "-c", "from snarkline.cli import main; main()", "bench", "release", *options, "--json"]
    load = os.getloadavg()[0]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    result = {
        **facts(),
        "load_average": round(load, 1),
        "niceness": os.nice(0),
        "options": options,
        **json.loads(done.stdout),
    }
    folder = ROOT / "docs" / "data" / "release"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
