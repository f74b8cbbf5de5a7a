"""What a proof and a setup will take, from the sizes of a circuit and a second of measuring.

The operations of `prove.py` and `setup.py` are timed at `SAMPLE` elements and scaled to the circuit's sizes: transforms
by n log n, sums over n points by n / (log n)^(3/4) (the windows of Pippenger's method grow with log n, but larger sums
also wait more for memory), the rest by n.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from snarkline.backend.base import Backend
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point
from snarkline.curves.vector import Form, FrVector
from snarkline.groth16.footprint import Sizes
from snarkline.groth16.keys import odd_coset_domain
from snarkline.r1cs.matrices import SparseMatrix

LOG_SAMPLE = 13
SAMPLE = 1 << LOG_SAMPLE
SMALL = SAMPLE >> 3
RUNS = 2
ENTRY_BYTES = 44 + 8


@dataclass(frozen=True)
class Shape:
    """Sizes of a circuit: wires, public wires without wire 0, non-zero entries of its matrices, log of the domain."""

    curve: Curve
    n_wires: int
    n_public: int
    n_entries: int
    log_domain: int

    @property
    def domain_size(self) -> int:
        return 1 << self.log_domain

    @property
    def key_bytes(self) -> int:
        """A proving key's points and coefficients."""
        g1, g2 = (8 * self.curve.point_limbs(group) for group in Group)
        return self.n_wires * (3 * g1 + g2) + self.domain_size * g1 + self.n_entries * 44


@dataclass(frozen=True)
class Rates:
    """Seconds that operations took on `SAMPLE` elements: `wires` is a sum over the queries A, B1 and B2 together,
    `private` over L or H; `_bits` with scalars 0 and 1. `fixed_g1` and `fixed_g2` are seconds for one more point."""

    wires: float
    private: float
    wires_bits: float
    private_bits: float
    transforms: float
    entries: float
    fixed_g1: float
    fixed_g2: float


@dataclass(frozen=True)
class Estimate:
    """`proof_s`: least (all wires but few are 0 or 1) and most (none is), by a prover that holds the key. `*_bytes`
    are peaks of resident memory, with the pages of the mapped key: of a proof, of a proof with the smallest
    `max_memory` that it takes, of a setup."""

    proof_s: tuple[float, float]
    setup_s: float
    proof_bytes: int
    least_bytes: int
    setup_bytes: int


def estimate(shape: Shape, rates: Rates, process_bytes: int, threads: int) -> Estimate:
    """Scales `rates` to a circuit. `process_bytes` is what a process holds before it works."""
    n, wires, private = shape.domain_size, shape.n_wires, shape.n_wires - shape.n_public - 1
    quotient = n * max(1, shape.log_domain) / (SAMPLE * LOG_SAMPLE) * rates.transforms
    other = 3 * quotient + shape.n_entries / SAMPLE * rates.entries + _points(n) * rates.private
    bits = other + wires / SAMPLE * rates.wires_bits + private / SAMPLE * rates.private_bits
    dense = other + _points(wires) * rates.wires + _points(private) * rates.private
    setup = 2 * quotient + (3 * wires + n) * rates.fixed_g1 + wires * rates.fixed_g2
    setup += 2 * shape.n_entries / SAMPLE * rates.entries
    sizes = Sizes(shape.curve, wires, n, threads)
    kept = process_bytes + shape.key_bytes + shape.n_entries * (ENTRY_BYTES - 44)
    return Estimate(
        proof_s=(min(bits, dense), dense),
        setup_s=setup,
        proof_bytes=process_bytes + sizes.whole_bytes(shape.n_entries),
        least_bytes=process_bytes + sizes.least_whole_bytes(shape.n_entries),
        setup_bytes=kept + 32 * (n + 4 * wires),
    )


def measure(backend: Backend, curve: Curve) -> Rates:
    """Times the operations; takes about a second."""
    domain, shift = odd_coset_domain(curve, LOG_SAMPLE)
    scalars = FrVector.from_ints(curve, (secrets.randbelow(curve.r) for _ in range(SAMPLE)))
    bits = FrVector.from_ints(curve, (secrets.randbelow(2) for _ in range(SAMPLE)))
    few = FrVector(curve, scalars.limbs[:SMALL], Form.CANONICAL)
    generators = [Point.generator(curve, group) for group in Group]
    g1, g2 = (backend.fixed_base(base, scalars) for base in generators)
    fixed = [_slope(backend, base, scalars, few) for base in generators]
    matrix = _diagonal(curve)
    vector = backend.powers(curve, SAMPLE, 1, shift)
    return Rates(
        wires=_seconds(lambda: backend.msm([g1, g1, g2], scalars)),
        private=_seconds(lambda: backend.msm([g1], scalars)),
        wires_bits=_seconds(lambda: backend.msm([g1, g1, g2], bits)),
        private_bits=_seconds(lambda: backend.msm([g1], bits)),
        transforms=_seconds(lambda: backend.coset_evaluations(vector, domain, shift)),
        entries=_seconds(lambda: backend.evaluate(matrix, scalars, domain)),
        fixed_g1=fixed[0],
        fixed_g2=fixed[1],
    )


def _slope(backend: Backend, base: Point, many: FrVector, few: FrVector) -> float:
    """Seconds for one more multiple of a base, without the table that is made first."""
    difference = _seconds(lambda: backend.fixed_base(base, many)) - _seconds(lambda: backend.fixed_base(base, few))
    return max(0.0, difference / (len(many) - len(few)))


def _points(n: int) -> float:
    """A sum over n points in sums over `SAMPLE`."""
    return n / SAMPLE * math.pow(min(1.0, LOG_SAMPLE / max(1, n.bit_length() - 1)), 0.75)


def _seconds(work: Callable[[], object]) -> float:
    """The least of a few runs: what disturbs a measurement only adds to it."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def _diagonal(curve: Curve) -> SparseMatrix:
    index = np.arange(SAMPLE, dtype=np.uint32)
    return SparseMatrix(
        n_columns=SAMPLE,
        row_start=np.arange(SAMPLE + 1, dtype=np.uint64),
        column=index,
        value=np.zeros(SAMPLE, dtype=np.uint32),
        coefficients=FrVector.from_ints(curve, [curve.r - 2], Form.MONTGOMERY),
    )
