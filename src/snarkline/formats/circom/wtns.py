"""Witness files (.wtns, version 2): section 1 holds the prime and the number of wires, section 2 their values.

Values are canonical, 32 bytes each, little-endian.
"""

from __future__ import annotations

import os
from typing import BinaryIO

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.errors import FormatError, InputError
from snarkline.formats import _native
from snarkline.formats.atomic import atomic_write
from snarkline.formats.binary import Buffer, Outgoing, open_container, write_container
from snarkline.formats.circom.fields import read_scalar_field, write_prime
from snarkline.r1cs.witness import Witness
from snarkline.trace import span

VERSION = 2


@span("load witness")
def load_witness(
    source: str | os.PathLike[str] | Buffer, curve: Curve | None = None, *, threads: int | None = None
) -> Witness:
    """A witness from a .wtns file, from the bytes of one, or from an array of values.

    An array of values has dtype uint64 and shape (n, 4), canonical, and needs `curve`. A file is read, not mapped; the
    values are copied into memory of the witness's own, which is wiped when it is given back, as what was read is. With
    `curve`, a file of another curve is refused. Raises OSError, InputError for a source of another type, and
    FormatError where a value is not below r (the wire is named, the value is not shown) or wire 0 is not 1.
    """
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview, np.ndarray)):
        accepted = "a path, the bytes of a .wtns file, or an array of uint64 values of shape (n, 4)"
        raise InputError(f"a witness comes from {accepted}; found {type(source).__name__}")
    if isinstance(source, np.ndarray) and source.dtype != np.uint8:
        if curve is None or source.dtype != np.uint64 or source.ndim != 2 or source.shape[1] != curve.fr_limbs:
            found = f"{source.dtype} {source.shape}" + (" without a curve" if curve is None else "")
            raise FormatError(None, "array", "uint64 values of shape (n, 4) and their curve", found)
        return _checked(None, "wire", curve, source, threads)
    container = open_container(source, "wtns", VERSION, copy=True, secret=True)
    header = container.cursor(1, "header")
    found_curve = read_scalar_field(header, curve)
    n = header.u32("number of wires")
    header.end()
    section = container.section(2, "values")
    if section.size != n * 8 * found_curve.fr_limbs:
        raise container.size_error(section, "values", f"{n} wires of {8 * found_curve.fr_limbs} bytes")
    values = container.words(section, found_curve.fr_limbs)
    return _checked(container.path, f"section 2 at offset {section.offset}: wire", found_curve, values, threads)


def save_witness(witness: Witness, path: str | os.PathLike[str]) -> None:
    """Writes a .wtns file. Raises OSError."""
    with atomic_write(path) as stream:
        write_witness(witness, stream)


def write_witness(witness: Witness, stream: BinaryIO) -> None:
    """Writes the bytes of a .wtns file to a stream."""
    curve = witness.curve
    header = write_prime(curve.r, curve.fr_limbs) + len(witness).to_bytes(4, "little")
    values = _native.canonical(witness.values)
    sections = [Outgoing(1, len(header), [header]), Outgoing(2, values.nbytes, [values])]
    write_container(stream, "wtns", VERSION, sections)


def _checked(path: str | None, wire: str, curve: Curve, values: Limbs, threads: int | None) -> Witness:
    own: Limbs = _native.arena().empty(values.shape, secret=True)
    own[...] = values
    if len(own) == 0:
        raise FormatError(path, f"{wire} 0", 1, "no wires")
    bad = _native.first_not_below(curve, own, threads=threads)
    if bad is not None:
        raise FormatError(path, f"{wire} {bad}", "a value below the modulus r", "a larger one")
    if own[0].tolist() != [1, 0, 0, 0]:
        raise FormatError(path, f"{wire} 0", 1, "another value")
    return Witness(FrVector(curve, own, Form.CANONICAL), path)
