"""Proving keys (.zkey), written. `zkey.py` describes the format."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from snarkline.curves.point import PointTable
from snarkline.curves.vector import Limbs
from snarkline.errors import MismatchError
from snarkline.formats import _native
from snarkline.formats.atomic import atomic_write
from snarkline.formats.binary import Bytes, Outgoing, write_container
from snarkline.formats.circom.fields import write_prime
from snarkline.formats.circom.zkey import COEFFICIENT, GROTH16, HEADER_POINTS, VERSION, CircomProvingKey
from snarkline.groth16.keys import HBasis, ProvingKey, Query, odd_coset_domain
from snarkline.r1cs.matrices import Matrices, SparseMatrix
from snarkline.trace import span

# The order in which snarkjs writes a key, and what it writes about a key without contributions.
LAYOUT: tuple[int, ...] = (1, 2, 4, 3, 9, 8, 5, 6, 7, 10)
NO_CONTRIBUTIONS = bytes(64) + (0).to_bytes(4, "little")


def save_proving_key(key: ProvingKey, path: str | os.PathLike[str]) -> None:
    """Writes a .zkey file. A key that came from one keeps its other sections and their order.

    Raises OSError, and MismatchError for a key that the format cannot hold: it needs the matrices A and B, H in the
    odd coset of circom's domain, and queries that have a point for every wire. FormatError if the file that the key is
    mapped from was written to.
    """
    key.check_source()
    with span("flatten matrices"):
        matrices = _check(key)
    header = _header(key)
    n_records = matrices.a.n_entries + matrices.b.n_entries
    ic = PointTable.from_points(key.curve, HEADER_POINTS[0], key.verifying_key.ic)
    tables = {3: ic, 5: key.a.points, 6: key.b1.points, 7: key.b2.points, 8: key.l.points, 9: key.h}
    sections = {
        1: Outgoing(1, 4, [GROTH16.to_bytes(4, "little")]),
        2: Outgoing(2, len(header), [header]),
        4: Outgoing(4, 4 + n_records * COEFFICIENT.itemsize, _coefficient_pieces(matrices, n_records)),
        10: Outgoing(10, len(NO_CONTRIBUTIONS), [NO_CONTRIBUTIONS]),
    }
    for section_id, table in tables.items():
        sections[section_id] = Outgoing(section_id, table.limbs.nbytes, [table.limbs])
    layout = LAYOUT
    if isinstance(key, CircomProvingKey):
        layout = key.layout
        for section_id, content in key.kept.items():
            sections[section_id] = Outgoing(section_id, content.nbytes, [content])
    with atomic_write(path) as stream:
        write_container(stream, "zkey", VERSION, [sections[i] for i in layout])


def _check(key: ProvingKey) -> Matrices:
    domain, shift = odd_coset_domain(key.curve, key.domain.log_size)
    if key.h_basis is not HBasis.ODD_COSET or key.domain != domain or key.shift != shift:
        raise MismatchError(f"a .zkey holds H in the odd coset of circom's domain; this key has {key.h_basis.value}")
    if key.matrices is None:
        raise MismatchError("a .zkey holds the matrices A and B; this key carries none")
    queries: dict[str, tuple[Query, int]] = {"A": (key.a, 0), "B1": (key.b1, 0), "B2": (key.b2, 0)}
    queries["L"] = (key.l, key.n_public + 1)
    for name, (query, first) in queries.items():
        if query.wires is not None or query.first != first or len(query.points) != key.n_wires - first:
            raise MismatchError(f"a .zkey has a point of {name} for every wire from {first} on; this key does not")
    return key.matrices.flatten()


def _header(key: ProvingKey) -> bytes:
    curve, vk = key.curve, key.verifying_key
    points = (vk.alpha1, key.beta1, vk.beta2, vk.gamma2, key.delta1, vk.delta2)
    counts = (key.n_wires, key.n_public, key.domain.size)
    return b"".join(
        [write_prime(curve.q, curve.fp_limbs), write_prime(curve.r, curve.fr_limbs)]
        + [n.to_bytes(4, "little") for n in counts]
        + [PointTable.from_points(curve, p.group, [p]).limbs.tobytes() for p in points]
    )


def _coefficient_pieces(matrices: Matrices, n_records: int, rows_per_piece: int = 1 << 15) -> Iterator[Bytes]:
    """The records, by row: those of A, then those of B."""
    yield np.frombuffer(n_records.to_bytes(4, "little"), dtype=np.uint8)
    pair = (matrices.a, matrices.b)
    values = [_native.times_r(m.coefficients.curve, _native.montgomery(m.coefficients)) for m in pair]
    rows = max(m.n_rows for m in pair)
    for begin in range(0, rows, rows_per_piece):
        end = min(begin + rows_per_piece, rows)
        yield _records(pair, values, begin, end)


@span("coefficients")
def _records(pair: tuple[SparseMatrix, SparseMatrix], values: list[Limbs], begin: int, end: int) -> Bytes:
    """Those of the rows from `begin` to `end`."""
    starts = [_row_starts(m, begin, end) for m in pair]
    out = np.empty(sum(int(s[-1] - s[0]) for s in starts), dtype=COEFFICIENT)
    for index, (m, value) in enumerate(zip(pair, values, strict=True)):
        entries = slice(int(starts[index][0]), int(starts[index][-1]))
        row = np.repeat(np.arange(end - begin), np.diff(starts[index]))
        # An entry of A is preceded by the entries of B in earlier rows, one of B by those of A up to its own row.
        other = starts[1 - index] - starts[1 - index][0]
        at = np.arange(len(row)) + other[row + index]
        out["matrix"][at], out["row"][at] = index, begin + row
        out["column"][at], out["value"][at] = m.column[entries], value[m.value[entries]]
    return out.view(np.uint8)


def _row_starts(matrix: SparseMatrix, begin: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """row_start[begin .. end], for rows beyond the matrix too (they are empty)."""
    rows = np.minimum(np.arange(begin, end + 1), matrix.n_rows)
    return matrix.row_start[rows].astype(np.int64)
