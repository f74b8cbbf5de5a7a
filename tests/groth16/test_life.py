"""Provers in processes that are interrupted, that fork, that end, and that lose their key's file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_circuits import EDGE_CIRCUITS, chain, development_key, quiet_setup

from snarkline import load_proving_key, load_witness, save_proving_key
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.errors import FormatError
from snarkline.formats.circom import save_witness
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

CIRCUIT = EDGE_CIRCUITS["17 constraints"]()
BLINDING = (11, 13)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key of 2^12 rows and its witness."""
    folder = tmp_path_factory.mktemp("files")
    r1cs, witness = chain(BN254, (1 << 12) - 2)
    save_proving_key(quiet_setup(r1cs), folder / "c.zkey")
    save_witness(witness, folder / "c.wtns")
    return folder


def script(files: Path, body: str, stderr: int | None = None) -> subprocess.Popen[str]:
    """A process with `prover` and `witness` made from the files, which then runs `body`."""
    head = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # ignored below nohup
        "from snarkline import Prover, load_proving_key, load_witness, verify\n"
        f"key, witness = load_proving_key({str(files / 'c.zkey')!r}), load_witness({str(files / 'c.wtns')!r})\n"
        "prover = Prover(key)\n"
        "def good(): return verify(key.verifying_key, prover.prove(witness))\n"
    )
    return subprocess.Popen([sys.executable, "-c", head + body], stdout=subprocess.PIPE, stderr=stderr, text=True)


def test_interrupt_in_the_middle(files: Path) -> None:
    """Ctrl-C ends a proof with KeyboardInterrupt, and the prover can go on."""
    body = (
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True: prover.prove(witness)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', good(), flush=True)\n"
    )
    process = script(files, body)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted True\n"
    assert process.returncode == 0


END_S = 5
"""Seconds in which a process must have ended: one, on a machine with nothing else to do."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_in_the_middle_end_the_process(files: Path, number: signal.Signals) -> None:
    process = script(files, "print('ready', flush=True)\nwhile True: prover.prove(witness)\n", stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(number)
    try:
        process.communicate(timeout=END_S)
    finally:
        process.kill()  # it proves for ever
    assert process.returncode == -number


@pytest.mark.parametrize("alive", ["prover", "pending", "thread that proves"])
def test_exit_is_prompt(files: Path, alive: str) -> None:
    body = {
        "prover": "",
        "pending": "pending = prover.start(witness)\n",
        "thread that proves": "import threading\nthreading.Thread(target=lambda: [good() for _ in iter(int, 1)], "
        "daemon=True).start()\n",
    }[alive]
    process = script(files, body + "good()\nprint('end', flush=True)\n")
    assert process.stdout is not None
    assert process.stdout.readline() == "end\n"
    process.communicate(timeout=END_S)
    assert process.returncode == 0


def test_exit_with_a_prover_alive(files: Path) -> None:
    process = script(files, "pending = prover.start(witness)\nprint(good(), flush=True)\n")
    assert process.communicate(timeout=60)[0] == "True\n"
    assert process.returncode == 0


def test_exit_while_a_thread_proves(files: Path) -> None:
    body = (
        "import threading\n"
        "threading.Thread(target=lambda: [good() for _ in range(10**6)], daemon=True).start()\n"
        "print(good(), flush=True)\n"
    )
    process = script(files, body)
    assert process.communicate(timeout=60)[0] == "True\n"
    assert process.returncode == 0


def test_fork(files: Path) -> None:
    """A child proves with the prover that it inherited, and so does the parent afterwards."""
    body = (
        "good()\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if good() else 1)\n"
        "print(os.waitpid(child, 0)[1], good(), flush=True)\n"
    )
    process = script(files, body)
    assert process.communicate(timeout=60)[0] == "0 True\n"
    assert process.returncode == 0


def test_key_file_deleted_after_loading(tmp_path: Path) -> None:
    path = tmp_path / "c.zkey"
    save_proving_key(development_key("17 constraints", BLS12_381), path)
    key = load_proving_key(path)
    path.unlink()
    with Prover(key, threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(CIRCUIT.witness(BLS12_381)))


@pytest.mark.parametrize("copy", [False, True], ids=["mapped", "copied"])
def test_key_file_replaced_after_loading(tmp_path: Path, copy: bool) -> None:
    """A rename over the key's name changes neither the key that was loaded nor what it proves."""
    path, other = tmp_path / "c.zkey", tmp_path / "other.zkey"
    save_proving_key(development_key("17 constraints", BN254), path)
    save_proving_key(development_key("multiplier", BN254), other)
    key = load_proving_key(path, copy=copy)
    other.replace(path)
    with Prover(key, threads=1) as prover:
        assert verify(key.verifying_key, prover.prove(CIRCUIT.witness(BN254)))


def test_key_file_cut_short_after_copying(files: Path, tmp_path: Path) -> None:
    """Where the key is a copy, nothing that happens to its file matters: not even what ends a process otherwise."""
    path = tmp_path / "c.zkey"
    path.write_bytes((files / "c.zkey").read_bytes())
    key, witness = load_proving_key(path, copy=True), load_witness(files / "c.wtns")
    os.truncate(path, 100)
    with Prover(key, threads=2) as prover:
        assert verify(key.verifying_key, prover.prove(witness))
    with pytest.raises(FormatError, match=r"c\.zkey"):
        load_proving_key(path, copy=True)


def test_a_file_that_grows_while_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.zkey"
    save_proving_key(development_key("17 constraints", BN254), path)
    read = os.preadv

    def read_and_disturb(*arguments: Any) -> int:
        count = read(*arguments)
        with path.open("ab") as stream:
            stream.write(b"x")
        return count

    monkeypatch.setattr(os, "preadv", read_and_disturb)
    with pytest.raises(FormatError, match="written to"):
        load_proving_key(path, copy=True)


@pytest.mark.slow
def test_a_thousand_proofs_are_alike_and_memory_is_flat() -> None:
    """Fixed blinding gives the same bytes; resident memory grows by less than 1 MiB in 100 proofs."""
    key = development_key("17 constraints", BN254)
    with Prover(key, threads=2) as prover:
        expected = prover.prove(CIRCUIT.witness(BN254), blinding_for_tests=BLINDING)
        for _ in range(100):
            prover.prove(CIRCUIT.witness(BN254), blinding_for_tests=BLINDING)
        before = resident_bytes()
        for _ in range(1_000):
            assert prover.prove(CIRCUIT.witness(BN254), blinding_for_tests=BLINDING) == expected
    assert resident_bytes() - before < 10 << 20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
