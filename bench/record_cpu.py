"""Records every CPU figure of docs/performance.md in one go, some ten minutes on a quiet machine of two processors.

    python bench/record_cpu.py RECIPE.json [--only provers msm profile caps]

The recipe, which is not part of the repository, says where files and peers are:

    {"commands": {"rapidsnark": "prover {key} {witness} {proof} {public}", "snarkjs": "snarkjs groth16 prove ..."},
     "snarkjs": "a command that runs snarkjs, to verify everybody's proofs",
     "blst": "a program that prints blst's times, called with LOG_G1 LOG_G2 REPEAT",
     "cases": [{"name": "dense-2e18-bn254", "key": ..., "witness": ..., "vk": ..., "runs": 5,
                "peers": {"rapidsnark": 5, "snarkjs": 1}}],
     "profile": "the name of the case whose proof is taken apart, and made under caps of memory"}

Files of relative names are looked for beside the recipe. Then `python bench/render_docs.py` writes the tables.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from provers import Case, compare, environment

HERE = Path(__file__).parent


def cases(recipe: dict[str, Any], folder: Path) -> list[Case]:
    found = []
    for entry in recipe["cases"]:
        files = {name: str(folder / entry[name]) for name in ("key", "witness", "vk")}
        found.append(Case(entry["name"], **files, runs=entry["runs"], peers=entry["peers"]))
    return found


def call(script: str, *arguments: str) -> None:
    subprocess.run([sys.executable, HERE / script, *arguments], env=environment(), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parts = ["provers", "msm", "profile", "caps"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--case", nargs="+", help="of the provers, these cases only")
    a = parser.parse_args()
    recipe, started = json.loads(a.recipe.read_text()), time.perf_counter()
    known = {case.name: case for case in cases(recipe, a.recipe.parent)}
    if "provers" in a.only:
        for case in known.values():
            if a.case is None or case.name in a.case:
                compare(case, recipe["commands"], recipe["snarkjs"])
    if "msm" in a.only:
        call("msm_blst.py", recipe["blst"])
    case = known[recipe["profile"]]
    for part, script in (("profile", "profile_proof.py"), ("caps", "caps.py")):
        if part in a.only:
            call(script, case.name, case.key, case.witness)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
