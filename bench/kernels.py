"""Record what compiling the kernels for a GPU takes, in processor seconds of each module. No GPU is needed.

python bench/kernels.py NAME [--arch 90]        writes docs/data/kernels/NAME.json
"""

import argparse
import json
import tempfile
from pathlib import Path

from figures import DATA
from machine import facts

from snarkline.backend.cuda import KernelCache, modules_of
from snarkline.backend.cuda.module import compiler_version
from snarkline.curves.curve import CURVES
from snarkline.threads import usable_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--arch", default="90")
    options = parser.parse_args()
    modules = [module for curve in CURVES.values() for module in modules_of(curve)]
    with tempfile.TemporaryDirectory() as folder:
        built = KernelCache(Path(folder)).build(modules, options.arch, workers=usable_threads())
    seconds = {module.name: round(s, 2) for module, s in built.seconds.items()}
    result = {**facts(), "nvrtc": compiler_version(), "architecture": options.arch, "core_seconds": seconds}
    target = DATA / "kernels" / f"{options.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
