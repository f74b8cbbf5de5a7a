"""`snarkline porep` and `snarkline bench porep`, as processes: what they refuse, and the whole path."""

from __future__ import annotations

import importlib
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reference import VECTORS

from snarkline.filecoin.registry import sector_size

porep_bench = importlib.import_module("snarkline.cli.bench.porep")  # the package has its command of that name

SECTOR = VECTORS / "seal_2KiB"
STEM = sector_size("2KiB").parameter_stem()


# A command that prints the peak of its resident memory at its end.
CHILD = """
import re
from pathlib import Path
from snarkline.cli import main
try:
    main()
finally:
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10)
"""


def snarkline(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snarkline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def done(*arguments: object) -> dict[str, Any]:
    """The JSON of a command that must succeed."""
    process = snarkline(*arguments, "--json")
    assert process.returncode == 0, process.stderr
    return dict(json.loads(process.stdout))


@pytest.fixture
def c1(tmp_path: Path) -> Path:
    (tmp_path / "c1.json").write_bytes(lzma.decompress((SECTOR / "c1.json.xz").read_bytes()))
    return tmp_path / "c1.json"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--params", "{folder}"], f"no {STEM}.params in "),
        (["--params", "{folder}", "--sector-size", "8MiB"], r"no v28-stacked-.*\.params in "),
        (["--params", "{folder}/none.params"], f"no such file; 2KiB needs {STEM}.params"),
        (["--params", "{folder}/k.params"], "offset 0: alpha_g1: 1 points.*expected 96 bytes, found 0 bytes left"),
        (["--params", "{folder}/k.params", "--sector-size", "32GiB"], r"\$\.vanilla_proofs.*an array of 10 items"),
        (["--params", "{folder}/k.params", "-o", "{folder}/c1.json"], "a path that is no input"),
        (["--params", "{folder}/k.params", "--devices", "x"], "--devices: expected numbers separated by commas"),
        (["--params", "{folder}/k.params", "--devices", "0", "--classic-host"], "--classic-host takes no .*--devices"),
    ],
)
def test_prove_refuses(c1: Path, options: list[str], message: str) -> None:
    (c1.parent / "k.params").touch()
    process = snarkline("porep", "prove", c1, *(option.format(folder=c1.parent) for option in options))
    assert process.returncode == 2 and process.stderr.count("\n") == 1, process.stderr
    assert re.search(message, process.stderr), process.stderr


def test_tampered_openings_are_refused_before_parameters_are_read(c1: Path) -> None:
    document = json.loads(c1.read_text())
    openings = document["vanilla_proofs"][0]
    openings[0], openings[1] = openings[1], openings[0]
    c1.write_text(json.dumps(document))
    (c1.parent / "k.params").touch()
    process = snarkline("porep", "prove", c1, "--params", c1.parent / "k.params")
    assert process.returncode == 2 and "partition 0, challenge 0" in process.stderr, process.stderr


def test_bench_refuses(c1: Path) -> None:
    process = snarkline("bench", "porep", c1, "--params", c1.parent)
    assert process.returncode == 2 and f"no {STEM}.params" in process.stderr
    (c1.parent / "k.params").touch()
    process = snarkline("bench", "porep", c1, "--params", c1.parent / "k.params")
    assert process.returncode == 2 and "alpha_g1: 1 points" in process.stderr
    process = snarkline("bench", "porep", c1.parent / "none.json", "--params", c1.parent / "k.params")
    assert process.returncode == 2 and "none.json: no such file" in process.stderr
    process = snarkline("bench", "porep", c1, "--params", c1.parent, "--release", "later")
    assert process.returncode == 2 and "--release: expected all or sync" in process.stderr


def test_a_row_of_the_report_has_a_cell_for_each_heading() -> None:
    row = {"layout": "classic", "policy": "sync", "kernels_s": 1.0, "inner_s": 2.0, "wrapper_s": 2.5}
    table = porep_bench._table([row | {"teardown_s": 0.5, "whole_s": 3.0}], "title")
    headings = [str(column.header).replace("\n", " ") for column in table.columns]
    cells = [next(iter(column.cells)) for column in table.columns]
    assert dict(zip(headings, cells, strict=True)) == {
        "layout": "classic", "policy": "sync", "kernels s": "1.00", "inner s": "2.00", "wrapper s": "2.50",
        "teardown ms": "500.0", "beyond inner %": "25.00%", "whole s": "3.00",
    }  # fmt: skip


