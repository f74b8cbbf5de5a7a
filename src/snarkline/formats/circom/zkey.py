"""Proving keys (.zkey, version 1) of snarkjs, for Groth16, read.

    1   u32 protocol: 1 is Groth16
    2   q and r (each u32 bytes, value), u32 wires, u32 public inputs, u32 domain size,
        alpha1, beta1, beta2, gamma2, delta1, delta2
    3   IC: n_public + 1 points of G1              7   B in G2: a point for every wire
    4   coefficients of the matrices A and B       8   L in G1 (named C there): a point for every private wire
    5   A in G1: a point for every wire            9   H in G1: the domain's size of points
    6   B in G1: a point for every wire           10   the circuit's hash and the contributions to the key

A coefficient is u32 matrix (0: A, 1: B), u32 constraint, u32 wire and the value times 2^512 mod r. The rows that bind
the public inputs are among them. Points are mapped from the file, not copied; what a key says of itself is checked.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

import numpy as np

from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, limbs_to_ints
from snarkline.errors import FormatError, SecurityWarning
from snarkline.formats import _native
from snarkline.formats.binary import Bytes, Container, MappedFile, Section, open_container
from snarkline.formats.circom.fields import read_curve_fields
from snarkline.formats.points import bytes_per_point, check_point, check_points, to_points
from snarkline.groth16.footprint import CHECKED_POINTS
from snarkline.groth16.keys import HBasis, ProvingKey, Query, VerifyingKey, odd_coset_domain
from snarkline.native import core
from snarkline.r1cs.matrices import Matrices, SparseMatrix
from snarkline.trace import span

VERSION = 1
GROTH16 = 1
PROTOCOLS = {1: "Groth16", 2: "PLONK", 10: "FFLONK"}
COEFFICIENT = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("column", "<u4"), ("value", "<u8", (4,))])
NAMES = {3: "IC", 5: "A", 6: "B1", 7: "B2", 8: "L", 9: "H"}
HEADER_POINTS = (Group.G1, Group.G1, Group.G2, Group.G2, Group.G1, Group.G2)


@dataclass(frozen=True, eq=False)
class CircomProvingKey(ProvingKey):
    """A proving key with what else its file says, so that saving it again loses nothing.

    `layout` lists the file's sections in order; `kept` holds the content of those that a proof does not need, the
    contributions (section 10) among them.
    """

    layout: tuple[int, ...]
    kept: dict[int, Bytes]
    source: MappedFile | None
    file: str | None

    @property
    def path(self) -> str | None:
        return self.file

    def check_source(self) -> None:
        if self.source is not None and self.source.changed():
            raise FormatError(self.source.path, "file", "the key that was loaded", "a file that was written to since")

    def release_pages(self) -> None:
        if self.source is not None:
            self.source.release_pages()


@dataclass(frozen=True)
class Header:
    """Section 2 of a .zkey: sizes, and the verifying key but for its IC points."""

    curve: Curve
    n_wires: int
    n_public: int
    domain_size: int
    alpha1: Point
    beta1: Point
    beta2: Point
    gamma2: Point
    delta1: Point
    delta2: Point

    def expected_points(self) -> dict[int, tuple[Group, int]]:
        """The group and number of points of sections 3 and 5 to 9."""
        g1, g2, wires = Group.G1, Group.G2, self.n_wires
        private = wires - self.n_public - 1
        return {
            3: (g1, self.n_public + 1), 5: (g1, wires), 6: (g1, wires), 7: (g2, wires), 8: (g1, private),
            9: (g1, self.domain_size),
        }  # fmt: skip


def load_proving_key(
    path: str | os.PathLike[str],
    *,
    check_subgroup: bool = False,
    strict: bool = False,
    threads: int | None = None,
    copy: bool = False,
) -> ProvingKey:
    """A proving key from a .zkey file, mapped; with `copy` read into memory.

    A mapped key is there at once, its pages are shared by processes, and a file that is written to is noticed before
    each proof; but cutting the file short during a proof ends the process. A copy takes memory of the file's size, and
    nothing that happens to the file later matters.

    Checked: all sizes against the header, the curve, every index and coefficient, every point on its curve (with
    `check_subgroup` also of order r; the verifying key's points always). A key that anyone can forge proofs for
    (gamma = delta), or that leaves a public input unbound, gives a SecurityWarning, and with `strict` a FormatError.
    `threads` None means as many as the process may run on. Pages that were looked at do not stay in resident memory.
    Raises OSError and FormatError.
    """
    with span("load key"):
        container = open_container(path, "zkey", VERSION, copy=copy)
        header = read_header(container)
        tables = {i: _table(container, i, header.curve, *shape) for i, shape in header.expected_points().items()}
        with span("coefficients"):
            matrices = _read_matrices(container, header, threads)
        container.release_pages()
        for i, table in tables.items():
            with span(f"check {NAMES[i]}", items=len(table), bytes=table.limbs.nbytes):
                _check_table(container, i, table, subgroup=check_subgroup or i == 3, threads=threads)
        key = _assemble(container, header, tables, matrices)
    warn_of_weakness(container.path, key.verifying_key, strict=strict)
    return key


def _assemble(
    container: Container, header: Header, tables: dict[int, PointTable], matrices: Matrices
) -> CircomProvingKey:
    domain, shift = odd_coset_domain(header.curve, header.domain_size.bit_length() - 1)
    return CircomProvingKey(
        curve=header.curve,
        n_wires=header.n_wires,
        domain=domain,
        h_basis=HBasis.ODD_COSET,
        shift=shift,
        matrices=matrices,
        verifying_key=_verifying_key(header, tables[3]),
        beta1=header.beta1,
        delta1=header.delta1,
        a=Query(tables[5]),
        b1=Query(tables[6]),
        b2=Query(tables[7]),
        l=Query(tables[8], first=header.n_public + 1),
        h=tables[9],
        layout=tuple(s.id for s in container.sections),
        kept={s.id: container.content(s) for s in container.sections if s.id > 9},
        source=container.source,
        file=container.path,
    )


def verifying_key_of_zkey(container: Container) -> VerifyingKey:
    """The verifying key in a .zkey; nothing else of the file is looked at."""
    header = read_header(container)
    ic = _table(container, 3, header.curve, *header.expected_points()[3])
    check_points(container.path, _where(container, 3), ic, subgroup=True)
    return _verifying_key(header, ic)


def read_header(container: Container) -> Header:
    """Sections 1 and 2. The points are of order r and none is infinity."""
    protocol = container.cursor(1, "protocol")
    found = protocol.u32("protocol")
    if found != GROTH16:
        raise protocol.error("protocol", 4, "1 (Groth16)", f"{found} ({PROTOCOLS.get(found, 'unknown')})")
    protocol.end()
    cursor = container.cursor(2, "header")
    curve = read_curve_fields(cursor)
    n_wires = cursor.u32("number of wires")
    n_public = cursor.u32("number of public inputs")
    if n_public >= n_wires:
        raise cursor.error("number of public inputs", 4, f"fewer than the {n_wires} wires", n_public)
    size = cursor.u32("domain size")
    limit = curve.two_adicity - 1
    if size == 0 or size & (size - 1) or size > 1 << limit or size <= n_public:
        expected = f"a power of two above {n_public} public inputs and at most 2^{limit}"
        raise cursor.error("domain size", 4, expected, size)
    names = ("alpha1", "beta1", "beta2", "gamma2", "delta1", "delta2")
    points = []
    for name, group in zip(names, HEADER_POINTS, strict=True):
        n = bytes_per_point(curve, group)
        where = cursor.where(name)
        table = PointTable(curve, group, np.frombuffer(cursor.bytes(n, name), dtype="<u8").reshape(1, -1))
        check_point(container.path, where, table)
        points += to_points(table)
        if points[-1].is_infinity:
            raise cursor.error(name, n, "a point other than infinity", "infinity")
    cursor.end()
    return Header(curve, n_wires, n_public, size, *points)


def warn_of_weakness(path: str | None, vk: VerifyingKey, *, strict: bool = False) -> None:
    """Warns of, or with `strict` refuses, a verifying key under which false proofs can be made."""
    weaknesses = []
    if vk.gamma2 == vk.delta2:
        meaning = "no one contributed to this key after its setup, so anyone can forge proofs for it"
        weaknesses.append(("gamma2 and delta2", "two different points", f"equal ones: {meaning}"))
    unbound = [i for i, point in enumerate(vk.ic) if i > 0 and point.is_infinity]
    if unbound:
        meaning = "a proof holds for every value of that public input"
        weaknesses.append((f"IC point {unbound[0]}", "a point other than infinity", f"infinity: {meaning}"))
    for where, expected, found in weaknesses:
        error = FormatError(path, where, expected, found)
        if strict:
            raise error
        warnings.warn(str(error), SecurityWarning, stacklevel=3)


def _verifying_key(header: Header, ic: PointTable) -> VerifyingKey:
    h = header
    return VerifyingKey(h.curve, h.alpha1, h.beta2, h.gamma2, h.delta2, tuple(to_points(ic)))


def _where(container: Container, section_id: int) -> str:
    offset = container.section(section_id, NAMES[section_id]).offset
    return f"section {section_id} ({NAMES[section_id]}) at offset {offset}"


def _table(container: Container, section_id: int, curve: Curve, group: Group, n: int) -> PointTable:
    name = NAMES[section_id]
    section = container.section(section_id, name)
    if section.size != n * bytes_per_point(curve, group):
        raise container.size_error(section, name, f"{n} points of {bytes_per_point(curve, group)} bytes")
    return PointTable(curve, group, container.words(section, curve.point_limbs(group)))


def _check_table(
    container: Container, section_id: int, table: PointTable, *, subgroup: bool, threads: int | None
) -> None:
    """Checks the points of a section, and gives each piece's pages back before the next is looked at."""
    where = _where(container, section_id)
    for first in range(0, len(table), CHECKED_POINTS):
        piece = PointTable(table.curve, table.group, table.limbs[first : first + CHECKED_POINTS])
        check_points(container.path, where, piece, subgroup=subgroup, first=first, threads=threads)
        container.release_pages()


def _read_matrices(container: Container, header: Header, threads: int | None) -> Matrices:
    cursor = container.cursor(4, "coefficients")
    n = cursor.u32("number of coefficients")
    section = cursor.section
    if section.size != 4 + n * COEFFICIENT.itemsize:
        raise container.size_error(section, "coefficients", f"4 + {n} coefficients of {COEFFICIENT.itemsize} bytes")
    records = container.content(section)[4:]
    used, wires = _native.n_threads(threads), header.n_wires
    n_a, n_b, rows, in_order, fault, index, found = core.scan_coefficients(used, records, header.domain_size, wires)
    if fault:
        expected = {"matrix": "0 or 1", "row": f"below {header.domain_size}", "column": f"below {wires}"}[fault]
        field = {"matrix": "matrix", "row": "constraint", "column": "wire"}[fault]
        raise FormatError(container.path, f"{_coefficient(section, index)}: {field}", expected, found)
    arena = _native.arena()
    outs = [
        (arena.empty(rows + 1), arena.empty(entries, np.uint32), arena.empty(entries, np.uint32))
        for entries in (n_a, n_b)
    ]
    with _native.steady(container.path):
        values = core.gather_coefficients(used, records, in_order, wires, *outs)
    bad = _native.first_not_below(header.curve, values)
    if bad is not None:
        index = int((records.view(COEFFICIENT)["value"] == values[bad]).all(axis=1).argmax())
        found_value = f"{limbs_to_ints(values[bad : bad + 1])[0]:#x}"
        raise FormatError(container.path, f"{_coefficient(section, index)}: value", "below the modulus r", found_value)
    coefficients = FrVector(header.curve, _native.over_r(header.curve, values), Form.MONTGOMERY)
    a, b = (SparseMatrix(wires, start, column, value, coefficients) for start, column, value in outs)
    return Matrices(a, b, None)


def _coefficient(section: Section, index: int) -> str:
    offset = section.offset + 4 + index * COEFFICIENT.itemsize
    return f"section 4 (coefficients), offset {offset}: coefficient {index}"
