"""What users of other provers reported, by number: memory, threads, exit, and related wishes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from tiny_circuits import EDGE_CIRCUITS, chain, development_key, quiet_setup

from snarkline import Arena, load_proving_key, load_witness, save_proving_key
from snarkline.curves.curve import BN254
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

LADDER = EDGE_CIRCUITS["17 constraints"]()
END_S = 5
"""Seconds in which a process must have ended: one, on a machine with nothing else to do."""


def n_threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a76_memory_is_back_after_proofs_in_a_row() -> None:
    """The most that is resident after a proof does not grow from one half of 50 proofs to the other."""
    r1cs, witness = chain(BN254, 1_000)
    key = quiet_setup(r1cs)
    with Prover(key, threads=2) as prover:
        most = [0, 0]
        for i in range(60):
            prover.prove(witness)
            if i >= 10:
                most[i >= 35] = max(most[i >= 35], resident_bytes())
    assert most[1] - most[0] < 4 << 20


def test_a78_the_caller_s_buffer_may_be_overwritten_after_the_start() -> None:
    key, values = development_key("17 constraints", BN254), LADDER.witness(BN254).values.limbs.copy()
    with Prover(key, threads=2) as prover:
        pending = prover.start(load_witness(values, curve=BN254))
        values[...] = np.uint64(0xFFFFFFFFFFFFFFFF)
        assert verify(key.verifying_key, pending.finish())


def test_a80_a86_a_process_that_has_proved_ends_by_itself(vectors: Path) -> None:
    """With everything left open, and with worker threads at rest: exit code 0, nothing on standard error."""
    folder = vectors / "circom" / "multiplier_bn128"
    body = (
        "from snarkline import Prover, load_proving_key, load_witness\n"
        f"key = load_proving_key({str(folder / 'circuit.zkey')!r})\n"
        f"prover = Prover(key); prover.prove(load_witness({str(folder / 'circuit.wtns')!r}))\n"
        "print('proved', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "proved\n"
    _, errors = process.communicate(timeout=END_S)
    assert (process.returncode, errors) == (0, "")


def test_a82_giving_memory_back_holds_no_lock_of_python() -> None:
    """Another thread goes on while a large buffer is unmapped by the thread that drops it."""
    arena = Arena("sync")
    array = arena.empty(32 << 20)  # 256 MiB of 64-bit words
    array.fill(1)
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    while not ticks:
        time.sleep(0.001)
    began = time.perf_counter()
    del array
    ended = time.perf_counter()
    stop.set()
    thread.join()
    arena.close()
    assert ended - began < 0.002 or sum(began < t < ended for t in ticks) > 0


def test_a85_nothing_is_left_of_a_proof_or_of_a_check() -> None:
    key = development_key("17 constraints", BN254)
    with Prover(key, threads=1) as prover:
        proof = prover.prove(LADDER.witness(BN254))
        for _ in range(30):
            verify(key.verifying_key, proof)
        before = resident_bytes()
        for _ in range(300):
            assert verify(key.verifying_key, proof)
            prover.prove(LADDER.witness(BN254))
        assert resident_bytes() - before < 3 << 20


def test_a85_nothing_is_left_of_a_prover() -> None:
    key = development_key("17 constraints", BN254)

    def use() -> None:
        with Prover(key, threads=2) as prover:
            prover.prove(LADDER.witness(BN254))

    for _ in range(10):
        use()
    before, threads = resident_bytes(), n_threads()
    for _ in range(60):
        use()
    assert resident_bytes() - before < 2 << 20
    assert n_threads() <= threads


def test_b17_close_gives_the_memory_back() -> None:
    r1cs, witness = chain(BN254, 4_000)
    prover = Prover(quiet_setup(r1cs), threads=2)
    prover.prove(witness)
    assert prover.arena.stats().pooled_bytes > 100_000
    prover.close()
    end = time.monotonic() + END_S
    while (left := prover.arena.stats()).pooled_bytes + left.lent_bytes + left.pending_bytes:
        assert time.monotonic() < end, left
        time.sleep(0.01)


def test_b28_one_thread_is_one_thread() -> None:
    body = (
        "import os\nfrom tiny_circuits import EDGE_CIRCUITS, development_key\n"
        "from snarkline import Prover\nfrom snarkline.curves.curve import BN254\n"
        "key, witness = development_key('17 constraints', BN254), EDGE_CIRCUITS['17 constraints']().witness(BN254)\n"
        "with Prover(key, threads=1, release='sync') as prover:\n    prover.prove(witness)\n"
        "    print(len(os.listdir('/proc/self/task')))\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) <= 2, "the main thread, and at most the arena's"


def test_b3_a_key_is_mapped_and_shared(tmp_path: Path) -> None:
    """The points are the file's pages, which processes share; none of their bytes is private to this one."""
    r1cs, _ = chain(BN254, 4_000)
    path = tmp_path / "c.zkey"
    save_proving_key(quiet_setup(r1cs), path)
    key = load_proving_key(path)
    blocks = Path("/proc/self/smaps").read_text().split("VmFlags")
    mapped = [block for block in blocks if str(path) in block]
    assert len(mapped) == 1 and len(key.a.points) == 4_002
    private_dirty = next(line for line in mapped[0].splitlines() if line.startswith("Private_Dirty"))
    assert private_dirty.split()[1] == "0"
