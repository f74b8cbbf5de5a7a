"""snarkjs and an EVM, run through node. `make test` installs them in tests/node; without them the tests skip."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NODE = Path(__file__).parent.parent / "node"


def run(script: Path, *arguments: object, stdin: str = "") -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if not (NODE / "node_modules").is_dir():
        pytest.skip("snarkjs is not installed (npm ci --prefix tests/node)")
    command = [node, str(script), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snarkjs(*arguments: object) -> str:
    """Runs snarkjs; it must end with 0."""
    return run(NODE / "node_modules" / "snarkjs" / "cli.js", *arguments)


def evm(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compiles and deploys contracts, and calls verifyProof of each: see tests/node/evm.mjs."""
    answers: list[dict[str, Any]] = json.loads(run(NODE / "evm.mjs", stdin=json.dumps(jobs)))
    return answers
