"""The path of a proof: evaluate, quotient, commit, assemble.

Notation: Groth, eprint 2016/260, section 3.2, where the witness w = (1, public inputs, private wires). Every stage is a
pure function; backends differ in how they do the operations, keys in their data, and neither is visible here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import SystemRandom

from snarkline.backend.base import Backend, Sum, Workload
from snarkline.curves.curve import Curve
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector
from snarkline.groth16.footprint import Sizes
from snarkline.groth16.keys import HBasis, Proof, ProvingKey, Query
from snarkline.groth16.products import AnyMatrices, Evaluation, Products, ValuesOutOfRange
from snarkline.r1cs.matrices import Matrices
from snarkline.trace import span

Halfway = Callable[[Point, Point, Point], object]
"""Called with the sums over A, B in G1 and B in G2 while the accelerator does the others."""


@dataclass(frozen=True)
class Sums:
    """What the five MSMs of a proof yield: w on the queries A, B (in both groups) and L, and h on the query H."""

    a: Point
    b1: Point
    b2: Point
    l: Point  # noqa: E741
    h: Point


def start(backend: Backend, key: ProvingKey, products: Products) -> Sums:
    """`begin`, and what is left then."""
    return begin(backend, key, products)()


def begin(
    backend: Backend,
    key: ProvingKey,
    products: Products,
    *,
    points_at_once: int | None = None,
    before_sums: Callable[[], object] | None = None,
    halfway: Halfway | None = None,
    check_range: bool = False,
) -> Callable[[], Sums]:
    """The half of a proof that needs the accelerator; the function returned does what is left to the host. Sums are
    over at most `points_at_once` points at a time, so that memory stays small. `before_sums` is called, on the host,
    when all before them is done, or queued. With `check_range` raises ValuesOutOfRange, before the sums, for a witness
    whose values are not all below r: the digits of others would be in no bucket."""
    w, a, b, c = evaluate(backend, key, products)
    in_range = backend.begin_range_check(w) if check_range else None
    h = quotient(backend, key, a, b, c)
    del a, b, c  # their memory serves the MSMs
    if before_sums is not None:
        before_sums()
    if in_range is not None and not in_range():
        raise ValuesOutOfRange
    return begin_commit(backend, key, w, h, points_at_once, halfway)


@span("evaluate")
def evaluate(backend: Backend, key: ProvingKey, products: Products) -> Evaluation:
    """The witness, and <A_k, w>, <B_k, w>, <C_k, w> for every constraint k, on the domain."""
    return products.evaluate(backend, key.domain)


@span("quotient")
def quotient(backend: Backend, key: ProvingKey, a: FrVector, b: FrVector, c: FrVector) -> FrVector:
    """h = (a * b - c) / Z in the basis of the key's H query. Uses up a, b and c."""
    a, b, c = (backend.coset_evaluations(v, key.domain, key.shift) for v in (a, b, c))
    h = backend.multiply_subtract(a, b, c)
    if key.h_basis is HBasis.COEFFICIENTS:
        # Z = x^n - 1 is the constant shift^n - 1 on the coset. In the other basis the key has it divided out.
        z = pow(key.shift, key.domain.size, key.curve.r) - 1
        h = backend.ntt(backend.scale(h, pow(z, -1, key.curve.r)), key.domain, inverse=True, shift=key.shift)
    return FrVector(h.curve, h.limbs[: len(key.h)], h.form)


def commit(backend: Backend, key: ProvingKey, w: FrVector, h: FrVector, points_at_once: int | None = None) -> Sums:
    """The sums of w and h over the key's queries. Queries over the same wires share one pass over their scalars."""
    return begin_commit(backend, key, w, h, points_at_once)()


@span("commit")
def begin_commit(
    backend: Backend,
    key: ProvingKey,
    w: FrVector,
    h: FrVector,
    points_at_once: int | None = None,
    halfway: Halfway | None = None,
) -> Callable[[], Sums]:
    """`commit`, but for what the function returned does, to which the accelerator is not needed."""
    begun: list[tuple[list[str], Callable[[], list[Point]]]] = []
    for names in _shared_wires({"a": key.a, "b1": key.b1, "b2": key.b2, "l": key.l}):
        queries: list[Query] = [getattr(key, name) for name in names]
        with span("msm " + " ".join(names), items=len(queries[0].points)):
            scalars = _scalars(backend, queries[0], w)
            tables = [query.points for query in queries]
            begun.append((names, _begin_sums(backend, key, tables, scalars, points_at_once)))
    with span("msm h", items=len(key.h)):
        begun.append((["h"], _begin_sums(backend, key, [key.h], h, points_at_once)))
    if halfway is not None:
        known = _points(entry for entry in begun if entry[0][0] in ("a", "b1", "b2"))
        halfway(known["a"], known["b1"], known["b2"])
    backend.await_msms()
    return lambda: Sums(**_points(begun))


def _points(begun: Iterable[tuple[list[str], Callable[[], list[Point]]]]) -> dict[str, Point]:
    """Waits for sums that were begun, by name."""
    return {name: point for names, end in begun for name, point in zip(names, end(), strict=True)}


