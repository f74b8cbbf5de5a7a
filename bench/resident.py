"""Proofs by a resident prover, which holds its key: wall and CPU seconds of each, as one JSON object.

    python bench/resident.py KEY WITNESS RUNS

The first proof, which touches fresh memory, is not counted.
"""

import json
import sys
import time
import warnings
from statistics import median

from snarkline import Prover, load_proving_key, load_witness


def main() -> None:
    warnings.simplefilter("ignore")
    key = load_proving_key(sys.argv[1])
    witness = load_witness(sys.argv[2], curve=key.curve)
    samples = []
    with Prover(key) as prover:
        for _ in range(1 + int(sys.argv[3])):
            wall, cpu = time.perf_counter(), time.process_time()
            prover.prove(witness)
            samples.append({"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu})
    counted = samples[1:]
    print(
        json.dumps(
            {
                "median": {name: round(median(s[name] for s in counted), 4) for name in counted[0]},
                "samples": [{name: round(value, 4) for name, value in s.items()} for s in counted],
            }
        )
    )


if __name__ == "__main__":
    main()
