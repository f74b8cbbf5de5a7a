"""Perfetto's format, the page, files, the report and the commands that show them."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from snarkline.cli.app import app
from snarkline.errors import FormatError, InputError
from snarkline.trace import Timeline, device_span, span
from snarkline.trace.perfetto import trace_events
from snarkline.trace.report import changes, is_ghost, rows, table


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


def plain_timeline() -> dict[str, Any]:
    """A root, two spans below one another, and one sample of each sort."""

    def one(ident: int, parent: int, kind: str, name: str) -> dict[str, Any]:
        moments = {"begin": [ident * 10], "end": [1000 - ident * 10]}
        return {"id": ident, "parent": parent, "kind": kind, "name": name, "thread": 7, **moments}

    return {
        "format": "snarkline-timeline-1",
        "name": "plain",
        "threads": {"7": "main"},
        "dropped": 0,
        "spans": [one(1, 0, "timeline", "plain"), one(2, 1, "python", "outer"), one(3, 2, "native", "inner")],
        "counters": [[5, None, 0, 0], [50, 4096, 1, 2]],
        "waits": [[6, 7, -1, -1]],
        "releases": [[8, 9, 7, "munmap", 4096]],
    }


def test_a_file_by_hand_is_read() -> None:
    found = Timeline.from_json(plain_timeline())
    assert [(row.name, row.depth) for row in rows(found) if row.kind == "span"] == [
        ("plain", 0),
        ("outer", 1),
        ("inner", 2),
    ]


@pytest.mark.parametrize("parents", [(3, 2), (2, 2), (1, 3)])
def test_parents_in_a_cycle_are_refused(parents: tuple[int, int]) -> None:
    data = plain_timeline()
    data["spans"][1]["parent"], data["spans"][2]["parent"] = parents
    with pytest.raises(FormatError, match="cycle"):
        Timeline.from_json(data)


@pytest.mark.parametrize("idents", [(2, 2), (0, 3), (1, 3), (-4, 3)])
def test_ids_are_unique_and_positive(idents: tuple[int, int]) -> None:
    data = plain_timeline()
    data["spans"][1]["id"], data["spans"][2]["id"] = idents
    with pytest.raises(FormatError, match="unique and positive"):
        Timeline.from_json(data)


def test_spans_as_deep_as_a_file_may_have_them() -> None:
    data, below = plain_timeline(), plain_timeline()["spans"][2]
    data["spans"] += [{**below, "id": i, "parent": i - 1} for i in range(4, 501)]
    random.Random(5).shuffle(data["spans"])
    assert Timeline.from_json(data).report()
    data["spans"].append({**below, "id": 501, "parent": 500})
    with pytest.raises(FormatError, match="500 levels"):
        Timeline.from_json(data)


WRONG: dict[str, list[Any]] = {
    "id": [True, 1.5, "2", None, [], 2**70],
    "parent": [True, "1", None, 1.0],
    "thread": [True, "x", {}],
    "name": [1, None, []],
    "kind": ["ghost", 1, None, []],
    "begin": [[], [True], ["1"], 5, [1] * 12, [10**400]],
    "last": [None, [1.5]],
    "bytes": ["many", True, 1.5, []],
    "items": ["many"],
    "rss_end": ["much"],
    "error": [1],
    "lane": [5],
    "attributes": [[], 1, {"a": [1]}],
    "unknown": [1],
}


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, values in WRONG.items() for v in values])
def test_fields_of_another_type_are_refused(field: str, value: Any) -> None:
    data = plain_timeline()
    data["spans"][1][field] = value
    with pytest.raises(FormatError):
        Timeline.from_json(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 1),
        ("threads", []),
        ("threads", {"x": "main"}),
        ("threads", {"7": 1}),
        ("dropped", None),
        ("spans", {}),
        ("spans", [1]),
        ("counters", [[1, "2", 3, 4]]),
        ("counters", [[1, 2, 3]]),
        ("counters", [["1", 2, 3, 4]]),
        ("waits", [[1, 2, 3, None]]),
        ("releases", [[1, 2, 3, 4, 5]]),
        ("releases", [[1, "2", 3, "free", 5]]),
        ("releases", [5]),
    ],
)
def test_parts_of_another_type_are_refused(field: str, value: Any) -> None:
    with pytest.raises(FormatError):
        Timeline.from_json({**plain_timeline(), field: value})


@pytest.mark.parametrize("text", ["[" * 200_000, "7" * 10_000, '{"a":' * 200_000])
def test_deep_and_endless_json_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(FormatError, match=r"bad\.json"):
        Timeline.load(tmp_path / "bad.json")


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


def test_commands_for_machines(timeline: Timeline, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    for path in (one, two):
        timeline.save(path)
    runner = CliRunner()
    shown = json.loads(runner.invoke(app, ["trace", "show", "--json", str(one)]).stdout)
    assert shown["name"] == "job" and shown["wall_s"] == timeline.wall_s
    assert [r["name"] for r in shown["rows"]] == [r.name for r in rows(timeline)]
    compared = json.loads(runner.invoke(app, ["trace", "diff", "--json", str(one), str(two)]).stdout)
    assert compared["rows"][0] == {"path": ["job"], "before_s": timeline.wall_s, "after_s": timeline.wall_s}
    for command in (["show", str(one)], ["diff", str(one), str(two)]):
        assert runner.invoke(app, ["trace", *command, "--quiet"]).output == ""


def test_a_difference_names_the_files(timeline: Timeline, tmp_path: Path) -> None:
    for name in ("before.json", "after.json"):
        timeline.save(tmp_path / name)
    heads = (
        CliRunner().invoke(app, ["trace", "diff", str(tmp_path / "before.json"), str(tmp_path / "after.json")]).output
    )
    assert "before.json" in heads and "after.json" in heads


@pytest.mark.parametrize("name", ["job", "job.txt", "job.pftrace", "job.json.gz"])
def test_unknown_suffixes_are_refused(timeline: Timeline, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.html, \.json or \.trace\.json"):
        timeline.save(tmp_path / name)
    timeline.save(tmp_path / "kept.json")
    refused = CliRunner().invoke(app, ["trace", "show", str(tmp_path / "kept.json"), "-o", str(tmp_path / name)])
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / name).exists()


def test_a_timeline_with_nothing_in_it(tmp_path: Path) -> None:
    with Timeline("empty") as empty:
        pass
    assert [s.name for s in empty.spans] == ["empty"]
    assert "empty" in empty.report()
    for suffix in ("json", "html", "trace.json"):
        empty.save(tmp_path / f"empty.{suffix}")
    assert "empty" in CliRunner().invoke(app, ["trace", "show", str(tmp_path / "empty.json")]).output


def test_a_table_in_a_narrow_terminal(timeline: Timeline) -> None:
    from rich.console import Console

    console = Console(width=80, force_terminal=True, color_system=None, record=True)
    with console.capture() as capture:
        console.print(table(timeline))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert sum("prove" in line for line in lines) == 1  # notes are folded, names are not


@pytest.fixture(scope="module")
def wide() -> Timeline:
    """Its report has a line of over 80 columns."""
    with Timeline("job") as found:
        for _ in range(3):
            with suppress(ValueError), span("a phase of much work", bytes=1 << 30, items=123_456):
                prove()
                raise ValueError
    return found


@pytest.mark.parametrize("width", [70, 80])
def test_a_report_that_is_folded(wide: Timeline, width: int) -> None:
    whole, folded = wide.report(width=0), wide.report(width=width)
    assert max(map(len, whole.splitlines())) > 80
    assert all(len(line) <= width for line in folded.splitlines())
    assert " ".join(folded.split()) == " ".join(whole.split())  # nothing is lost
    assert folded.count("<- ghost") == whole.count("<- ghost") > 0


def test_a_report_fits_its_terminal(wide: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert wide.report() == wide.report(width=80) != wide.report(width=0)
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "__stdout__", None)  # no terminal
    assert wide.report() == wide.report(width=0)


def test_ghosts_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\nclass Slow:\n    def __del__(self): time.sleep(0.05)\n"
        "def owner():\n    held = Slow()\nowner()\nprint('the program speaks', sys.argv[1:])\n"
    )
    runner = CliRunner()
    found = runner.invoke(app, ["ghosts", "--json", "--no-native", str(script), "--json", "x"])
    assert found.exit_code == 0
    (row,) = json.loads(found.stdout)
    assert set(row) == {"function", "file", "line", "teardown_s", "released_bytes", "calls"}
    assert (row["function"], row["file"], row["line"], row["calls"]) == ("owner", str(script), 4, 1)
    assert "warning" not in found.stderr  # --json was given to both
    assert "the program speaks ['--json', 'x']" in capfd.readouterr().err
    shown = runner.invoke(app, ["ghosts", str(script)])
    assert "owner" in shown.output and "is teardown" in shown.output


def test_ghosts_of_a_program_that_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit(3)")
    runner = CliRunner()
    shown = runner.invoke(app, ["ghosts", str(script), "--exact", "x"])
    assert shown.exit_code == 3
    assert re.search(r"^the program ended with status 3 after \d", shown.stderr, re.MULTILINE)
    assert shown.stdout.startswith("no ghosts: ")
    assert f"warning: --exact behind {script} went to the program" in shown.stderr
    found = runner.invoke(app, ["ghosts", "--json", str(script)])
    assert (found.exit_code, json.loads(found.stdout)) == (3, [])


def test_ghosts_without_the_release_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.py"
    script.write_text("")
    monkeypatch.setattr("snarkline.trace.ghosts.shim_file", lambda: tmp_path / "none.so")
    hint = "native libraries were not looked at"
    assert hint in CliRunner().invoke(app, ["ghosts", str(script)]).stderr
    assert hint not in CliRunner().invoke(app, ["ghosts", "--no-native", str(script)]).stderr
    asked = CliRunner().invoke(app, ["ghosts", "--native", str(script)])
    assert isinstance(asked.exception, InputError)


@pytest.mark.parametrize(
    "words", [["ghosts"], ["trace", "show", "nothere.json"], ["trace", "diff", "nothere.json", "x"]]
)
def test_nothing_there_is_said_in_a_line(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "snarkline", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
