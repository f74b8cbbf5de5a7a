"""The facts that every recorded result carries: commit, machine, date."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit() -> str:
    """The commit of the working tree, marked if it has changes."""
    head, dirty = (_git("rev-parse", "--short=12", "HEAD"), _git("status", "--porcelain", "src"))
    return (head or "unknown") + ("+changes" if dirty else "")


def _git(*words: str) -> str:
    """What git says; nothing outside a working tree."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def facts(known_commit: str | None = None) -> dict[str, Any]:
    """`known_commit`: for a machine that has the files without their history."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    flags = Path("/proc/cpuinfo").read_text()
    return {
        "commit": known_commit or commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "avx512_ifma": "avx512ifma" in flags,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def gpu_facts() -> dict[str, Any]:
    """Of the first GPU's driver and of the compiler of kernels."""
    from snarkline.backend.cuda.module import compiler_version

    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        versions = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    except FileNotFoundError:
        versions = []
    return {"driver": versions[0] if versions else "unknown", "nvrtc": compiler_version()}
