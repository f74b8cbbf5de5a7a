"""The release experiment: its rows are true to what happened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pytest
from memory_helpers import MIB
from rich.console import Console

from snarkline.cli.bench.release import of_runs, policy_table
from snarkline.errors import InputError
from snarkline.memory import Release
from snarkline.memory import experiment as e
from snarkline.native import core

KEYS = {
    *("policy", "side", "pages", "bytes", "inner_s", "wrapper_s", "teardown_s", "reclaimed_s"),
    *("stall_map_p999_s", "stall_map_max_s", "stall_python_p999_s", "stall_python_max_s", "peak_rss_bytes"),
}


def run(policy: str, side: str = "both", mib: int = 256, **options: object) -> e.Row:
    return e.measure_fresh(e.Run(policy, side, "4k", mib * MIB, 2, 0.05, window_s=0.2, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [e.CONTROL, e.NUMPY, *(policy.value for policy in Release)])
def test_rows_are_consistent(policy: str) -> None:
    row = run(policy, "caller" if policy == e.NUMPY else "both", 32)
    assert row.keys() >= KEYS
    assert 0.05 <= row["inner_s"] <= row["wrapper_s"]
    assert row["inner_s"] + row["teardown_s"] <= row["wrapper_s"] + 0.001
    assert 0 <= row["stall_map_p999_s"] <= row["stall_map_max_s"]
    assert 0 <= row["stall_python_p999_s"] <= row["stall_python_max_s"]
    assert row["bytes"] * 0.9 < row["peak_rss_bytes"]


def test_sync_shows_the_ghost_and_detached_does_not() -> None:
    sync, detached, recycle = run("sync"), run("detached"), run("recycle")
    assert sync["teardown_s"] > 0.005
    assert detached["teardown_s"] < sync["teardown_s"] / 3
    assert recycle["teardown_s"] < sync["teardown_s"] / 3
    assert detached["reclaimed_s"] > detached["teardown_s"]


def test_clear_cures_nothing_and_clearing_the_capacity_waits_earlier() -> None:
    clear, capacity = run("clear"), run("clear-capacity")
    assert clear["teardown_s"] > 0.005
    assert capacity["teardown_s"] < clear["teardown_s"] / 3
    assert capacity["reclaimed_s"] > 0.005


def test_the_report_names_the_ghost_unasked() -> None:
    report = e.report_fresh(e.Run("sync", "both", "4k", 256 * MIB, 2, 0.05))
    ghosts = [line for line in report.splitlines() if line.endswith("<- ghost")]
    assert any("teardown" in line and "released" in line for line in ghosts), report
    report = e.report_fresh(e.Run("recycle", "both", "4k", 256 * MIB, 2, 0.05))
    assert "<- ghost" not in report


def test_progress_and_estimate() -> None:
    runs = [e.Run("sync", "both", "4k", 256 * MIB, 2, 0.5, window_s=1.0)] * 3
    heard: list[str] = []
    row = {"inner_s": 1.0, "peak_rss_bytes": 1}
    assert len(e.repeat(runs, 2, lambda run: row, heard.append)) == 3
    assert heard == ["1/6", "2/6", "3/6", "4/6", "5/6", "6/6"]
    assert e.estimate_s(runs[:1]) == pytest.approx(e.estimate_s(runs) / 3)
    assert 1.5 < e.estimate_s(runs[:1]) < 4


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_cuts_nothing(width: int) -> None:
    row = {"policy": "detached", "side": "caller", "secret": True, "inner_s": 123.45, "wrapper_s": 999.0}
    row |= {"teardown_s": 12.345, "reclaimed_s": 12.345}
    row |= {f"stall_{name}_{what}_s": 1.2345 for name in ("map", "python") for what in ("p999", "max")}
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(policy_table([row], of_runs(1)))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert max(map(len, lines)) <= width
    (found,) = (line for line in lines if "detached, wiped" in line)
    assert " ".join(found.split()) == "detached, wiped caller 123.45 12345 709 12345 1234/1234 1234/1234"


def test_figures_of_one_run_are_no_medians() -> None:
    assert of_runs(1) == "one run of each kind"
    assert of_runs(2) == "medians of 2 runs"


def test_shares_of_the_sides() -> None:
    sides = {side: e.Run("sync", side, "4k", 167 * MIB, 2) for side in e.SIDES}
    assert (sides["native"].native_bytes, sides["native"].caller_bytes) == (37 * MIB, 0)
    assert (sides["caller"].native_bytes, sides["caller"].caller_bytes) == (0, 130 * MIB)
    assert (sides["both"].native_bytes, sides["both"].caller_bytes) == (37 * MIB, 130 * MIB)


def test_the_plan_has_every_policy_on_every_side() -> None:
    policies = [policy.value for policy in Release]
    plan = e.plan(policies, e.Run("sync", "both", "4k", MIB, 2))
    kinds = {(run.policy, run.side) for run in plan if not run.secret}
    assert kinds == {(policy, side) for policy in [e.CONTROL, *policies] for side in e.SIDES}
    assert {run.policy for run in plan if run.secret} == {"detached", "recycle"}


def test_the_sweep_has_both_page_sizes_and_eight_sizes() -> None:
    plan = e.sweep_plan(["sync", "recycle"], e.Run("sync", "both", "4k", 8 * MIB, 2))
    kinds = {(run.policy, run.pages, run.n_bytes) for run in plan}
    assert kinds == {(p, s, n * MIB) for p in ("sync", "recycle") for s in ("4k", "2m") for n in range(1, 9)}


def test_medians() -> None:
    rows = [
        {"policy": "sync", "bytes": 7, "teardown_s": t, "peak_rss_bytes": p} for t, p in [(3.0, 1), (1.0, 5), (2.0, 9)]
    ]
    assert e.medians(rows) == {"policy": "sync", "bytes": 7, "teardown_s": 2.0, "peak_rss_bytes": 5, "runs": 3}


def test_what_does_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"needs 1048576.00 GiB of memory; .* GiB are free"):
        e.require_memory(1 << 50)


def test_help_names_the_policies() -> None:
    command = [sys.executable, "-m", "snarkline", "bench", "release", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert all(policy.value in shown.stdout for policy in Release)


def test_the_command_prints_rows() -> None:
    command = [sys.executable, "-c", "from snarkline.cli import main; main()", "bench", "release"]
    options = ["--gib", "0.02", "--runs", "1", "--work", "0.01", "--window", "0.1", "--release", "recycle", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["rows"]
    assert [row["policy"] for row in rows] == ["control"] * 3 + ["recycle"] * 4
    assert all(row.keys() >= KEYS for row in rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--release", "later"], "--release: expected all or sync, .* found 'later'"),
        (["--gib", "0"], "--gib: expected a number of GiB from 0.001 to 1048576, found 0.0"),
        (["--gib", "999999"], "needs 999999.00 GiB of memory; .* GiB are free"),
    ],
)
def test_the_command_refuses(options: list[str], message: str) -> None:
    command = [sys.executable, "-c", "from snarkline.cli import main; main()", "bench", "release", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr


@pytest.mark.slow
def test_the_map_probe_keeps_its_last_rounds() -> None:
    """It holds 2^18 of them, some 52 s at the interval of an experiment; here it makes more in some seconds."""
    probe, begun = core.MapProbe(0), time.monotonic_ns()
    time.sleep(15)
    rounds = probe.stop()
    starts = [start for start, _ in rounds]
    assert starts == sorted(starts) and time.monotonic_ns() - starts[-1] < 5e9
    assert 0 < len(rounds) <= 1 << 18 and starts[0] >= begun
