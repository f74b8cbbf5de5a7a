"""Development keys: the key generation of Groth, eprint 2016/260, section 3.2, by one party.

Rows at the end of A bind the public wires. What else the layout of a key says (circom's or bellperson's) is data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from snarkline.backend import open_backend
from snarkline.backend.base import Backend, Domain
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector
from snarkline.errors import SecurityWarning
from snarkline.groth16.keys import HBasis, ProvingKey, Query, VerifyingKey
from snarkline.groth16.layout import KeyLayout, circom_layout
from snarkline.groth16.products import AnyMatrices, bind, transposed
from snarkline.groth16.toxic import ToxicWaste
from snarkline.memory import Arena
from snarkline.r1cs.matrices import R1CS
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.threads import usable_threads
from snarkline.trace import span

WARNING = (
    "a key from setup is for development only: this process knew the secrets behind it, with which anyone can forge "
    "proofs; use a key from a multi-party ceremony for anything of value"
)


def setup(
    r1cs: R1CS | StructuredR1CS,
    *,
    layout: Callable[[Curve, int], KeyLayout] = circom_layout,
    backend: str = "auto",
    threads: int | None = None,
    toxic_waste_for_tests: tuple[int, int, int, int, int] | None = None,
) -> ProvingKey:
    """A development key for a circuit, with fresh toxic waste, which is wiped afterwards. Emits a SecurityWarning.

    `layout` is `circom_layout` or `bellperson_layout` (of `groth16.layout`).
    `toxic_waste_for_tests` fixes tau, alpha, beta, gamma and delta. Raises MismatchError for a circuit without a C
    matrix, or with more rows than the curve has roots of unity for.
    """
    warnings.warn(WARNING, SecurityWarning, stacklevel=2)
    chosen = layout(r1cs.curve, r1cs.n_constraints + r1cs.n_public + 1)
    fixed = toxic_waste_for_tests
    waste = ToxicWaste.draw(chosen.domain) if fixed is None else ToxicWaste(chosen.domain, *fixed)
    threads = threads if threads is not None else usable_threads()
    try:
        with closing(Arena()) as arena, closing(open_backend(backend, threads, arena)) as runner, span("setup"):
            return runner.run(lambda opened: _make_key(opened, r1cs, chosen, waste))
    finally:
        waste.wipe()


def _make_key(backend: Backend, r1cs: R1CS | StructuredR1CS, layout: KeyLayout, waste: ToxicWaste) -> ProvingKey:
    curve, matrices, n_bound = r1cs.curve, bind(r1cs), r1cs.n_public + 1
    with span("polynomials at tau"):
        a, b, c = _polynomials_at_tau(backend, matrices, layout.domain, waste)
    with span("a, b queries"):
        wires_a, wires_b = matrices.wires_read() if layout.filtered else (None, None)
        a_query = _query(backend, Group.G1, a, wires_a)
        b1_query = _query(backend, Group.G1, b, wires_b)
        b2_query = _query(backend, Group.G2, b, wires_b)
    with span("ic, l query"):
        k = backend.add(backend.add(backend.scale(a, waste.beta), backend.scale(b, waste.alpha)), c)
        ic = _over(backend, k, slice(None, n_bound), waste.gamma)
        l_query = _over(backend, k, slice(n_bound, None), waste.delta)
    with span("h query"):
        h_query = backend.fixed_base(Point.generator(curve, Group.G1), _h_scalars(backend, layout, waste))
    alpha1, beta1, delta1 = _multiples(backend, curve, Group.G1, waste.alpha, waste.beta, waste.delta)
    beta2, gamma2, delta2 = _multiples(backend, curve, Group.G2, waste.beta, waste.gamma, waste.delta)
    return ProvingKey(
        curve=curve,
        n_wires=r1cs.n_wires,
        domain=layout.domain,
        h_basis=layout.h_basis,
        shift=layout.shift,
        matrices=matrices if isinstance(matrices, StructuredMatrices) else replace(matrices, c=None),
        verifying_key=VerifyingKey(curve, alpha1, beta2, gamma2, delta2, tuple(ic.to_points())),
        beta1=beta1,
        delta1=delta1,
        a=a_query,
        b1=b1_query,
        b2=b2_query,
        l=Query(l_query, first=n_bound),
        h=h_query,
        filtered=layout.filtered,
    )


def _query(backend: Backend, group: Group, scalars: FrVector, wires: npt.NDArray[np.uint32] | None) -> Query:
    """The multiples of the generator by the scalars of the wires (None: all)."""
    chosen = scalars if wires is None else backend.select(scalars, wires)
    return Query(backend.fixed_base(Point.generator(scalars.curve, group), chosen), wires=wires)


def _polynomials_at_tau(
    backend: Backend, matrices: AnyMatrices, domain: Domain, waste: ToxicWaste
) -> tuple[FrVector, FrVector, FrVector]:
    """For every wire i, A_i(tau), B_i(tau) and C_i(tau), where A_i takes the values of A's column i on the domain."""
    # L_j(tau) = 1/n sum_k tau^k root^(-jk): the Lagrange polynomials at tau are an inverse transform.
    lagrange = backend.ntt(backend.powers(domain.curve, domain.size, 1, waste.tau), domain, inverse=True)
    return transposed(backend, matrices, lagrange)


def _h_scalars(backend: Backend, layout: KeyLayout, waste: ToxicWaste) -> FrVector:
    """The scalars of the H query, which are Z(tau) / delta times the values at tau of the basis of h.

    Coefficients: the basis is 1, x, ..., x^(n-2). Odd coset: the Lagrange polynomials there with Z divided out, which
    are the polynomials with odd index of the doubled domain, whose root is `shift`:
        L'_(2j+1)(tau) = 1/2n sum_(k < 2n) tau^k shift^(-(2j+1)k)
                       = (1 - tau^n)/2 * 1/n sum_(k < n) (tau / shift)^k root^(-jk),      for shift^n = -1.
    """
    domain, r, tau = layout.domain, layout.domain.curve.r, waste.tau
    z = pow(tau, domain.size, r) - 1
    if layout.h_basis is HBasis.COEFFICIENTS:
        return backend.powers(domain.curve, domain.size - 1, z * pow(waste.delta, -1, r) % r, tau)
    factor = -z * pow(2 * waste.delta, -1, r) % r
    powers = backend.powers(domain.curve, domain.size, factor, tau * pow(layout.shift, -1, r) % r)
    return backend.ntt(powers, domain, inverse=True)


def _over(backend: Backend, k: FrVector, part: slice, divisor: int) -> PointTable:
    """The multiples k[part] / divisor of the generator of G1."""
    scalars = backend.scale(FrVector(k.curve, k.limbs[part], k.form), pow(divisor, -1, k.curve.r))
    return backend.fixed_base(Point.generator(k.curve, Group.G1), scalars)


def _multiples(backend: Backend, curve: Curve, group: Group, *scalars: int) -> list[Point]:
    return backend.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, scalars)).to_points()
