"""The example circuits from Python to proofs that snarkjs verifies, by the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from snarkline.circuit import profile
from snarkline.circuit.compiling import Circuit
from snarkline.circuit.profiling import to_html
from snarkline.cli.circuit import load_circuit, read_input
from snarkline.cli.entry import main
from snarkline.errors import FormatError
from snarkline.formats import load_r1cs
from snarkline.formats.circom import load_symbols, load_witness, save_r1cs

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "circuits"
CIRCUITS = ["merkle_poseidon.py:membership", "sha256_preimage.py:preimage", "auction.py:sealed_bid"]


def snarkline(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["snarkline", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def circuit_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Example circuits with a cache of templates of their own, and the folder as the current one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return lambda name: EXAMPLES / name


def input_of(name: str) -> Path:
    return (EXAMPLES / name.split(":")[0]).with_suffix(".json")


@pytest.mark.snarkjs
@pytest.mark.parametrize("name", CIRCUITS)
def test_snarkjs_takes_everything(
    name: str, circuit_of: Any, monkeypatch: pytest.MonkeyPatch, snarkjs: Any, tmp_path: Path
) -> None:
    circuit, values = circuit_of(name), input_of(name)
    assert snarkline(monkeypatch, "setup", circuit, "-o", "k.zkey", "--vk", "vk.json", "-q") == 0
    assert snarkline(monkeypatch, "prove", circuit, "--key", "k.zkey", "--input", values, "-q") == 0
    assert snarkline(monkeypatch, "verify", "vk.json", "public.json", "proof.json", "-q") == 0
    done = snarkjs("groth16", "verify", tmp_path / "vk.json", tmp_path / "public.json", tmp_path / "proof.json")
    assert "OK!" in done.stdout, done.stdout
    written = ("--r1cs", "c.r1cs", "--sym", "c.sym", "--wtns", "c.wtns", "--input", values)
    assert snarkline(monkeypatch, "compile", circuit, *written, "-q") == 0
    done = snarkjs("wtns", "check", tmp_path / "c.r1cs", tmp_path / "c.wtns")
    assert "WITNESS IS CORRECT" in done.stdout, done.stdout


@pytest.mark.parametrize("name", CIRCUITS)
def test_exports_are_the_circuit(name: str, circuit_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ("--r1cs", "c.r1cs", "--sym", "c.sym", "--wtns", "c.wtns", "--input", input_of(name), "-q")
    assert snarkline(monkeypatch, "compile", circuit_of(name), *options) == 0
    circuit = load_circuit(EXAMPLES / name)
    assert isinstance(circuit, Circuit)
    compiled = circuit.compile()
    flat, read = compiled.r1cs.flatten(), load_r1cs(tmp_path / "c.r1cs")
    assert (read.n_wires, read.n_public, read.n_outputs) == (flat.n_wires, flat.n_public, flat.n_outputs)
    assert read.n_constraints == flat.n_constraints
    for side in "abc":
        ours, theirs = getattr(flat.matrices, side), getattr(read.matrices, side)
        rows = [*range(0, ours.n_rows, 61), ours.n_rows - 1]
        assert [sorted(ours.row(k)) for k in rows] == [sorted(theirs.row(k)) for k in rows]
    save_r1cs(flat, tmp_path / "flat.r1cs")
    assert read.n_public == load_r1cs(tmp_path / "flat.r1cs").n_public
    values, source = read_input(input_of(name))
    assert load_witness(tmp_path / "c.wtns").values.to_ints() == compiled.witness(values, source).values.to_ints()
    assert load_symbols(tmp_path / "c.sym") == {wire: f"main.{symbol}" for wire, symbol in compiled.symbols()}


def test_a_wrong_input_is_explained(
    circuit_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    values = json.loads(input_of("merkle_poseidon.py").read_text()) | {"index": [0, 0, 0, 0]}
    (tmp_path / "wrong.json").write_text(json.dumps(values))
    name = circuit_of("merkle_poseidon.py:membership")
    assert snarkline(monkeypatch, "check", name, input_of("merkle_poseidon.py")) == 0
    assert re.fullmatch(r"all [\d,]+ constraints hold\n", capsys.readouterr().out)
    assert snarkline(monkeypatch, "check", name, "wrong.json") == 2
    message = capsys.readouterr().err
    assert "does not satisfy constraint" in message and "poseidon_level" in message and "root" in message
    assert str(values["root"]) not in message
    assert snarkline(monkeypatch, "check", name, "wrong.json", "--show-values") == 2
    assert str(values["root"]) in capsys.readouterr().err
    assert snarkline(monkeypatch, "setup", name, "-o", "k.zkey", "-q") == 0
    assert snarkline(monkeypatch, "prove", name, "--key", "k.zkey", "--input", "wrong.json") == 2
    assert "poseidon_level" in capsys.readouterr().err and not (tmp_path / "proof.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compile", "{}:nothing"], "expected a function nothing with @circuit, found circuits membership"),
        (["compile", "missing.py:x"], "missing.py: no such file"),
        (["compile", "{}"], "FILE.py:NAME"),
        (["compile", "broken.py:x"], "broken.py, line 1: invalid syntax"),
        (["compile", "raises.py:x"], "x: raises.py, line 5: ZeroDivisionError: division by zero"),
        (["compile", "{}:membership", "--sizes", "depth"], "--sizes: expected NAME=N"),
        (["compile", "{}:membership", "--sizes", "height=3"], "it has no parameter height"),
        (["compile", "{}:membership", "--curve", "bn255"], "--curve: expected one of bn254, bls12_381"),
        (["compile", "{}:membership", "--wtns", "w.wtns"], "--input INPUT.json and --wtns"),
        (["prove", "{}:membership"], "FILE.py:NAME --key KEY.zkey --input INPUT.json"),
        (["prove", "k.zkey", "--key", "k.zkey"], "FILE.py:NAME --key KEY.zkey --input INPUT.json"),
        (["compile", "{}:membership", "--r1cs", "{}"], "a path that is no input"),
    ],
)
def test_command_lines_that_are_refused(
    words: list[str], message: str, circuit_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.py").write_text("def (:\n")
    Path("raises.py").write_text("from snarkline.circuit import *\n\n@circuit\ndef x(cs):\n    return 1 / 0\n")
    file = circuit_of("merkle_poseidon.py")
    assert snarkline(monkeypatch, *(word.format(file) for word in words)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_profiles(circuit_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    name = circuit_of("sha256_preimage.py:preimage")
    assert snarkline(monkeypatch, "profile", name, "--html", "p.html") == 0
    shown = capsys.readouterr().out
    assert "sha256_compress" in shown and "schedule" in shown
    page = Path("p.html").read_text()
    assert "sha256_compress" in page and "http" not in page
    assert snarkline(monkeypatch, "profile", name, "--json") == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["constraints"] == sum(child["constraints"] for child in tree["children"])

    assert snarkline(monkeypatch, "compile", name, "--r1cs", "c.r1cs", "--sym", "c.sym", "-q") == 0
    assert snarkline(monkeypatch, "profile", "c.r1cs", "--sym", "c.sym", "--json") == 0
    flat = json.loads(capsys.readouterr().out)
    assert (flat["constraints"], flat["entries"]) == (tree["constraints"], tree["entries"])
    assert "sha256_compress" in json.dumps(flat) and "main" not in [child["name"] for child in flat["children"]]
    assert snarkline(monkeypatch, "profile", "c.r1cs", "--json") == 0
    assert json.loads(capsys.readouterr().out)["children"] == []


def test_a_page_is_safe_whatever_names_say() -> None:
    compiled = load_circuit(EXAMPLES / "auction.py:sealed_bid").compile()
    root = profile(compiled.r1cs, "</script><b>")
    assert "</script><b>" not in to_html(root)
    assert root.constraints == compiled.r1cs.n_constraints


def test_files_run_as_programs_of_their_own() -> None:
    for name in CIRCUITS:
        subprocess.run([sys.executable, EXAMPLES / name.split(":")[0]], check=True, timeout=60)


def test_a_folder_is_no_circuit(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(FormatError, match="found no circuit"):
        load_circuit(tmp_path / "empty.py:main")


def docs_blocks() -> list[str]:
    text = (EXAMPLES.parent.parent / "docs" / "circuits.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_docs_show_the_example() -> None:
    """Every line of Python that docs/circuits.md builds the example from is in the example, in the same order."""
    example = (EXAMPLES / "auction.py").read_text()
    shown = [block for block in docs_blocks() if "compile(" not in block]
    assert len(shown) == 6
    at = 0
    for part in [part.strip("\n") for block in shown for part in block.split("\n\n") if part.strip("\n")]:
        assert part in example[at:], part
        at = example.index(part, at) + len(part)


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_the_docs_run_as_they_are_pasted(
    circuit_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    *steps, use = docs_blocks()
    Path("auction.py").write_text("\n".join(steps))
    (tmp_path / "auction.json").write_text((EXAMPLES / "auction.json").read_text())
    subprocess.run([sys.executable, "-c", use], check=True, timeout=60)
    text = (EXAMPLES.parent.parent / "docs" / "circuits.md").read_text()
    step = text[text.index("**7. ") : text.index("**8. ")]
    commands = re.findall(r"^    snarkline (.*)$", step, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["setup", "prove", "verify"]
    for command in commands:
        assert snarkline(monkeypatch, *command.split()) == 0
    assert "proof.json: valid" in capsys.readouterr().out


def test_the_docs_show_what_check_says(
    circuit_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("auction.py").write_text((EXAMPLES / "auction.py").read_text())
    Path("low.json").write_text((EXAMPLES / "auction.json").read_text().replace("112", "113"))
    assert snarkline(monkeypatch, "check", "auction.py:sealed_bid", "low.json") == 2
    text = (EXAMPLES.parent.parent / "docs" / "circuits.md").read_text()
    assert f"    {capsys.readouterr().err}" in text
    assert snarkline(monkeypatch, "profile", "auction.py:sealed_bid") == 0
    assert "poseidon  1 instance\n" in capsys.readouterr().out


def test_the_docs_names_exist() -> None:
    """Gadgets that docs/circuits.md lists are in the modules that it names."""
    text = (EXAMPLES.parent.parent / "docs" / "circuits.md").read_text()
    table = text[text.index("## Gadgets") : text.index("## Templates")]
    module, found = "", 0
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 4 or cells[1] in ("module", "---", "words"):
            module = "" if len(cells) > 1 and cells[1] == "words" else module
            continue
        module = cells[1].strip("`") or module
        for name in re.findall(r"`([a-z0-9_]+)[`(]", cells[2]):
            if module:
                assert hasattr(import_module(f"snarkline.circuit.gadgets.{module}"), name), (module, name)
                found += 1
    assert found > 15
