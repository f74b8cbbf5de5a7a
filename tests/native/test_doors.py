"""What the compiled core refuses: arrays of the wrong shape, type, order or address, and unknown names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from snarkline.native import core

executor = core.Executor(1)


def limbs(n: int, width: int = 4) -> np.ndarray:
    return np.zeros((n, width), np.uint64)


def read_only(n: int) -> np.ndarray:
    array = limbs(n)
    array.flags.writeable = False
    return array


def to_canonical(out: object, a: object) -> None:
    executor.to_canonical("bn254", "fr", out, a)  # type: ignore[arg-type]


U32 = np.zeros(2, np.uint32)
STARTS = np.array([0, 2], np.uint64)

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "too few rows": (lambda: to_canonical(limbs(3), limbs(4)), r"out: expected shape \(4, 4\), found \(3, 4\)"),
    "width of another field": (
        lambda: to_canonical(limbs(3), limbs(3, 6)),
        r"a: expected shape \(n, 4\), found \(3, 6\)",
    ),
    "one axis": (lambda: to_canonical(limbs(3), np.zeros(12, np.uint64)), r"a: expected shape \(n, 4\), found \(12,\)"),
    "signed": (lambda: to_canonical(limbs(3), np.zeros((3, 4), np.int64)), "a: expected .*uint64"),
    "floating": (lambda: to_canonical(limbs(3), np.zeros((3, 4))), "a: expected .*uint64"),
    "narrow": (lambda: to_canonical(limbs(3), np.zeros((3, 4), np.uint32)), "a: expected .*uint64"),
    "big-endian": (lambda: to_canonical(limbs(3), np.zeros((3, 4), ">u8")), "a: expected .*uint64"),
    "strided": (lambda: to_canonical(limbs(3), limbs(6)[::2]), "a: expected .*C-contiguous"),
    "column-major": (lambda: to_canonical(limbs(3), np.asfortranarray(limbs(3))), "a: expected .*C-contiguous"),
    "read-only output": (lambda: to_canonical(read_only(3), limbs(3)), "out: expected a writable array"),
    "no array": (lambda: to_canonical(limbs(3), 3), "a: expected an array.*found int"),
    "curve": (lambda: executor.powers("bn128", limbs(1), limbs(1), limbs(1)), "curve: expected 'bn254' or 'bls12_381'"),
    "field": (lambda: executor.batch_inverse("bn254", "fq", limbs(1)), "field: expected 'fr' or 'fp', found 'fq'"),
    "operation": (
        lambda: executor.pointwise("bn254", "fr", "div", limbs(1), limbs(1), limbs(1)),
        "op: expected 'add', 'sub' or 'mul'",
    ),
    "right operand": (
        lambda: executor.pointwise("bn254", "fr", "add", limbs(3), limbs(3), limbs(2)),
        "b: expected 1 or 3 rows, found 2",
    ),
    "group": (lambda: executor.first_bad_point("bn254", 2, limbs(1, 8), False), "group: expected 0 .* found 2"),
    "points of G2 as G1": (
        lambda: executor.first_bad_point("bls12_381", 0, limbs(1, 24), False),
        r"points: expected shape \(n, 12\), found \(1, 24\)",
    ),
    "not a power of two": (
        lambda: executor.ntt("bn254", limbs(6), limbs(1), None, False),
        "data: expected a power of two",
    ),
    "empty transform": (
        lambda: executor.ntt("bn254", limbs(0), limbs(1), None, False),
        "data: expected a power of two",
    ),
    "points and scalars": (
        lambda: executor.msm("bn254", [(0, limbs(3, 8))], limbs(2), False),
        r"points: expected shape \(2, 8\), found \(3, 8\)",
    ),
    "form": (
        lambda: executor.spmv("bn254", limbs(1), STARTS, U32, U32, limbs(1), limbs(1), "mont"),
        "w_form: expected 'canonical' or 'montgomery'",
    ),
    "rows that end elsewhere": (
        lambda: executor.spmv("bn254", limbs(1), STARTS[:1] * 0 + 1, U32, U32, limbs(1), limbs(1), "canonical"),
        "row_start: expected 0 to 2, found 1 to 1",
    ),
    "no rows": (
        lambda: executor.spmv("bn254", limbs(0), STARTS[:0], U32, U32, limbs(1), limbs(1), "canonical"),
        "row_start: expected rows . 1 items, found none",
    ),
    "pairs": (
        lambda: executor.pairing_product_is_one("bn254", limbs(2, 8), limbs(1, 16)),
        r"q: expected shape \(2, 16\), found \(1, 16\)",
    ),
    "threads": (lambda: core.Executor(0), "threads: expected 1 to 1024, found 0"),
    "negative threads": (lambda: core.Executor(-1), "threads: expected 1 to 1024, found -1"),
    "instruction set": (lambda: core.Executor(1, "sse9"), "isa: expected one of 'auto', '.*found 'sse9'"),
    "facts": (lambda: core.curve_facts("bls12_377"), "curve: expected 'bn254' or 'bls12_381', found 'bls12_377'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_read_only_inputs_are_read() -> None:
    """Keys are mapped read-only."""
    out = limbs(3)
    out[:] = 7
    to_canonical(out, read_only(3))
    assert not out.any()


def test_the_fastest_set_is_chosen() -> None:
    sets = core.instruction_sets()
    assert sets == [isa for isa in ("portable", "adx", "ifma") if isa in sets]
    assert core.Executor(2).isa == sets[-1]
    assert core.Executor(2).threads == 2
    for isa in sets:
        assert core.Executor(1, isa).isa == isa
