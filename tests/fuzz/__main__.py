"""Fuzz the parsers, each in a process of its own.

    nice python -m tests.fuzz [TARGET ...] [--seconds 300] [--engine atheris|plain] [--seed N] [--keep]

`atheris` (pip install atheris) is libFuzzer with the coverage of our Python code; half of its changes are those of
tests/formats/mutate.py, which know the structure of the files. `plain` needs nothing and makes those changes alone.
An input that ends in anything but an InputError, or takes ten seconds or a gigabyte, is written to tests/fuzz/found,
and the exit code is 1. `--keep` adds small inputs that reached new code to the corpus.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOUND = Path(__file__).parent / "found"
KEPT, KEPT_BYTES = 24, 1500  # inputs of a target that a run adds to the corpus, and the most bytes of one
SECONDS_EACH, MIB = 10, 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--engine", choices=("atheris", "plain"), default="atheris")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        (_atheris if options.engine == "atheris" else _plain)(options)
        return
    from .targets import TARGETS

    FOUND.mkdir(exist_ok=True)
    failed = [target for target in options.targets or TARGETS if not run(target, options)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def run(target: str, options: argparse.Namespace) -> bool:
    """One target in a process; prints a line for it."""
    from .targets import seeds

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, data in enumerate(seeds(target)):
            (folder / f"seed-{i}").write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz", target, "--inside", name, "--seconds", str(options.seconds)]
        command += ["--seed", str(options.seed), "--engine", options.engine]
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        seconds = time.monotonic() - started
        if options.keep:
            _keep(target, folder)
    executions = re.findall(r"(?:number_of_executed_units:|executed) *(\d+)", done.stderr)
    coverage = re.findall(r"cov: (\d+)", done.stderr)
    print(
        f"{target}: {executions[-1] if executions else '?'} inputs in {seconds:.0f} s, "
        f"branches {coverage[-1] if coverage else '-'}, exit code {done.returncode}",
        flush=True,
    )
    if done.returncode:
        print(done.stderr[-3000:], flush=True)
    return done.returncode == 0


def _keep(target: str, folder: Path) -> None:
    """Files of all sizes up to the limit, among those that the fuzzer added."""
    from .targets import HOME

    small = [p for p in folder.iterdir() if not p.name.startswith("seed-") and 0 < p.stat().st_size <= KEPT_BYTES]
    small.sort(key=lambda p: (p.stat().st_size, p.name))
    (HOME / target).mkdir(parents=True, exist_ok=True)
    for path in small[:: max(1, -(-len(small) // KEPT))]:
        (HOME / target / path.name[:16]).write_bytes(path.read_bytes())


def _atheris(options: argparse.Namespace) -> None:
    (target,) = options.targets
    import atheris

    with atheris.instrument_imports(include=["snarkline"]):
        from . import targets
    from mutate import mutate

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.randrange(2):
            changed: bytes = atheris.Mutate(data, max_size)
            return changed
        for _ in range(rng.choice([1, 1, 2, 4])):
            data = mutate(data, rng)
        return data[:max_size]

    def test(data: bytes) -> None:
        targets.attempt(target, data)

    flags = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", f"-artifact_prefix={FOUND}/{target}-"]
    flags += [f"-timeout={SECONDS_EACH}", f"-rss_limit_mb={MIB}", "-print_final_stats=1", "-max_len=262144"]
    atheris.Setup([sys.argv[0], *flags, str(options.inside)], test, custom_mutator=change)
    atheris.Fuzz()


def _plain(options: argparse.Namespace) -> None:
    from mutate import mutate

    from .targets import attempt

    (target,) = options.targets
    rng, start = random.Random(options.seed), [path.read_bytes() for path in sorted(options.inside.iterdir())]
    end, count = time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        data = rng.choice(start)
        for _ in range(rng.choice([1, 1, 2, 3, 8])):
            data = mutate(data, rng)
        try:
            attempt(target, data)
        except BaseException:
            (FOUND / f"{target}-{count}").write_bytes(data)
            raise
        count += 1
    print(f"executed {count}", file=sys.stderr)


if __name__ == "__main__":
    main()
