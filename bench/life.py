"""How long a process takes to end while it proves or after it has, and whether memory stays flat over proofs.

    python bench/life.py [--ends 10] [--proofs 1000]

A circuit of 4,094 constraints, BN254, for the ends; a tiny one for the proofs, with fixed blinding: all the same bytes.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "groth16"))

HEAD = """
import sys, threading
from snarkline import Prover, load_proving_key, load_witness
key, witness = load_proving_key({key!r}), load_witness({witness!r})
prover = Prover(key)
prover.prove(witness)
"""
FOR_EVER = "print('ready', flush=True)\nwhile True: prover.prove(witness)\n"
ENDS = {
    "SIGTERM in a proof": (FOR_EVER, signal.SIGTERM),
    "Ctrl-C in a proof": (FOR_EVER, signal.SIGINT),
    "exit with a prover alive": ("print('ready', flush=True)\n", None),
    "exit while a daemon thread proves": (
        "threading.Thread(target=lambda: [prover.prove(witness) for _ in iter(int, 1)], daemon=True).start()\n"
        "prover.prove(witness)\nprint('ready', flush=True)\n",
        None,
    ),
}


def end(body: str, number: signal.Signals | None, files: dict[str, str]) -> float:
    """Seconds from the signal, or from the last statement, until the process is gone."""
    command = [sys.executable, "-c", HEAD.format(**files) + body]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    if number is not None:
        time.sleep(0.1)
        process.send_signal(number)
    began = time.perf_counter()
    process.wait()
    seconds = time.perf_counter() - began
    assert process.returncode == (0 if number is None else -number), process.returncode
    return seconds


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", type=int, default=10)
    parser.add_argument("--proofs", type=int, default=1000)
    options = parser.parse_args()
    from tiny_circuits import EDGE_CIRCUITS, chain, development_key, quiet_setup

    from snarkline import Prover, save_proving_key
    from snarkline.curves.curve import BN254
    from snarkline.formats.circom import save_witness

    with tempfile.TemporaryDirectory() as folder:
        files = {"key": f"{folder}/c.zkey", "witness": f"{folder}/c.wtns"}
        r1cs, witness = chain(BN254, (1 << 12) - 2)
        save_proving_key(quiet_setup(r1cs), files["key"])
        save_witness(witness, files["witness"])
        for name, (body, number) in ENDS.items():
            seconds = [end(body, number, files) for _ in range(options.ends)]
            print(f"{name}: median {median(seconds):.3f} s, longest {max(seconds):.3f} s of {options.ends}", flush=True)
    values = EDGE_CIRCUITS["17 constraints"]().witness(BN254)
    with Prover(development_key("17 constraints", BN254), threads=2) as prover:
        proofs, resident = set(), []
        for i in range(options.proofs + 100):
            proofs.add(prover.prove(values, blinding_for_tests=(7, 11)))
            if i >= 100 and i % 100 == 99:
                resident.append(resident_mib())
        slope = (resident[-1] - resident[0]) / (len(resident) - 1)
    print(f"{options.proofs} proofs: {len(proofs)} different, {prover.repeated} computed again")
    print("resident MiB after each 100:", *(f"{value:.1f}" for value in resident))
    print(f"{slope:.2f} MiB a 100 proofs; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
