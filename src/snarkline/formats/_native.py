"""The compiled core as the readers of files use it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.errors import FormatError
from snarkline.memory import Arena, Release
from snarkline.native import core
from snarkline.threads import usable_threads


def executor(threads: int | None = None) -> core.Executor:
    """The kernels on so many threads, or on as many as the process may run on."""
    return _executor(n_threads(threads))


def n_threads(threads: int | None) -> int:
    return usable_threads() if threads is None else threads


@functools.cache
def _executor(threads: int) -> core.Executor:
    return core.Executor(threads)


def arena() -> Arena:
    """Memory for one file's arrays. They outlive the arena; whoever writes them first touches the pages."""
    return Arena(Release.DETACHED, threads=0)


@contextlib.contextmanager
def steady(path: str | None) -> Iterator[None]:
    """Around decoding: a file that is written to meanwhile is a FormatError."""
    try:
        yield
    except RuntimeError as error:
        raise FormatError(path, "file", "data that stays as it is while it is read", str(error)) from error


def first_not_below(curve: Curve, elements: Limbs, *, threads: int | None = None) -> int | None:
    """Index of the first element of shape (n, 4) that is not below r."""
    index = executor(threads).first_not_below_modulus(curve.name, "fr", elements)
    return None if index < 0 else index


def times_r(curve: Curve, elements: Limbs) -> Limbs:
    """a * 2^256 mod r."""
    out = np.empty_like(elements)
    executor().from_canonical(curve.name, "fr", out, elements)
    return out


def over_r(curve: Curve, elements: Limbs) -> Limbs:
    """a / 2^256 mod r."""
    out = np.empty_like(elements)
    executor().to_canonical(curve.name, "fr", out, elements)
    return out


def montgomery(vector: FrVector) -> Limbs:
    return vector.limbs if vector.form is Form.MONTGOMERY else times_r(vector.curve, vector.limbs)


def canonical(vector: FrVector) -> Limbs:
    return vector.limbs if vector.form is Form.CANONICAL else over_r(vector.curve, vector.limbs)