@span("assemble")
def assemble(backend: Backend, key: ProvingKey, sums: Sums, public: Sequence[int], r: int, s: int) -> Proof:
    """A = alpha + sum w_i A_i + r delta,  B = beta + sum w_i B_i + s delta,  C = L + H + s A + r B - r s delta.

    C takes B in G1 without its term s delta, which cancels against -r s delta.
    """
    return _completed(backend, key, blind(backend, key, sums.a, sums.b1, sums.b2, r, s), sums, public)


@dataclass(frozen=True)
class Blinded:
    """What of a proof is known before L and H: A, B, and C but for these. As secret as L and H are."""

    a: Point
    b: Point
    c: Point


@span("blind")
def blind(backend: Backend, key: ProvingKey, a: Point, b1: Point, b2: Point, r: int, s: int) -> Blinded:
    """The half of `assemble` that reads no L and no H."""
    vk = key.verifying_key
    blinded_a = _combine(backend, (vk.alpha1, 1), (a, 1), (key.delta1, r))
    blinded_b = _combine(backend, (vk.beta2, 1), (b2, 1), (vk.delta2, s))
    return Blinded(blinded_a, blinded_b, _combine(backend, (blinded_a, s), (key.beta1, r), (b1, r)))


@span("assemble")
def complete(backend: Backend, key: ProvingKey, blinded: Blinded, sums: Sums, public: Sequence[int]) -> Proof:
    """The other half of `assemble`."""
    return _completed(backend, key, blinded, sums, public)


def _completed(backend: Backend, key: ProvingKey, blinded: Blinded, sums: Sums, public: Sequence[int]) -> Proof:
    c = _combine(backend, (blinded.c, 1), (sums.l, 1), (sums.h, 1))
    return Proof(key.curve, blinded.a, blinded.b, c, tuple(public))


def draw_blinding(curve: Curve) -> tuple[int, int]:
    """r and s, uniform in [0, r) from the operating system's generator (`randrange` rejects, it does not reduce)."""
    system = SystemRandom()  # the generator of `secrets`, which itself loads OpenSSL: 3 MiB and 5 ms
    return system.randrange(curve.r), system.randrange(curve.r)


def workload(key: ProvingKey, matrices: AnyMatrices) -> Workload:
    """The sizes of a proof, for a backend that plans ahead."""
    queries = {"a": key.a, "b1": key.b1, "b2": key.b2, "l": key.l}
    sums = [
        Sum(tuple(queries[name].points.group for name in names), len(queries[names[0]].points))
        for names in _shared_wires(queries)
    ]
    sums.append(Sum((key.h.group,), len(key.h)))
    if isinstance(matrices, Matrices):
        return Workload(key.curve, key.n_wires, key.domain.size, tuple(sums), n_entries=matrices.n_entries)
    structure, packed = matrices.structure_bytes, matrices.packed_bytes
    return Workload(
        key.curve, key.n_wires, key.domain.size, tuple(sums), structure_bytes=structure, packed_bytes=packed
    )


def sizes(key: ProvingKey, threads: int, *, packed: bool) -> Sizes:
    """The sizes of a proof, for a cap on memory. `packed`: of a witness whose values are yet to be written out."""
    gathered = {id(q.wires): len(q.wires) for q in (key.a, key.b1, key.b2) if q.wires is not None}
    return Sizes(key.curve, key.n_wires, key.domain.size, threads, packed, sum(gathered.values()))


def _shared_wires(queries: dict[str, Query]) -> list[list[str]]:
    """The names of the queries, those over the same wires together."""
    groups: dict[tuple[int, int, int | None], list[str]] = {}
    for name, query in queries.items():
        wires = None if query.wires is None else id(query.wires)
        groups.setdefault((query.first, len(query.points), wires), []).append(name)
    return list(groups.values())


def _scalars(backend: Backend, query: Query, w: FrVector) -> FrVector:
    """The values of the wires that a query is over."""
    if query.wires is not None:
        return backend.select(w, query.wires)
    return FrVector(w.curve, w.limbs[query.first : query.first + len(query.points)], w.form)


def _begin_sums(
    backend: Backend, key: ProvingKey, tables: list[PointTable], scalars: FrVector, points_at_once: int | None
) -> Callable[[], list[Point]]:
    """The sums of `scalars` over each table, slice by slice. The key's pages are given back after each."""
    n = len(scalars)
    if points_at_once is None or n <= points_at_once:
        whole = backend.begin_msm(tables, scalars)
        key.release_pages()
        return whole
    parts = []
    for begin in range(0, n, points_at_once):
        rows = slice(begin, begin + points_at_once)
        pieces = [PointTable(t.curve, t.group, t.limbs[rows]) for t in tables]
        parts.append(backend.msm(pieces, FrVector(scalars.curve, scalars.limbs[rows], scalars.form)))
        key.release_pages()
    sums = [_combine(backend, *((part[i], 1) for part in parts)) for i in range(len(tables))]
    return lambda: sums


def _combine(backend: Backend, *terms: tuple[Point, int]) -> Point:
    points, scalars = zip(*terms, strict=True)
    table = PointTable.from_points(points[0].curve, points[0].group, points)
    (point,) = backend.msm([table], FrVector.from_ints(points[0].curve, scalars))
    return point
