"""Circuits (.r1cs, version 1), as iden3's r1cs_bin_format.md lays them out.

Section 1 is the header, 2 the constraints, 3 the label of every wire; 4 and 5 are PLONK's custom gates. A constraint is
three linear combinations A, B, C, each a u32 count and that many terms (u32 wire, coefficient), coefficients canonical.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, limbs_to_ints
from snarkline.errors import FormatError
from snarkline.formats import _native
from snarkline.formats.atomic import atomic_write
from snarkline.formats.binary import Bytes, Container, Cursor, Outgoing, open_container, write_container
from snarkline.formats.circom.fields import read_scalar_field, write_prime
from snarkline.native import core
from snarkline.r1cs.matrices import R1CS, Matrices, SparseMatrix
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.trace import span

VERSION = 1
TERM_BYTES = 36
COMBINATIONS = "ABC"
UNMENTIONED_WIRES = 1 << 20
"""How many wires a circuit may have that nothing in its file accounts for: memory follows from the number of wires."""


@dataclass(frozen=True, eq=False)
class CircomR1CS(R1CS):
    """An R1CS with what else its file says, so that saving it again loses nothing.

    `layout` lists the file's sections in order; `kept` holds the content of those that the constraints do not need.
    """

    n_private_inputs: int
    n_labels: int
    layout: tuple[int, ...]
    kept: dict[int, Bytes]
    source: str | None

    @property
    def path(self) -> str | None:
        return self.source


def load_r1cs(path: str | os.PathLike[str], *, threads: int | None = None) -> R1CS:
    """A circuit from a .r1cs file. Terms that name one wire twice in a combination are kept, and add up.

    Raises OSError and FormatError. Custom gates are ignored, with a warning.
    """
    with span("load circuit"):
        container = open_container(path, "r1cs", VERSION)
        r1cs = _read(container, read_header(container.cursor(1, "header")), threads)
    if container.find(4) is not None or container.find(5) is not None:
        warnings.warn(f"{path}: custom gates (sections 4 and 5) are ignored", UserWarning, stacklevel=2)
    return r1cs


def _read(container: Container, header: Header, threads: int | None) -> CircomR1CS:
    labels = container.find(3)
    if labels is not None and labels.size != 8 * header.n_wires:
        raise container.size_error(labels, "labels of wires", f"8 bytes for each of {header.n_wires} wires")
    matrices = _read_constraints(container, header, threads)
    if labels is None:
        _check_wires(container, header, matrices)
    return CircomR1CS(
        curve=header.curve,
        n_wires=header.n_wires,
        n_public=header.n_outputs + header.n_public_inputs,
        n_outputs=header.n_outputs,
        matrices=matrices,
        n_private_inputs=header.n_private_inputs,
        n_labels=header.n_labels,
        layout=tuple(s.id for s in container.sections),
        kept={s.id: container.content(s) for s in container.sections if s.id > 2},
        source=container.path,
    )


def _check_wires(container: Container, header: Header, matrices: Matrices) -> None:
    """Refuses wires out of proportion to a file that has no labels, which are 8 bytes for each."""
    assert matrices.c is not None
    n_entries = matrices.a.n_entries + matrices.b.n_entries + matrices.c.n_entries
    bound = 1 + n_entries + UNMENTIONED_WIRES
    if header.n_wires > bound:
        expected = f"at most {bound} ({n_entries} terms and 2^20 more), as no section 3 labels the wires"
        raise FormatError(container.path, "section 1 (header): number of wires", expected, header.n_wires)


@dataclass(frozen=True)
class Header:
    """Section 1 of a .r1cs file."""

    curve: Curve
    n_wires: int
    n_outputs: int
    n_public_inputs: int
    n_private_inputs: int
    n_labels: int
    n_constraints: int


def read_header(cursor: Cursor) -> Header:
    curve = read_scalar_field(cursor)
    n_wires = cursor.u32("number of wires")
    outputs = cursor.u32("number of public outputs")
    public = cursor.u32("number of public inputs")
    private = cursor.u32("number of private inputs")  # not bounded by the wires: circom counts those it removed
    if 1 + outputs + public > n_wires:
        expected = f"at most the {n_wires} wires, with the constant 1 among them"
        found = f"1 + {outputs} outputs + {public} inputs"
        raise cursor.error("number of wires, outputs and public inputs", 16, expected, found)
    n_labels = cursor.u64("number of labels")
    n_constraints = cursor.u32("number of constraints")
    cursor.end()
    return Header(curve, n_wires, outputs, public, private, n_labels, n_constraints)


def _read_constraints(container: Container, header: Header, threads: int | None) -> Matrices:
    section = container.section(2, "constraints")
    rows, data = header.n_constraints, container.content(section)
    if rows > section.size // 12:
        raise container.size_error(section, "constraints", f"at least 12 bytes for each of {rows} constraints")
    arena = _native.arena()
    starts = [arena.empty(rows + 1) for _ in COMBINATIONS]
    _raise_fault(container, section.offset, core.scan_constraints(data, *starts))
    outs = [(s, arena.empty(int(s[-1]), np.uint32), arena.empty(int(s[-1]), np.uint32)) for s in starts]
    with _native.steady(container.path):
        values, fault = core.gather_constraints(_native.n_threads(threads), data, header.n_wires, *outs)
    _raise_fault(container, section.offset, fault, header.n_wires)
    bad = _native.first_not_below(header.curve, values)
    if bad is not None:
        raise _coefficient_error(container, section.offset, outs, bad, values)
    coefficients = FrVector(header.curve, _native.times_r(header.curve, values), Form.MONTGOMERY)
    return Matrices(*(SparseMatrix(header.n_wires, s, c, v, coefficients) for s, c, v in outs))


def _raise_fault(container: Container, start: int, fault: tuple[str, int, int, int, int], n_wires: int = 0) -> None:
    kind, row, combination, offset, found = fault
    if not kind:
        return
    where = f"section 2 (constraints), offset {start + offset}"
    if kind == "trailing":
        expected = f"the end of the section after {row} constraints"
        raise FormatError(container.path, where, expected, f"{found} bytes more")
    where += f": constraint {row}, {COMBINATIONS[combination]}"
    if kind == "column":
        raise FormatError(container.path, where, f"a wire below {n_wires}", found)
    raise FormatError(container.path, where, "as many terms as fit in the section", f"{found}")


def _coefficient_error(
    container: Container, start: int, outs: list[core.Csr], bad: int, values: core.U64
) -> FormatError:
    """Finds the first constraint that uses the distinct value `bad`, which is not below r."""
    row, m = min(
        (int(np.searchsorted(s, int(np.flatnonzero(v == bad)[0]), side="right")) - 1, m)
        for m, (s, _, v) in enumerate(outs)
        if (v == bad).any()
    )
    where = f"section 2 (constraints) at offset {start}: constraint {row}, {COMBINATIONS[m]}"
    return FormatError(
        container.path, where, "coefficients below the modulus r", f"{limbs_to_ints(values[bad : bad + 1])[0]:#x}"
    )


def save_r1cs(r1cs: R1CS | StructuredR1CS, path: str | os.PathLike[str]) -> None:
    """Writes a .r1cs file, for a structured system row by row as a stream.

    A circuit that came from a file keeps its other sections and their order. Raises OSError, and FormatError for more
    constraints than the format can count.
    """
    curve = r1cs.curve
    origin = r1cs if isinstance(r1cs, CircomR1CS) else None
    if r1cs.n_constraints >> 32:
        raise FormatError(os.fspath(path), "number of constraints", "at most 2^32 - 1", r1cs.n_constraints)
    n_private = origin.n_private_inputs if origin else 0
    if isinstance(r1cs, StructuredR1CS):
        n_private = int((r1cs.given > r1cs.n_public).sum())
    counts = (r1cs.n_wires, r1cs.n_outputs, r1cs.n_public - r1cs.n_outputs, n_private)
    header = write_prime(curve.r, curve.fr_limbs) + b"".join(v.to_bytes(4, "little") for v in counts)
    header += (origin.n_labels if origin else r1cs.n_wires).to_bytes(8, "little")
    header += r1cs.n_constraints.to_bytes(4, "little")
    labels = np.arange(r1cs.n_wires, dtype="<u8")
    sections = {
        1: Outgoing(1, len(header), [header]),
        2: Outgoing(2, _constraints_size(r1cs), _constraint_pieces(r1cs)),
        3: Outgoing(3, labels.nbytes, [labels]),
    }
    for section_id, content in (origin.kept if origin else {}).items():
        sections[section_id] = Outgoing(section_id, content.nbytes, [content])
    with atomic_write(path) as stream:
        write_container(stream, "r1cs", VERSION, [sections[i] for i in (origin.layout if origin else (1, 2, 3))])


def _matrices(r1cs: R1CS) -> list[SparseMatrix]:
    assert r1cs.matrices.c is not None, "a circuit has all three matrices"
    return [r1cs.matrices.a, r1cs.matrices.b, r1cs.matrices.c]


def _constraints_size(r1cs: R1CS | StructuredR1CS) -> int:
    if isinstance(r1cs, R1CS):
        return 12 * r1cs.n_constraints + TERM_BYTES * sum(m.n_entries for m in _matrices(r1cs))
    entries = [t.a.n_entries + t.b.n_entries + t.c.n_entries for t in r1cs.templates]
    return 12 * r1cs.n_constraints + TERM_BYTES * sum(run.count * entries[run.template] for run in r1cs.runs)


def _constraint_pieces(r1cs: R1CS | StructuredR1CS, rows_per_piece: int = 1 << 14) -> Iterator[Bytes]:
    if isinstance(r1cs, StructuredR1CS):
        for begin in range(0, r1cs.n_constraints, rows_per_piece):
            block = list(r1cs.rows(begin, min(begin + rows_per_piece, r1cs.n_constraints)))
            values = [_native.canonical(m.coefficients).view("<u4").reshape(-1, 8) for m in block]
            yield _encode_rows(block, values, 0, block[0].n_rows)
        return
    matrices = _matrices(r1cs)
    values = [_native.canonical(m.coefficients).view("<u4").reshape(-1, 8) for m in matrices]
    for begin in range(0, r1cs.n_constraints, rows_per_piece):
        end = min(begin + rows_per_piece, r1cs.n_constraints)
        yield _encode_rows(matrices, values, begin, end)


def _encode_rows(matrices: list[SparseMatrix], values: list[core.U32], begin: int, end: int) -> Bytes:
    """Constraints begin to end as 32-bit words: a count and 9 words a term, for A, B and C in turn."""
    starts = [m.row_start[begin : end + 1].astype(np.int64) for m in matrices]
    counts = [np.diff(s) for s in starts]
    row_words = 3 + 9 * (counts[0] + counts[1] + counts[2])
    row_at = np.cumsum(row_words) - row_words
    out = np.empty(int(row_words.sum()), dtype="<u4")
    at = row_at
    for m, start, count, value in zip(matrices, starts, counts, values, strict=True):
        out[at] = count
        entries = slice(int(start[0]), int(start[-1]))
        within = np.arange(entries.stop - entries.start) - np.repeat(start[:-1] - start[0], count)
        term_at = np.repeat(at + 1, count) + 9 * within
        out[term_at] = m.column[entries]
        out[term_at[:, None] + np.arange(1, 9)] = value[m.value[entries]]
        at = at + 1 + 9 * count
    return out.view(np.uint8)
