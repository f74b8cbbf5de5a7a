// Endomorphisms of the two curves and, with them, membership in the groups of order r.
#pragma once

#include "curves.h"

namespace snarkline {
inline namespace SNL_ISA {

// The constants of psi = twist^-1 . Frobenius . twist on E'(Fp2): psi(x, y) = (conj(x) * x_factor, conj(y) * y_factor),
// with psi^2 - t psi + p = 0. Galbraith, Scott, "Exponentiation in pairing-friendly groups using homomorphisms" (2008).
template <class C>
struct Psi {
  using Fp2 = typename Derived<C>::Fp2;

  static constexpr Fp2 derive_sixth() {  // xi^((p - 1) / 6)
    auto e = C::Fp::modulus;
    e.limb[0] -= 1;
    return Derived<C>::xi.pow(divide(e, 6));
  }
  static constexpr Fp2 sixth = derive_sixth();
  static constexpr Fp2 derive_x() {
    const Fp2 third = sixth.sqr();
    return C::twist == Twist::D ? third : third.inverse();
  }
  static constexpr Fp2 derive_y() {
    const Fp2 half = sixth.sqr() * sixth;
    return C::twist == Twist::D ? half : half.inverse();
  }
  static constexpr Fp2 x_factor = derive_x();
  static constexpr Fp2 y_factor = derive_y();

  static constexpr Affine<Fp2> apply(const Affine<Fp2>& p) {
    return {p.x.conjugate() * x_factor, p.y.conjugate() * y_factor};
  }
  static constexpr Xyzz<Fp2> apply(const Xyzz<Fp2>& p) {
    return {p.x.conjugate() * x_factor, p.y.conjugate() * y_factor, p.zz.conjugate(), p.zzz.conjugate()};
  }
};

// phi(x, y) = (beta x, y) on E(Fp), beta a cube root of unity: phi^2 + phi + 1 = 0.
template <class C>
struct Phi {
  using Fp = typename C::Fp;

  static constexpr Fp derive_beta() {  // generator^((p - 1) / 3)
    auto e = C::Fp::modulus;
    e.limb[0] -= 1;
    return Fp::from_u64(C::FpParams::generator).pow(divide(e, 3));
  }
  static constexpr Fp beta = derive_beta();
};

template <class F, class B>
constexpr bool is_on_curve(const Affine<F>& p, const B& b) {
  return p.is_infinity() || p.y.sqr() == p.x.sqr() * p.x + b;
}

// |seed| * p; the sign is the caller's.
template <class C, class F>
constexpr Xyzz<F> multiply_by_seed(const Xyzz<F>& p) {
  Xyzz<F> acc = p;
  for (int i = Int<1>{{C::seed}}.bit_length() - 1; i-- > 0;) {
    acc = acc.dbl();
    if (C::seed >> i & 1) acc.add(p);
  }
  return acc;
}

// Whether a point of E(Fp) has order r.
// BN: E(Fp) has r points.
// BLS12: phi(P) = -x^2 P implies (x^4 - x^2 + 1) P = r P = 0, by phi^2 + phi + 1 = 0. Which of beta and beta^2 has the
// eigenvalue -x^2 does not follow from the facts; (beta - beta^2)^2 = -3 and the generator decides. Scott, "A note on
// group membership tests for G1, G2 and GT on BLS pairing-friendly curves" (eprint 2021/1130), section 6.
template <class C>
bool in_subgroup(const Affine<typename C::Fp>& p) {
  using Fp = typename C::Fp;
  if constexpr (C::family == Family::BN) {
    return true;
  } else {
    const auto minus_x2 = [](const Affine<Fp>& q) {
      return -multiply_by_seed<C>(multiply_by_seed<C>(Xyzz<Fp>::from_affine(q)));
    };
    static const Fp beta = [&] {
      const Fp candidate = Phi<C>::beta;
      const Affine<Fp> g = Derived<C>::g1;
      const bool right = minus_x2(g) == Xyzz<Fp>::from_affine({candidate * g.x, g.y});
      return right ? candidate : candidate.sqr();
    }();
    if (p.is_infinity()) return true;
    return minus_x2(p) == Xyzz<Fp>::from_affine({beta * p.x, p.y});
  }
}

// Whether a point of the twist has order r.
// BLS12: psi(Q) = x Q, where x = t - 1, implies (p + 1 - t) Q = 0 by the characteristic equation of psi, and p + 1 - t
// = r (x - 1)^2 / 3 shares no factor with the twist's cofactor. Scott, eprint 2021/1130, section 4. BN: (x + 1) Q +
// psi(x Q) + psi^2(x Q) = psi^3(2x Q). The norm of this endomorphism in Z[psi] is r times a number that is prime to the
// twist's cofactor, 2 p - r. Dai, Lin, Zhao, Zhou, "Fast subgroup membership testings for G1, G2 and GT on
// pairing-friendly curves" (eprint 2022/348), section 4.
template <class C>
bool in_subgroup(const Affine<Fp2<typename C::Fp>>& q) {
  using Point = Xyzz<Fp2<typename C::Fp>>;
  if (q.is_infinity()) return true;
  const Point xq = multiply_by_seed<C>(Point::from_affine(q));
  static_assert(C::seed_negative == (C::family == Family::BLS12));
  if constexpr (C::family == Family::BLS12) {
    return -xq == Point::from_affine(Psi<C>::apply(q));
  } else {
    const Point psi1 = Psi<C>::apply(xq), psi2 = Psi<C>::apply(psi1);
    Point left = xq;
    left.add(q);
    left.add(psi1);
    left.add(psi2);
    return left == Psi<C>::apply(psi2).dbl();
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
