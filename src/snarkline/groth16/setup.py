"""Development keys: the key generation of Groth, eprint 2016/260, section 3.2, by one party.

The layout is that of circom's keys: A, B and L queries over the wires in order, H over the odd coset, and rows at the
end of A that bind the public wires.
"""

from __future__ import annotations

import warnings
from contextlib import closing

from snarkline.backend import open_backend
from snarkline.backend.base import Backend, Domain
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector
from snarkline.errors import MismatchError, SecurityWarning
from snarkline.groth16.keys import HBasis, ProvingKey, Query, VerifyingKey, odd_coset_domain
from snarkline.groth16.toxic import ToxicWaste
from snarkline.memory import Arena
from snarkline.r1cs.matrices import R1CS, Matrices, bind_public
from snarkline.threads import usable_threads
from snarkline.trace import span

WARNING = (
    "a key from setup is for development only: this process knew the secrets behind it, with which anyone can forge "
    "proofs; use a key from a multi-party ceremony for anything of value"
)


def setup(
    r1cs: R1CS,
    *,
    backend: str = "auto",
    threads: int | None = None,
    toxic_waste_for_tests: tuple[int, int, int, int, int] | None = None,
) -> ProvingKey:
    """A development key for a circuit, with fresh toxic waste, which is wiped afterwards. Emits a SecurityWarning.

    `toxic_waste_for_tests` fixes tau, alpha, beta, gamma and delta. Raises MismatchError for a circuit without a C
    matrix, or with more rows than the curve has roots of unity for.
    """
    warnings.warn(WARNING, SecurityWarning, stacklevel=2)
    domain, shift = odd_coset_domain(r1cs.curve, max(1, (r1cs.n_constraints + r1cs.n_public).bit_length()))
    fixed = toxic_waste_for_tests
    waste = ToxicWaste.draw(domain) if fixed is None else ToxicWaste(domain, *fixed)
    threads = threads if threads is not None else usable_threads()
    try:
        with closing(Arena()) as arena, closing(open_backend(backend, threads, arena)) as opened, span("setup"):
            return _make_key(opened, r1cs, domain, shift, waste)
    finally:
        waste.wipe()


def _make_key(backend: Backend, r1cs: R1CS, domain: Domain, shift: int, waste: ToxicWaste) -> ProvingKey:
    curve, matrices, n_bound = r1cs.curve, bind_public(r1cs), r1cs.n_public + 1
    with span("polynomials at tau"):
        a, b, c = _polynomials_at_tau(backend, matrices, domain, waste)
    with span("a, b queries"):
        a_query = Query(backend.fixed_base(Point.generator(curve, Group.G1), a))
        b1_query = Query(backend.fixed_base(Point.generator(curve, Group.G1), b))
        b2_query = Query(backend.fixed_base(Point.generator(curve, Group.G2), b))
    with span("ic, l query"):
        k = backend.add(backend.add(backend.scale(a, waste.beta), backend.scale(b, waste.alpha)), c)
        ic = _over(backend, k, slice(None, n_bound), waste.gamma)
        l_query = _over(backend, k, slice(n_bound, None), waste.delta)
    with span("h query"):
        h_query = backend.fixed_base(Point.generator(curve, Group.G1), _h_scalars(backend, domain, shift, waste))
    alpha1, beta1, delta1 = _multiples(backend, curve, Group.G1, waste.alpha, waste.beta, waste.delta)
    beta2, gamma2, delta2 = _multiples(backend, curve, Group.G2, waste.beta, waste.gamma, waste.delta)
    return ProvingKey(
        curve=curve,
        n_wires=r1cs.n_wires,
        domain=domain,
        h_basis=HBasis.ODD_COSET,
        shift=shift,
        matrices=Matrices(matrices.a, matrices.b, None),
        verifying_key=VerifyingKey(curve, alpha1, beta2, gamma2, delta2, tuple(ic.to_points())),
        beta1=beta1,
        delta1=delta1,
        a=a_query,
        b1=b1_query,
        b2=b2_query,
        l=Query(l_query, first=n_bound),
        h=h_query,
    )


def _polynomials_at_tau(
    backend: Backend, matrices: Matrices, domain: Domain, waste: ToxicWaste
) -> tuple[FrVector, FrVector, FrVector]:
    """For every wire i, A_i(tau), B_i(tau) and C_i(tau), where A_i takes the values of A's column i on the domain."""
    if matrices.c is None:
        raise MismatchError("a key needs all three matrices of the circuit, the third is missing")
    # L_j(tau) = 1/n sum_k tau^k root^(-jk): the Lagrange polynomials at tau are an inverse transform.
    lagrange = backend.ntt(backend.powers(domain.curve, domain.size, 1, waste.tau), domain, inverse=True)
    a, b, c = (backend.evaluate_transposed(m, lagrange) for m in (matrices.a, matrices.b, matrices.c))
    return a, b, c


def _h_scalars(backend: Backend, domain: Domain, shift: int, waste: ToxicWaste) -> FrVector:
    """The Lagrange polynomials of the odd coset, divided by Z there, times Z(tau) / delta.

    These are the polynomials with odd index of the doubled domain, whose root is `shift`, over delta:
        L'_(2j+1)(tau) = 1/2n sum_(k < 2n) tau^k shift^(-(2j+1)k)
                       = (1 - tau^n)/2 * 1/n sum_(k < n) (tau / shift)^k root^(-jk),      for shift^n = -1.
    """
    r, tau = domain.curve.r, waste.tau
    factor = (1 - pow(tau, domain.size, r)) * pow(2 * waste.delta, -1, r) % r
    powers = backend.powers(domain.curve, domain.size, factor, tau * pow(shift, -1, r) % r)
    return backend.ntt(powers, domain, inverse=True)


def _over(backend: Backend, k: FrVector, part: slice, divisor: int) -> PointTable:
    """The multiples k[part] / divisor of the generator of G1."""
    scalars = backend.scale(FrVector(k.curve, k.limbs[part], k.form), pow(divisor, -1, k.curve.r))
    return backend.fixed_base(Point.generator(k.curve, Group.G1), scalars)


def _multiples(backend: Backend, curve: Curve, group: Group, *scalars: int) -> list[Point]:
    return backend.fixed_base(Point.generator(curve, group), FrVector.from_ints(curve, scalars)).to_points()
