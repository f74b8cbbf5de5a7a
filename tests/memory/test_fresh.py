"""What a process of `run_fresh` answers, and how its errors come back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from snarkline.errors import BudgetError, DeviceError, FormatError, InternalError, UnsatisfiedError
from snarkline.memory.fresh import run_fresh

CHILD = """
import os
import sys
from snarkline.memory.fresh import answer
from snarkline.errors import BudgetError, DeviceError, FormatError, InternalError, UnsatisfiedError




if __name__ == "__main__":
    answer(lambda fields: eval(fields["expression"]))
"""


@dataclass(frozen=True)
class Child:
    """`expression` is what the process answers, or raises."""

    expression: str

    def run(self, *words: str) -> str:
        return run_fresh("child", self, "4k", *words)

    @classmethod
    def raising(cls, error: str) -> Child:
        return cls(f"(_ for _ in ()).throw({error})")


@pytest.fixture(autouse=True)
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def test_the_answer() -> None:
    assert Child("sys.argv[1] + os.environ['NUMPY_MADVISE_HUGEPAGE']").run("word ") == "word 0\n"


def test_errors_come_back_as_they_were() -> None:
    text = "several\nlines: snarkline.errors.InputError: this is not the error"
    with pytest.raises(FormatError) as malformed:
        Child.raising(f"FormatError('k.zkey', 'offset 4', 7, {text!r})").run()
    assert str(malformed.value) == str(FormatError("k.zkey", "offset 4", 7, text))
    assert (malformed.value.path, malformed.value.expected) == ("k.zkey", 7)
    with pytest.raises(BudgetError) as short:
        Child.raising("BudgetError(3 << 20, 1 << 20, 'the key')").run()
    assert (short.value.asked_bytes, short.value.budget_bytes) == (3 << 20, 1 << 20)
    with pytest.raises(UnsatisfiedError, match="constraint 5: it does not"):
        Child.raising("UnsatisfiedError(5, 'it does not')").run()
    with pytest.raises(DeviceError, match="no device"):
        Child.raising("DeviceError('no device')").run()
    with pytest.raises(FileNotFoundError) as missing:
        Child("open('/none/such')").run()
    assert (missing.value.filename, missing.value.strerror) == ("/none/such", "No such file or directory")


def test_other_ends_are_internal_errors_with_what_the_process_said() -> None:
    with pytest.raises(InternalError, match=r"ended with 1: Traceback(.|\n)*ZeroDivisionError"):
        Child("1 // 0").run()
    with pytest.raises(InternalError, match=r"ended with 1: Traceback(.|\n)*does not verify"):
        Child.raising("InternalError('the proof does not verify')").run()
    with pytest.raises(InternalError, match=r"ended with 7: last words$"):
        Child("sys.stderr.write('last words') and sys.exit(7)").run()
    with pytest.raises(InternalError, match="ended with -9"):
        Child("os.kill(os.getpid(), 9)").run()
