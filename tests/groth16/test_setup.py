"""Development keys: their secrets, their warning, their domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tiny_circuits import EDGE_CIRCUITS, WASTE

from snarkline.backend.base import Domain
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.errors import InputError, MismatchError, SecurityWarning
from snarkline.groth16.keys import HBasis, odd_coset_domain
from snarkline.groth16.setup import setup
from snarkline.groth16.toxic import ToxicWaste
from snarkline.r1cs.matrices import R1CS

NAMES = ("tau", "alpha", "beta", "gamma", "delta")


@pytest.fixture
def r1cs() -> R1CS:
    return EDGE_CIRCUITS["multiplier"]().r1cs(BN254)


@pytest.fixture
def domain() -> Domain:
    return odd_coset_domain(BN254, 4)[0]


def test_it_says_that_the_key_is_for_development(r1cs: R1CS) -> None:
    with pytest.warns(SecurityWarning, match="development only"):
        setup(r1cs)


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_every_key_has_secrets_of_its_own(r1cs: R1CS) -> None:
    keys = [setup(r1cs).verifying_key for _ in range(4)]
    for name in ("alpha1", "beta2", "gamma2", "delta2"):
        assert len({getattr(vk, name) for vk in keys}) == len(keys)
    assert all(vk.gamma2 != vk.delta2 for vk in keys)


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
@pytest.mark.parametrize("fails", [False, True])
def test_the_secrets_are_wiped(r1cs: R1CS, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    drawn: list[ToxicWaste] = []
    draw: Callable[[Domain], ToxicWaste] = ToxicWaste.draw

    def keep(domain: Domain) -> ToxicWaste:
        drawn.append(draw(domain))
        assert all(getattr(drawn[0], name) for name in NAMES)
        return drawn[0]

    monkeypatch.setattr(ToxicWaste, "draw", keep)
    if fails:
        with pytest.raises(MismatchError):
            setup(replace(r1cs, matrices=replace(r1cs.matrices, c=None)))
    else:
        setup(r1cs)
    assert [getattr(drawn[0], name) for name in NAMES] == [0] * 5


def test_toxic_waste_keeps_its_values_to_itself(domain: Domain) -> None:
    waste = ToxicWaste(domain, *WASTE)
    assert tuple(getattr(waste, name) for name in NAMES) == WASTE
    assert not any(str(value) in repr(waste) for value in WASTE)


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("value", [0, -1, BN254.r, BN254.r + 1])
def test_toxic_waste_outside_the_field(domain: Domain, position: int, value: int) -> None:
    values = [*WASTE]
    values[position] = value
    with pytest.raises(InputError):
        ToxicWaste(domain, *values)


def test_degenerate_toxic_waste(domain: Domain) -> None:
    tau, alpha, beta, gamma, _ = WASTE
    with pytest.raises(InputError):
        ToxicWaste(domain, tau, alpha, beta, gamma, gamma)
    shift = odd_coset_domain(BN254, 4)[1]
    for power in range(2 * domain.size):
        with pytest.raises(InputError):
            ToxicWaste(domain, pow(shift, power, BN254.r), *WASTE[1:])


def test_drawn_values_cover_the_field(domain: Domain) -> None:
    drawn = [getattr(ToxicWaste.draw(domain), name) for _ in range(200) for name in NAMES]
    assert len(set(drawn)) == len(drawn)
    assert min(drawn) < BN254.r // 100 and max(drawn) > BN254.r - BN254.r // 100


@pytest.mark.parametrize(
    ("curve", "log_size", "root"),
    [
        # w[3] of ffjavascript's Fr.
        (BN254, 3, 19540430494807482326159819597004422086093766032135589407132600596362845576832),
        (BLS12_381, 3, 28761180743467419819834788392525162889723178799021384024940474588120723734663),
    ],
    ids=["bn254", "bls12_381"],
)
def test_domain_is_that_of_ffjavascript(curve: Curve, log_size: int, root: int) -> None:
    domain, shift = odd_coset_domain(curve, log_size)
    assert (domain.log_size, domain.root) == (log_size, root)
    assert shift * shift % curve.r == root


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_largest_domain(curve: Curve) -> None:
    domain, shift = odd_coset_domain(curve, curve.two_adicity - 1)
    assert pow(shift, domain.size, curve.r) == curve.r - 1
    for log_size in (-1, curve.two_adicity):
        with pytest.raises(MismatchError):
            odd_coset_domain(curve, log_size)


@pytest.mark.filterwarnings("ignore::snarkline.errors.SecurityWarning")
def test_layout(r1cs: R1CS) -> None:
    key = setup(r1cs)
    n = r1cs.n_wires
    assert [len(q.points) for q in (key.a, key.b1, key.b2, key.l)] == [n, n, n, n - 2]
    assert (len(key.h), key.h_basis, key.l.first) == (key.domain.size, HBasis.ODD_COSET, 2)
    assert key.matrices is not None and key.matrices.c is None
    assert key.matrices.a.n_rows == r1cs.n_constraints + r1cs.n_public + 1