def test_verify_tells_a_proof_from_a_false_one(c1: Path) -> None:
    vk = SECTOR / "development.vk"
    assert done("porep", "verify", c1, SECTOR / "proof.bin", "--vk", vk) == {"valid": True}
    data = (SECTOR / "proof.bin").read_bytes()
    other = c1.parent / "other.bin"
    other.write_bytes(data[144:] + data[48:144] + data[:48])
    process = snarkline("porep", "verify", c1, other, "--vk", vk)
    assert process.returncode == 1 and "INVALID" in process.stdout
    other.write_bytes(data[:-1])
    process = snarkline("porep", "verify", c1, other, "--vk", vk)
    assert process.returncode == 2 and "expected 192 bytes for 2KiB, found 191" in process.stderr


def piped(data: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """A command that reads standard input and writes bytes."""
    return subprocess.run([sys.executable, "-m", "snarkline", *map(str, arguments)], input=data, capture_output=True)


def test_seal_reads_and_writes_streams(tmp_path: Path) -> None:
    facts = json.loads((SECTOR / "seal.json").read_text())
    data, options = (SECTOR / "data").read_bytes(), ["--prover-id", facts["prover_id"], "--sector-id"]
    options += [facts["sector_id"], "--ticket", facts["ticket"], "--seed", facts["seed"]]
    sealed = piped(data, "porep", "seal", "-", "-o", "-", "--replica", tmp_path / "replica", "--json", *options)
    assert sealed.returncode == 0, sealed.stderr
    assert sealed.stdout == lzma.decompress((SECTOR / "c1.json.xz").read_bytes())
    assert json.loads(sealed.stderr)["comm_r"] == facts["comm_r"]
    assert (tmp_path / "replica").read_bytes() == (SECTOR / "sealed").read_bytes()
    replica = piped(data, "porep", "seal", "-", "-o", tmp_path / "c1.json", "--replica", "-", *options)
    assert replica.stdout == (SECTOR / "sealed").read_bytes()
    assert replica.stderr.startswith(b"sealed: comm_r ")


@pytest.mark.parametrize(
    ("n", "found"), [(2033, "at most 2032 bytes, found more"), (2031, "a 2KiB sector holds, .*2031")]
)
def test_seal_refuses_streams_of_another_size(n: int, found: str) -> None:
    process = piped(bytes(n), "porep", "seal", "-", "-o", "-")
    assert (process.returncode, process.stdout) == (2, b"")
    assert re.search(f"standard input: size: expected .*{found}", process.stderr.decode()), process.stderr


def test_verify_reads_either_file_from_a_stream(c1: Path) -> None:
    vk, proof = SECTOR / "development.vk", SECTOR / "proof.bin"
    from_c1 = piped(c1.read_bytes(), "porep", "verify", "-", proof, "--vk", vk)
    assert (from_c1.returncode, from_c1.stdout) == (0, f"{proof}: valid\n".encode())
    from_proof = piped(proof.read_bytes(), "porep", "verify", c1, "-", "--vk", vk)
    assert (from_proof.returncode, from_proof.stdout) == (0, b"standard input: valid\n")
    cut = piped(proof.read_bytes()[:-1], "porep", "verify", c1, "-", "--vk", vk)
    assert cut.returncode == 2 and b"standard input: expected 192 bytes for 2KiB, found 191" in cut.stderr
    both = piped(b"", "porep", "verify", "-", "-", "--vk", vk)
    assert both.returncode == 2 and b"only one input can be standard input" in both.stderr


def test_prove_reads_a_stream(c1: Path) -> None:
    (c1.parent / "k.params").touch()
    sound = piped(c1.read_bytes(), "porep", "prove", "-", "--params", c1.parent / "k.params", "-o", "-")
    assert (sound.returncode, sound.stdout) == (2, b"") and b"alpha_g1: 1 points" in sound.stderr
    cut = piped(c1.read_bytes()[:-1], "porep", "prove", "-", "--params", c1.parent / "k.params", "-o", "-")
    assert cut.returncode == 2 and b"standard input: document: expected JSON" in cut.stderr


def hollow_parameters(folder: Path) -> Path:
    """A file with the verifying key and the counts of the 2 KiB circuit's parameters, and holes for points."""
    path = folder / "hollow.params"
    path.write_bytes((SECTOR / "development.vk").read_bytes())
    for count, size in ((4_194_303, 96), (2_685_673, 96), (2_674_948, 96), (685_522, 96), (685_522, 192)):
        with path.open("ab") as file:
            file.write(count.to_bytes(4, "big"))
            file.truncate(file.tell() + count * size)
    return path


def test_a_cap_that_is_too_small_is_refused_before_parameters_are_read(c1: Path) -> None:
    """1,063 MiB of points stay in memory, 384 are a, b and c, 82 the witness."""
    path = hollow_parameters(c1.parent)
    process = snarkline("porep", "prove", c1, "--params", path, "--max-memory", "1G", "--threads", "2")
    assert process.returncode == 2, process.stderr
    found = re.search(
        r"(\d+) bytes were asked for within a budget of 1073741824 bytes .*: --max-memory is below", process.stderr
    )
    assert found is not None and str(path) in process.stderr
    assert 1063 + 384 + 82 < int(found[1]) / 2**20 < 1800
    process = snarkline("porep", "prove", c1, "--params", path, "--max-memory", "2G")
    assert process.returncode == 2 and "(0, 0), which is no point" in process.stderr, process.stderr
    process = snarkline("porep", "prove", c1, "--params", path, "--max-memory", "2G", "--classic-host")
    assert process.returncode == 2 and "--classic-host takes no --max-memory" in process.stderr


def test_params_are_files() -> None:
    process = snarkline("porep", "params", "-o", "-")
    assert process.returncode == 2 and "standard output: output path: expected the path of a file" in process.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_a_file_to_a_verified_proof(tmp_path: Path) -> None:
    """The commands of docs/porep.md in both layouts, and the report under two policies. RESULTS.md has the last run."""
    c1, proof, params = tmp_path / "c1.json", tmp_path / "proof.bin", tmp_path / f"{STEM}.params"
    done("porep", "seal", SECTOR / "data", "-o", c1)
    done("porep", "params", "-o", tmp_path)
    proofs = set()
    for options in ([], ["--classic-host", "--release", "detached"], ["--classic-host", "--release", "sync"]):
        done("porep", "prove", c1, "--params", tmp_path, "-o", proof, *options)
        assert done("porep", "verify", c1, proof, "--vk", tmp_path) == {"valid": True}
        proofs.add(proof.read_bytes())
    streamed = piped(c1.read_bytes(), "porep", "prove", "-", "--params", tmp_path, "-o", "-")
    assert piped(streamed.stdout, "porep", "verify", c1, "-", "--vk", tmp_path).returncode == 0
    assert b"192 bytes written to standard output" in streamed.stderr
    assert len(proofs) == 3  # blinding is drawn each time
    refused = snarkline("porep", "prove", c1, "--params", tmp_path, "--max-memory", "1G")
    (needed,) = re.findall(r"(\d+) bytes were asked for", refused.stderr)
    cap = int(needed) + (1 << 20)
    command = [sys.executable, "-c", CHILD, "porep", "prove", c1, "--params", tmp_path, "-o", proof, "--quiet"]
    capped = subprocess.run([*map(str, command), "--max-memory", str(cap)], capture_output=True, text=True, check=True)
    assert int(capped.stdout) <= cap
    assert done("porep", "verify", c1, proof, "--vk", tmp_path) == {"valid": True}
    changed = json.loads(c1.read_text())
    changed["vanilla_proofs"][0][1]["labeling_proofs"][0]["parents"][0][0] ^= 1
    c1.write_text(json.dumps(changed))
    process = snarkline("porep", "prove", c1, "--params", params, "-o", tmp_path / "none.bin", "--classic-host")
    assert process.returncode == 2 and not (tmp_path / "none.bin").exists()
    assert re.search(r"partition 0, challenge 1 \(node \d+\): layer 1: the parents of its label", process.stderr)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_ghost_is_there_under_sync_and_gone_under_detached(c1: Path) -> None:
    folder = c1.parent
    done("porep", "params", "-o", folder)
    options = ["--classic-host", "--circuits", 2, "--release", "sync,detached", "--trace", folder / "trace"]
    result = done("bench", "porep", c1, "--params", folder, *options)
    rows = {(row["layout"], row["policy"]): row for row in result["rows"]}
    assert len(rows) == 5 and len({row["proofs_sha256"] for row in rows.values()}) == 1
    assert all(row["verified"] == 2 for row in rows.values())
    assert rows["classic", "sync"]["teardown_s"] > 0.02
    after = rows["classic", "detached"]
    assert after["wrapper_s"] - after["inner_s"] <= 0.004 * after["inner_s"]
    names = {f"{layout}-{policy}{suffix}" for layout, policy in rows for suffix in (".json", ".html")}
    assert {path.name for path in (folder / "trace").iterdir()} == names
