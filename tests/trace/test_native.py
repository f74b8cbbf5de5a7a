"""Native spans, the header for other native code, forks, interpreters, and what a span costs."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import snarkline
from snarkline.trace import Timeline, span

INCLUDE = Path(snarkline.__file__).parent / "include"
ROOT = Path(__file__).parents[2]

LIBRARY = """
#include <snarkline/trace.h>
#include <time.h>
static void nap(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
int work(void) {
  SNL_SPAN("native.work");
  { SNL_SPAN("native.inner"); nap(5); }
  SNL_LAST_STATEMENT();
  nap(20);
  return 7;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    assert compiler is not None
    folder = tmp_path_factory.mktemp("native")
    (folder / "work.c").write_text(LIBRARY)
    command = [compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}"]
    subprocess.run([*command, str(folder / "work.c"), "-o", str(folder / "work.so")], check=True)
    return folder / "work.so"


def test_marked_native_code_is_on_the_timeline(library: Path) -> None:
    work = ctypes.CDLL(str(library)).work
    assert work() == 7
    with Timeline() as timeline, span("outer") as outer:
        assert work() == 7
    spans = {s.name: s for s in timeline.spans}
    native, inner = spans["native.work"], spans["native.inner"]
    assert (native.kind, native.parent, inner.parent) == ("native", outer.id, native.id)
    assert native.teardown_s is not None and 0.02 <= native.teardown_s < 0.5
    assert inner.wall_s >= 0.005 and inner.teardown_s is None
    assert native.begin.ns <= inner.begin.ns <= inner.end.ns <= native.end.ns
    assert spans["outer"].begin.ns <= native.begin.ns <= native.end.ns <= spans["outer"].end.ns


def test_markers_are_silent_without_snarkline(library: Path) -> None:
    text = (
        f"import ctypes, sys; assert ctypes.CDLL({str(library)!r}).work() == 7; assert 'snarkline' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_library_that_was_loaded_first_finds_snarkline(library: Path) -> None:
    text = f"""
        import ctypes, time
        work = ctypes.CDLL({str(library)!r}).work
        work()
        from snarkline.trace import Timeline
        time.sleep(0.2)
        with Timeline() as timeline:
            work()
        assert [s.name for s in timeline.spans if s.kind == "native"] == ["native.work", "native.inner"]
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=True)


@pytest.mark.parametrize(
    "mode", [["cc", "-std=c11", "-xc"], ["c++", "-std=c++11", "-xc++"], ["c++", "-std=c++20", "-xc++"]]
)
def test_the_header_compiles(mode: list[str], tmp_path: Path) -> None:
    compiler = shutil.which(mode[0])
    assert compiler is not None
    source = tmp_path / "source"
    source.write_text('#include <snarkline/trace.h>\nint f(void) { SNL_SPAN("f"); SNL_LAST_STATEMENT(); return 1; }\n')
    command = [compiler, *mode[1:], "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-c", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "o")], check=True)
    subprocess.run([*command, "-DSNL_TRACE_OFF", "-o", str(tmp_path / "o")], check=True)


def test_a_forked_child_leaves_and_starts_timelines() -> None:
    with Timeline() as outer, span("parent"):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with Timeline() as own, span("in the child"):
                    pass
                status = 0 if {s.name for s in own.spans} == {"timeline", "in the child"} else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {s.name for s in outer.spans} == {"timeline", "parent"}


def test_nested_timelines_share_their_spans() -> None:
    with Timeline("outer") as outer, span("a") as a:
        with Timeline("inner") as inner, span("b", k=1):
            pass
        with span("c"):
            pass
    assert {s.name for s in inner.spans} == {"inner", "b"}
    assert {s.name for s in outer.spans} == {"outer", "a", "inner", "b", "c"}
    found = next(s for s in outer.spans if s.name == "inner")
    assert found.parent == a.id and outer.root.name == "outer" and inner.root.name == "inner"
    assert all(s.attributes == {"k": 1} for t in (inner, outer) for s in t.spans if s.name == "b")


def test_many_threads_lose_nothing() -> None:
    def work() -> None:
        for _ in range(200):
            with span("work"):
                pass

    with Timeline() as timeline:
        threads = [threading.Thread(target=work) for _ in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len([s for s in timeline.spans if s.name == "work"]) == 10_000
    assert len({s.id for s in timeline.spans}) == len(timeline.spans)
    assert timeline.dropped == 0


def test_a_sub_interpreter_is_refused() -> None:
    text = """
        try:
            import _interpreters as interpreters          # 3.13 and later: the error is returned
        except ImportError:
            import _xxsubinterpreters as interpreters     # and before: raised
        one = interpreters.create()
        try:
            error = interpreters.run_string(one, "import snarkline.trace")
        except Exception as raised:
            error = raised
        assert "ImportError" in f"{error!r} {error} {getattr(error, '__dict__', '')}", error
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_misuse_is_said() -> None:
    with pytest.raises(TypeError):
        span(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        span("x")(print, print)  # type: ignore[call-arg]
    with Timeline():
        s = span("twice")
        with s, pytest.raises(RuntimeError, match="already open"), s:
            pass


def test_spans_cost_next_to_nothing() -> None:
    spec = importlib.util.spec_from_file_location("bench_spans", ROOT / "bench" / "spans.py")
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    for _ in range(3):  # the machine may be busy with something else
        found = bench.measure()
        if all(us < bench.BOUNDS_US[name] for name, us in found.items()):
            return
    raise AssertionError(found)
