"""Bad input: exit code 2, one line that says what is wrong, no traceback, no output file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commands import Run


def _refused(run: Run, tmp_path: Path, *arguments: str | Path) -> str:
    before = set(tmp_path.iterdir())
    outcome = run(*arguments)
    assert outcome.code == 2, (outcome.code, outcome.err)
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith(("error: ", "warning: ", "Usage: ")), outcome.err
    assert set(tmp_path.iterdir()) == before
    return outcome.err


@pytest.fixture
def bn128(vectors: Path) -> Path:
    return vectors / "circom" / "multiplier_bn128"


@pytest.fixture
def bls(vectors: Path) -> Path:
    return vectors / "circom" / "multiplier_bls12381"


@pytest.mark.parametrize("missing", ["key", "witness"])
def test_no_such_file(run: Run, bn128: Path, tmp_path: Path, missing: str) -> None:
    key = "gone.zkey" if missing == "key" else bn128 / "circuit.zkey"
    witness = "gone.wtns" if missing == "witness" else bn128 / "circuit.wtns"
    assert "gone" in _refused(run, tmp_path, "prove", key, witness)


def test_swapped_files(run: Run, bn128: Path, tmp_path: Path) -> None:
    error = _refused(run, tmp_path, "prove", bn128 / "circuit.wtns", bn128 / "circuit.zkey")
    assert "circuit.wtns" in error


def test_the_other_curve(run: Run, bn128: Path, bls: Path, tmp_path: Path) -> None:
    error = _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", bls / "circuit.wtns")
    assert "bn254" in error and "bls12_381" in error


@pytest.mark.parametrize("size", [0, 1, 11, 12, 100, -1, -100])
@pytest.mark.parametrize("file", ["circuit.zkey", "circuit.wtns"])
def test_truncated(run: Run, bn128: Path, tmp_path: Path, file: str, size: int) -> None:
    (tmp_path / file).write_bytes((bn128 / file).read_bytes()[:size])
    paths = [tmp_path / file if name == file else bn128 / name for name in ("circuit.zkey", "circuit.wtns")]
    assert file in _refused(run, tmp_path, "prove", *paths)


def test_witness_that_does_not_satisfy(run: Run, bn128: Path, tmp_path: Path) -> None:
    data = bytearray((bn128 / "circuit.wtns").read_bytes())
    data[-32] ^= 1
    (tmp_path / "bad.wtns").write_bytes(data)
    error = _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", "bad.wtns")
    assert "the witness does not satisfy the circuit; give the .r1cs to learn which constraint" in error
    error = _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", "bad.wtns", "--r1cs", bn128 / "circuit.r1cs")
    assert "constraint 0" in error
    _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", "bad.wtns", "--no-check")


@pytest.mark.parametrize("what", ["proof", "text"])
def test_a_full_standard_output_is_an_error(bn128: Path, tmp_path: Path, what: str) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full")
    key, witness = bn128 / "circuit.zkey", bn128 / "circuit.wtns"
    words = ["prove", key, witness, "-o", "-", "--public", tmp_path / "p"] if what == "proof" else ["info", key]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # what is left in the buffer would fail once more at the end
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "snarkline", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, env=buffered, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: standard output: no space left on device"
    assert list(tmp_path.iterdir()) == [], "all outputs appear, or none"


@pytest.mark.parametrize("option", ["-o", "--public", "--trace"])
def test_unwritable_output_is_found_before_the_work(run: Run, bn128: Path, tmp_path: Path, option: str) -> None:
    error = _refused(run, tmp_path, "prove", "gone.zkey", bn128 / "circuit.wtns", option, "no/such/folder/x.json")
    assert "no/such/folder" in error


def test_one_path_for_two_outputs(run: Run, bn128: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("kept")
    error = _refused(
        run, tmp_path, "prove", bn128 / "circuit.zkey", bn128 / "circuit.wtns", "-o", "x.json", "--public", "x.json"
    )
    assert "x.json" in error
    assert (tmp_path / "x.json").read_text() == "kept"


def test_a_full_device_is_an_error(run: Run, bn128: Path, tmp_path: Path) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full")
    for option in ("-o", "--public", "--trace"):
        _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", bn128 / "circuit.wtns", option, "/dev/full")
        assert list(tmp_path.iterdir()) == [], "all outputs appear, or none"


@pytest.mark.parametrize("option", ["-o", "--public", "--trace"])
@pytest.mark.parametrize("how", ["name", "symlink", "hard link"])
def test_an_output_never_replaces_an_input(run: Run, bn128: Path, tmp_path: Path, option: str, how: str) -> None:
    key = tmp_path / "key.zkey"
    key.write_bytes((bn128 / "circuit.zkey").read_bytes())
    target = tmp_path / "other.json"
    if how == "symlink":
        target.symlink_to(key)
    elif how == "hard link":
        target.hardlink_to(key)
    error = _refused(run, tmp_path, "prove", key, bn128 / "circuit.wtns", option, key if how == "name" else target)
    assert "no input" in error
    assert key.read_bytes() == (bn128 / "circuit.zkey").read_bytes()


def test_setup_and_export_keep_their_inputs(run: Run, bn128: Path, tmp_path: Path) -> None:
    for name in ("circuit.r1cs", "circuit.zkey"):
        (tmp_path / name).write_bytes((bn128 / name).read_bytes())
    _refused(run, tmp_path, "setup", "circuit.r1cs", "-o", "circuit.r1cs")
    _refused(run, tmp_path, "export", "circuit.zkey", "--vk", "circuit.zkey")
    assert (tmp_path / "circuit.r1cs").read_bytes() == (bn128 / "circuit.r1cs").read_bytes()


def test_one_path_that_is_not_there_yet_for_two_outputs(run: Run, bn128: Path, tmp_path: Path) -> None:
    _refused(run, tmp_path, "setup", bn128 / "circuit.r1cs", "-o", "new", "--vk", "new")
    _refused(run, tmp_path, "export", bn128 / "circuit.zkey", "--vk", "new", "--solidity", "./new")
    (tmp_path / "link").symlink_to("new")
    paths = ("-o", "link", "--public", "new")
    _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", bn128 / "circuit.wtns", *paths)


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_an_output_that_is_no_file(run: Run, bn128: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(target)
    error = _refused(run, tmp_path, "prove", bn128 / "circuit.zkey", bn128 / "circuit.wtns", "-o", target)
    assert "target: output path" in error


def test_a_name_cannot_break_the_line(run: Run, tmp_path: Path) -> None:
    error = _refused(run, tmp_path, "info", "a\nb\x1b[31m")
    assert error == "error: a\\nb\\x1b[31m: no such file or directory\n"


def test_a_key_and_a_circuit_that_differ_are_both_named(run: Run, bn128: Path, bls: Path, tmp_path: Path) -> None:
    files = bn128 / "circuit.zkey", bn128 / "circuit.wtns"
    for other in (bls / "circuit.r1cs", bn128.parent / "edge" / "compare_bn128" / "circuit.r1cs"):
        error = _refused(run, tmp_path, "prove", *files, "--r1cs", other)
        assert str(files[0]) in error and str(other) in error


PROVE_TWICE = """
import os, sys
from snarkline.cli import main
command, first, second = sys.argv[0], sys.argv[1:5], sys.argv[5:]
for words, user in (first, None), (second, 65534):
    if user is not None:  # everything is imported: this user need not be able to read the interpreter's own files
        os.setgroups([]), os.setgid(user), os.setuid(user)
    sys.argv = [command, "prove", *words, "--quiet"]
    try:
        main()
    except SystemExit as end:
        if user is not None:
            raise
        assert end.code == 0
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("unreadable", ["key", "witness", "r1cs", "folder"])
def test_a_file_that_may_not_be_read(bn128: Path, tmp_path: Path, unreadable: str) -> None:
    """As another user, since root may read everything."""
    folder = Path(tempfile.mkdtemp(prefix="snarkline-test-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        (folder / "out").mkdir()
        (folder / "out").chmod(0o777)
        names = {"key": "circuit.zkey", "witness": "circuit.wtns", "r1cs": "circuit.r1cs"}
        for name in names.values():
            shutil.copy(bn128 / name, folder / name)
        if unreadable == "folder":
            (folder / "inner").mkdir(mode=0o700)
            names["key"] = "inner/circuit.zkey"
        else:
            (folder / names[unreadable]).chmod(0o000)
        words = [[at / "circuit.zkey", at / "circuit.wtns", "--r1cs", at / "circuit.r1cs"] for at in (bn128, folder)]
        words[1][0] = folder / names["key"]
        command = [sys.executable, "-c", PROVE_TWICE, *map(str, words[0] + words[1])]
        done = subprocess.run(command, cwd=folder / "out", capture_output=True, text=True, check=False)
        expected = folder / names["key" if unreadable == "folder" else unreadable]
        assert (done.returncode, done.stderr) == (2, f"error: {expected}: permission denied\n")
    finally:
        shutil.rmtree(folder)
