"""Perfetto's format, the page, files, the report and the commands that show them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from snarkline.cli.app import app
from snarkline.errors import FormatError
from snarkline.trace import Timeline, device_span, span
from snarkline.trace.perfetto import trace_events
from snarkline.trace.report import changes, is_ghost, rows


class Clock:
    name = "gpu0"

    def record(self) -> float:
        return time.monotonic()

    def elapsed(self, begin: float, end: float) -> float:
        return end - begin


class Slow:
    def __del__(self) -> None:
        time.sleep(0.05)


@span("prove </script>")
def prove() -> int:
    held = Slow()
    with span("ntt", items=8, form="x"), device_span(Clock(), "kernel"):
        time.sleep(0.03)
    return 0 if held else 1


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    with Timeline("job") as found:
        prove()
    return found


def test_perfetto(timeline: Timeline) -> None:
    document = json.loads(json.dumps(trace_events(timeline)))
    events = document["traceEvents"]
    slices = {e["name"]: e for e in events if e["ph"] == "X"}
    assert set(slices) == {"job", "prove </script>", "ntt", "kernel", "teardown"}
    outer, teardown = slices["prove </script>"], slices["teardown"]
    assert teardown["dur"] >= 50_000
    assert teardown["ts"] + teardown["dur"] == pytest.approx(outer["ts"] + outer["dur"])
    assert slices["ntt"]["args"]["items"] == 8 and slices["ntt"]["args"]["form"] == "x"
    assert slices["kernel"]["tid"] != outer["tid"]
    assert {e["name"] for e in events if e["ph"] == "C"} == {"RSS", "arena bytes", "pending releases"}
    lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert lanes == {"MainThread", "gpu0"}


def test_page_needs_nothing_else(timeline: Timeline, tmp_path: Path) -> None:
    timeline.save(tmp_path / "job.html")
    text = (tmp_path / "job.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']""", text) and "http" not in text
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert {s[1] for s in json.loads(data.group(1))["spans"]} >= {"prove </script>", "ntt", "kernel"}
    assert "{{" not in text and "prove &lt;/script&gt;" in text and "&lt;- ghost" in text


def test_report_names_the_ghost(timeline: Timeline) -> None:
    lines = timeline.report().splitlines()
    (ghost,) = (line for line in lines if "<- ghost" in line)
    assert "teardown" in ghost
    assert any("prove" in line and "wrapper" in line for line in lines)
    assert any("kernel" in line and "on gpu0" in line for line in lines)


def test_rows_add_up(timeline: Timeline) -> None:
    (outer,) = (r for r in rows(timeline) if r.name == "prove </script>")
    parts = [r for r in rows(timeline) if r.depth == outer.depth + 1 and r.name in ("ntt", "teardown", "unattributed")]
    inside = [r.seconds for r in parts]
    assert sum(inside) == pytest.approx(outer.seconds, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "share", "ghost"),
    [(0.011, 0.001, True), (0.002, 0.02, True), (0.002, 0.001, False), (1e-5, 0.5, False)],
)
def test_what_is_a_ghost(seconds: float, share: float, ghost: bool) -> None:
    assert is_ghost(seconds, share) is ghost


def test_files_are_read_back(timeline: Timeline, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    timeline.save(path)
    again = Timeline.load(path)
    assert again.spans == timeline.spans
    assert again.counters == timeline.counters and again.waits == timeline.waits
    assert again.report() == timeline.report()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "snarkline-timeline-1"}', "\x00\xff"])
def test_broken_files_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match=r"bad\.json"):
        Timeline.load(path)


def test_truncated_and_mutated_files_never_crash(timeline: Timeline, tmp_path: Path) -> None:
    whole = json.dumps(timeline.to_json())
    data = timeline.to_json()
    data["spans"][0]["begin"] = "soon"
    for text in (whole[: len(whole) // 2], whole.replace('"spans"', '"span"'), json.dumps(data)):
        path = tmp_path / "bad.json"
        path.write_text(text)
        with pytest.raises(FormatError):
            Timeline.load(path)


def test_changes_pair_lines_by_their_names() -> None:
    def job(*names: str) -> Timeline:
        with Timeline("job") as found:
            for name in names:
                with span(name):
                    pass
        return found

    found = {c.path[-1]: c for c in changes(job("a", "b"), job("a", "c"))}
    assert found["a"].before is not None and found["a"].after is not None
    assert found["b"].after is None and found["c"].before is None
    assert found["c"].difference > 0 > found["b"].difference


def test_commands(timeline: Timeline, tmp_path: Path) -> None:
    path, page = tmp_path / "job.json", tmp_path / "job.html"
    timeline.save(path)
    runner = CliRunner()
    shown = runner.invoke(app, ["trace", "show", str(path)])
    assert shown.exit_code == 0 and "<- ghost" in shown.output
    assert runner.invoke(app, ["trace", "show", str(path), "-o", str(page)]).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    compared = runner.invoke(app, ["trace", "diff", str(path), str(path)])
    assert compared.exit_code == 0 and "ntt" in compared.output


def test_ghosts_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\nclass Slow:\n    def __del__(self): time.sleep(0.05)\n"
        "def owner():\n    held = Slow()\nowner()\nprint('the program speaks', sys.argv[1:])\n"
    )
    runner = CliRunner()
    found = runner.invoke(app, ["ghosts", "--json", str(script), "--json", "x"])
    assert found.exit_code == 0
    (row,) = json.loads(found.stdout)
    assert set(row) == {"function", "file", "line", "teardown_s", "released_bytes", "calls"}
    assert (row["function"], row["file"], row["line"], row["calls"]) == ("owner", str(script), 4, 1)
    assert "the program speaks ['--json', 'x']" in capfd.readouterr().err
    shown = runner.invoke(app, ["ghosts", str(script)])
    assert "owner" in shown.output and "times" in shown.output
