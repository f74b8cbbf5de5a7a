"""Command lines that are parsed without typer give what typer gives, or are left to it."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from snarkline.cli.app import _with_typers_own
from snarkline.cli.entry import COMMANDS
from snarkline.cli.quick import parse


def command_named(name: str) -> Any:
    return getattr(import_module(f"snarkline.cli.{COMMANDS[name]}"), name)


def through_typer(command: Any, words: list[str]) -> dict[str, Any] | None:
    """What typer calls the command with; None for a command line that it refuses."""
    seen: dict[str, Any] = {}

    def record(**arguments: Any) -> None:
        seen.update(arguments)

    record.__signature__ = inspect.signature(command)  # type: ignore[attr-defined]
    record.__annotations__ = get_type_hints(command, include_extras=True)
    program = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
    program.command()(_with_typers_own(record))
    try:
        program(words, standalone_mode=False)
    except Exception:
        return None
    return seen or None


PLAIN = [
    "prove k.zkey w.wtns",
    "prove k.zkey - -o - --public p.json",
    "prove k.zkey --wasm c.wasm --input=i.json --threads 2 --strict --no-check -q --json",
    "prove k.zkey w.wtns --backend cpu --release sync --trace t.html --r1cs c.r1cs",
    "verify vk.json public.json proof.json a b --quiet",
    "witness c.wasm - --output w.wtns",
    "setup c.r1cs -o c.zkey --vk vk.json",
    "check --sym=c.sym c.r1cs w.wtns",
    "export c.zkey --solidity V.sol",
    "info file --json",
    "estimate c.r1cs --threads=7",
    "demo",
    "demo -o out",
]
NOT_PLAIN = [
    "prove",
    "prove --help",
    "prove k.zkey w.wtns more",
    "prove k.zkey w.wtns --threads 0",
    "prove k.zkey w.wtns --threads two",
    "prove k.zkey w.wtns --backend gpu",
    "prove k.zkey w.wtns -o",
    "prove k.zkey w.wtns -oproof.json",
    "prove k.zkey w.wtns --quiet=yes",
    "prove k.zkey w.wtns -o=p.json",
    "prove k.zkey w.wtns --nothing",
    "prove -- k.zkey w.wtns",
    "verify vk.json",
    "setup c.r1cs",
]


@pytest.mark.parametrize("line", PLAIN)
def test_plain_command_lines(line: str) -> None:
    name, *words = line.split()
    arguments = parse(command_named(name), words)
    assert arguments is not None
    assert arguments == through_typer(command_named(name), words)


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_the_rest_is_left_to_typer(line: str) -> None:
    name, *words = line.split()
    assert parse(command_named(name), words) is None


WORDS = [
    *(
        "a",
        "b.json",
        "-",
        "7",
        "--",
        "-x",
        "-o",
        "out",
        "--json",
        "--quiet",
        "-q",
        "--threads",
        "--threads=3",
        "--vk=v",
    ),
    *(
        "--backend=cpu",
        "--release",
        "sync",
        "--output",
        "--output=",
        "--wasm",
        "--input",
        "--strict",
        "-qq",
        "--no-json",
    ),
    "",
]


@pytest.mark.parametrize("name", COMMANDS)
def test_words_at_random(name: str) -> None:
    """What is taken as plain is what typer makes of it."""
    rng, command = random.Random(name), command_named(name)
    taken = 0
    for _ in range(400):
        line = rng.sample(WORDS, rng.randrange(6))
        arguments = parse(command, line)
        if arguments is not None:
            taken += 1
            assert arguments == through_typer(command, line), line
    assert taken > 0


def test_proving_loads_neither_typer_nor_openssl(vectors: Path, tmp_path: Path) -> None:
    folder = vectors / "circom" / "multiplier_bn128"
    script = (
        "import sys\nfrom snarkline.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = 'typer', 'rich', 'pydantic', 'click', 'argparse', 'wasmtime', 'asyncio', '_hashlib'\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    command = [sys.executable, "-c", script, "prove", folder / "circuit.zkey", folder / "circuit.wtns", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_option_of_every_command_reaches_typer() -> None:
    """The annotations of `options` are all turned into typer's: none is taken for a parameter without a name."""
    from snarkline.cli.app import app

    def check(command: Any) -> None:
        for parameter in command.params:
            if parameter.name == "as_json":
                assert "--json" in parameter.opts
        for inner in getattr(command, "commands", {}).values():
            check(inner)

    check(typer.main.get_command(app))
