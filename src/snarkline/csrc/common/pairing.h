// The optimal ate pairing. Vercauteren, "Optimal pairings" (eprint 2008/096); Aranha, Karabina, Longa, Gebotys, Lopez,
// "Faster explicit formulas for computing pairings over ordinary curves" (eprint 2010/526). M and S are products and
// squarings in Fp2.
#pragma once

#include "subgroup.h"

namespace snarkline {
inline namespace SNL_ISA {

// The non-adjacent form of the Miller loop's length, most significant digit at `top`: 6x + 2 for BN, x for BLS12 (its
// absolute value, see miller_loop).
template <class C>
struct MillerDigits {
  static constexpr int capacity = 68;
  signed char digit[capacity];
  int top;

  static constexpr MillerDigits derive() {
    Int<2> n{{C::seed, 0}};
    if (C::family == Family::BN) {
      const Int<2> x = n;
      for (int i = 0; i < 5; i++) add_in_place(n, x);
      add_in_place(n, Int<2>{{2, 0}});
    }
    MillerDigits out{};
    for (int i = 0; !n.is_zero(); i++, n = shift_right(n, 1)) {
      if (!n.bit(0)) continue;
      out.digit[i] = n.bit(1) ? -1 : 1;
      out.top = i;
      n.bit(1) ? (void)add_in_place(n, Int<2>{{1, 0}}) : (void)sub_in_place(n, Int<2>{{1, 0}});
    }
    return out;
  }
};

// A point of the twist in homogeneous coordinates, x = X / Z, y = Y / Z, which goes through the Miller loop, and the
// lines that it meets, as coefficients of yP, xP and 1. A line is known up to a factor in Fp2, which the final
// exponentiation removes.
template <class C>
struct MillerPoint {
  using F = typename Derived<C>::Fp2;
  struct Line {
    F y, x, constant;
  };

  F x, y, z;

  // 3 b2 a
  SNL_FN static constexpr F times_3b2(const F& a) {
    if constexpr (C::twist == Twist::M) {
      return times<3 * C::b>(times_xi<C>(a));
    } else {
      return a * times<3>(Derived<C>::b2);
    }
  }

  // this = 2 this, and the tangent: 4M + 6S and a multiplication by 3 b2. Eprint 2010/526, section 4, times 4 to avoid
  // halving.
  SNL_FN constexpr Line dbl() {
    const F a = x * y, b = y.sqr(), c = z.sqr();
    const F e = times_3b2(c), f = times<3>(e);
    const F h = (y * z).dbl();
    const F xx = x.sqr();
    const Line line{h, -times<3>(xx), b - e};
    x = a.dbl() * (b - f);
    y = (b + f).sqr() - times<3>(e.dbl().sqr());
    z = times<4>(b * h);
    return line;
  }

  // this += q, and the chord: 13M + 2S.
  SNL_FN constexpr Line add(const Affine<F>& q) {
    const F theta = y - q.y * z, lambda = x - q.x * z;
    const F d = lambda.sqr();
    const F e = lambda * d, g = x * d;
    const F h = e + z * theta.sqr() - g.dbl();
    const Line line{lambda, -theta, theta * q.x - lambda * q.y};
    x = lambda * h;
    y = theta * (g - h) - e * y;
    z = z * e;
    return line;
  }
};

// f times the line at p.
template <class C>
SNL_FN constexpr Fp12<C> mul_line(const Fp12<C>& f, const typename MillerPoint<C>::Line& line,
                                  const Affine<typename C::Fp>& p) {
  const auto ly = line.y * p.y, lx = line.x * p.x;
  if constexpr (C::twist == Twist::D) {
    return f.mul_013(ly, lx, line.constant);
  } else {
    return f.mul_023(line.constant, lx, ly);
  }
}

// The product of the Miller functions of n pairs, with shared squarings; `t` is scratch of n points. No point may be
// infinity, and all are in the groups of order r.
template <class C>
Fp12<C> miller_loop(const Affine<typename C::Fp>* p, const Affine<typename Derived<C>::Fp2>* q, MillerPoint<C>* t,
                    usize n) {
  using F = typename Derived<C>::Fp2;
  static constexpr auto digits = MillerDigits<C>::derive();
  for (usize k = 0; k < n; k++) t[k] = {q[k].x, q[k].y, F::one()};
  auto f = Fp12<C>::one();
  for (int i = digits.top; i-- > 0;) {
    if (i != digits.top - 1) f = f.sqr();
    for (usize k = 0; k < n; k++) f = mul_line(f, t[k].dbl(), p[k]);
    if (digits.digit[i] == 0) continue;
    for (usize k = 0; k < n; k++) f = mul_line(f, t[k].add(digits.digit[i] > 0 ? q[k] : -q[k]), p[k]);
  }
  if constexpr (C::family == Family::BN) {
    for (usize k = 0; k < n; k++) {
      const auto q1 = Psi<C>::apply(q[k]);
      f = mul_line(f, t[k].add(q1), p[k]);
      f = mul_line(f, t[k].add(-Psi<C>::apply(q1)), p[k]);
    }
  }
  // A negative loop length inverts f, which up to the final exponentiation is its conjugate.
  return C::seed_negative ? f.conjugate() : f;
}

// f^x in the cyclotomic subgroup, x with its sign.
template <class C>
Fp12<C> cyclotomic_pow_seed(const Fp12<C>& f) {
  Fp12<C> out = f;
  for (int i = Int<1>{{C::seed}}.bit_length() - 1; i-- > 0;) {
    out = out.cyclotomic_sqr();
    if (C::seed >> i & 1) out = out * f;
  }
  return C::seed_negative ? out.conjugate() : out;
}

// f^(m (p^12 - 1) / r) with a fixed m prime to r: 3 for BLS12, 2x (6x^2 + 3x + 1) for BN.
template <class C>
Fp12<C> final_exponentiation(const Fp12<C>& f) {
  const auto& gamma = Psi<C>::sixth;
  const auto pow_x = cyclotomic_pow_seed<C>;
  const auto frobenius2 = [&](const Fp12<C>& a) { return a.frobenius(gamma).frobenius(gamma); };
  Fp12<C> g = f.conjugate() * f.inverse();  // f^(p^6 - 1)
  g = frobenius2(g) * g;                    // ^(p^2 + 1): g is in the cyclotomic subgroup
  if constexpr (C::family == Family::BLS12) {
    // 3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3. Hayashida, Hayasaka, Teruya, "Efficient final
    // exponentiation via cyclotomic structure for pairings over families of elliptic curves" (eprint 2020/875).
    Fp12<C> a = pow_x(g) * g.conjugate();
    a = pow_x(a) * a.conjugate();
    a = pow_x(a) * a.frobenius(gamma);
    a = pow_x(pow_x(a)) * frobenius2(a) * a.conjugate();
    return a * g.cyclotomic_sqr() * g;
  } else {
    // (1 + 6x + 12x^2 + 12x^3) + (4x + 6x^2 + 12x^3) p + (6x + 6x^2 + 12x^3) p^2 + (-1 + 4x + 6x^2 + 12x^3) p^3.
    // Fuentes-Castaneda, Knapp, Rodriguez-Henriquez, "Faster hashing to G2" (SAC 2011), section 5.
    const Fp12<C> g_2x = pow_x(g).cyclotomic_sqr();
    const Fp12<C> g_6x = g_2x.cyclotomic_sqr() * g_2x;
    const Fp12<C> g_6xx = pow_x(g_6x);
    const Fp12<C> a = pow_x(g_6xx.cyclotomic_sqr()) * g_6xx * g_6x;
    const Fp12<C> b = a * g_2x.conjugate();
    return a * g_6xx * g * b.frobenius(gamma) * frobenius2(a) * frobenius2(b * g.conjugate()).frobenius(gamma);
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
