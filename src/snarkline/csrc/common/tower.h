// The tower of a pairing: Fp2 = Fp[u]/(u^2 + 1), Fp6 = Fp2[v]/(v^3 - xi), Fp12 = Fp6[w]/(w^2 - v). M and S below are
// products and squarings in Fp2.
#pragma once

#include "field.h"

namespace snarkline {
inline namespace SNL_ISA {

template <class F>
struct Fp2 {
  using Base = F;
  F c0, c1;  // c0 + c1 u

  SNL_HD static constexpr Fp2 zero() { return Fp2{}; }
  SNL_HD static constexpr Fp2 one() { return Fp2{F::one(), F::zero()}; }
  SNL_HD static constexpr Fp2 from_u64(u64 a, u64 b = 0) { return Fp2{F::from_u64(a), F::from_u64(b)}; }

  SNL_HD constexpr bool operator==(const Fp2& o) const { return c0 == o.c0 && c1 == o.c1; }
  SNL_HD constexpr bool is_zero() const { return c0.is_zero() && c1.is_zero(); }

  SNL_HD friend constexpr Fp2 operator+(const Fp2& a, const Fp2& b) { return Fp2{a.c0 + b.c0, a.c1 + b.c1}; }
  SNL_HD friend constexpr Fp2 operator-(const Fp2& a, const Fp2& b) { return Fp2{a.c0 - b.c0, a.c1 - b.c1}; }
  SNL_HD constexpr Fp2 operator-() const { return Fp2{-c0, -c1}; }
  SNL_HD constexpr Fp2 dbl() const { return Fp2{c0.dbl(), c1.dbl()}; }
  SNL_HD constexpr Fp2 conjugate() const { return Fp2{c0, -c1}; }

  // Karatsuba, 3M in Fp; where Fp fuses two products and their reduction, schoolbook costs less.
  SNL_FN friend constexpr Fp2 operator*(const Fp2& a, const Fp2& b) {
    if constexpr (F::fused) return Fp2{F::dot(a.c0, b.c0, a.c1, -b.c1), F::dot(a.c0, b.c1, a.c1, b.c0)};
    const F t0 = a.c0 * b.c0;
    const F t1 = a.c1 * b.c1;
    const F t2 = (a.c0 + a.c1) * (b.c0 + b.c1);
    return Fp2{t0 - t1, t2 - t0 - t1};
  }
  // 2M in Fp.
  SNL_HD friend constexpr Fp2 operator*(const Fp2& a, const F& b) { return Fp2{a.c0 * b, a.c1 * b}; }
  // Complex squaring, (c0 + c1)(c0 - c1) + 2 c0 c1 u: 2M in Fp.
  SNL_FN constexpr Fp2 sqr() const {
    const F t = c0 * c1;
    return Fp2{(c0 + c1) * (c0 - c1), t.dbl()};
  }

  SNL_HD constexpr Fp2& operator+=(const Fp2& o) { return *this = *this + o; }
  SNL_HD constexpr Fp2& operator-=(const Fp2& o) { return *this = *this - o; }
  SNL_HD constexpr Fp2& operator*=(const Fp2& o) { return *this = *this * o; }

  // 1 / this, and 0 for 0: conjugate / norm.
  constexpr Fp2 inverse() const {
    const F t = (c0.sqr() + c1.sqr()).inverse();
    return Fp2{c0 * t, -(c1 * t)};
  }

  template <int M>
  constexpr Fp2 pow(const Int<M>& e) const {
    Fp2 acc = one();
    for (int i = e.bit_length(); i-- > 0;) {
      acc = acc.sqr();
      if (e.bit(i)) acc = acc * *this;
    }
    return acc;
  }
};

// k * a for a small constant k, by doubling.
template <u64 k, class F>
SNL_HD constexpr F times(const F& a) {
  static_assert(k > 0);
  if constexpr (k == 1) {
    return a;
  } else if constexpr (k % 2 == 0) {
    return times<k / 2>(a).dbl();
  } else {
    return times<k / 2>(a).dbl() + a;
  }
}

// xi * a, for a curve's non-residue xi = xi[0] + u.
template <class C>
SNL_HD constexpr Fp2<typename C::Fp> times_xi(const Fp2<typename C::Fp>& a) {
  static_assert(C::xi[1] == 1);
  return {times<C::xi[0]>(a.c0) - a.c1, times<C::xi[0]>(a.c1) + a.c0};
}

template <class C>
struct Fp6 {
  using F = Fp2<typename C::Fp>;
  F c[3];  // c[0] + c[1] v + c[2] v^2

  SNL_HD static constexpr Fp6 zero() { return Fp6{}; }
  SNL_HD static constexpr Fp6 one() { return Fp6{{F::one(), F::zero(), F::zero()}}; }
  SNL_HD constexpr bool operator==(const Fp6& o) const { return c[0] == o.c[0] && c[1] == o.c[1] && c[2] == o.c[2]; }

  SNL_HD friend constexpr Fp6 operator+(const Fp6& a, const Fp6& b) {
    return {{a.c[0] + b.c[0], a.c[1] + b.c[1], a.c[2] + b.c[2]}};
  }
  SNL_HD friend constexpr Fp6 operator-(const Fp6& a, const Fp6& b) {
    return {{a.c[0] - b.c[0], a.c[1] - b.c[1], a.c[2] - b.c[2]}};
  }
  SNL_HD constexpr Fp6 operator-() const { return {{-c[0], -c[1], -c[2]}}; }
  SNL_HD constexpr Fp6 dbl() const { return {{c[0].dbl(), c[1].dbl(), c[2].dbl()}}; }

  // Karatsuba, 6M. Devegili, O hEigeartaigh, Scott, Dahab, "Multiplication and squaring on pairing-friendly fields"
  // (eprint 2006/471), section 4.
  SNL_FN friend constexpr Fp6 operator*(const Fp6& a, const Fp6& b) {
    const F v0 = a.c[0] * b.c[0], v1 = a.c[1] * b.c[1], v2 = a.c[2] * b.c[2];
    return {{v0 + times_xi<C>((a.c[1] + a.c[2]) * (b.c[1] + b.c[2]) - v1 - v2),
             (a.c[0] + a.c[1]) * (b.c[0] + b.c[1]) - v0 - v1 + times_xi<C>(v2),
             (a.c[0] + a.c[2]) * (b.c[0] + b.c[2]) - v0 - v2 + v1}};
  }
  // this * (b0 + b1 v): 5M.
  SNL_FN constexpr Fp6 mul_01(const F& b0, const F& b1) const {
    const F v0 = c[0] * b0, v1 = c[1] * b1;
    return {
        {v0 + times_xi<C>((c[1] + c[2]) * b1 - v1), (c[0] + c[1]) * (b0 + b1) - v0 - v1, (c[0] + c[2]) * b0 - v0 + v1}};
  }
  // this * b1 v: 3M.
  SNL_FN constexpr Fp6 mul_1(const F& b1) const { return {{times_xi<C>(c[2] * b1), c[0] * b1, c[1] * b1}}; }
  // this * b0: 3M.
  SNL_FN constexpr Fp6 mul_0(const F& b0) const { return {{c[0] * b0, c[1] * b0, c[2] * b0}}; }
  SNL_HD constexpr Fp6 times_v() const { return {{times_xi<C>(c[2]), c[0], c[1]}}; }

  // Beuchat et al., "High-speed software implementation of the optimal ate pairing over Barreto-Naehrig curves"
  // (eprint 2010/354), algorithm 17: 9M + 3S and one inversion.
  constexpr Fp6 inverse() const {
    const F t0 = c[0].sqr() - times_xi<C>(c[1] * c[2]);
    const F t1 = times_xi<C>(c[2].sqr()) - c[0] * c[1];
    const F t2 = c[1].sqr() - c[0] * c[2];
    const F norm = c[0] * t0 + times_xi<C>(c[2] * t1 + c[1] * t2);
    return Fp6{{t0, t1, t2}}.mul_0(norm.inverse());
  }
};

template <class C>
struct Fp12 {
  using F = Fp2<typename C::Fp>;
  Fp6<C> c0, c1;  // c0 + c1 w

  SNL_HD static constexpr Fp12 one() { return Fp12{Fp6<C>::one(), Fp6<C>::zero()}; }
  SNL_HD constexpr bool operator==(const Fp12& o) const { return c0 == o.c0 && c1 == o.c1; }

  // The coefficient of w^i over Fp2, 0 <= i < 6.
  SNL_HD constexpr F& at(int i) { return (i & 1 ? c1 : c0).c[i >> 1]; }
  SNL_HD constexpr const F& at(int i) const { return (i & 1 ? c1 : c0).c[i >> 1]; }

  // Karatsuba: 18M.
  SNL_FN friend constexpr Fp12 operator*(const Fp12& a, const Fp12& b) {
    const Fp6<C> t0 = a.c0 * b.c0, t1 = a.c1 * b.c1;
    return {t0 + t1.times_v(), (a.c0 + a.c1) * (b.c0 + b.c1) - t0 - t1};
  }
  // Complex squaring: 12M.
  SNL_FN constexpr Fp12 sqr() const {
    const Fp6<C> t = c0 * c1;
    return {(c0 + c1) * (c0 + c1.times_v()) - t - t.times_v(), t.dbl()};
  }
  // this * (a + b w + c w^3), the line of a D-type twist: 13M.
  SNL_FN constexpr Fp12 mul_013(const F& a, const F& b, const F& c) const {
    const Fp6<C> t0 = c0.mul_0(a), t1 = c1.mul_01(b, c);
    return {t0 + t1.times_v(), (c0 + c1).mul_01(a + b, c) - t0 - t1};
  }
  // this * (a + b w^2 + c w^3), the line of an M-type twist: 13M.
  SNL_FN constexpr Fp12 mul_023(const F& a, const F& b, const F& c) const {
    const Fp6<C> t0 = c0.mul_01(a, b), t1 = c1.mul_1(c);
    return {t0 + t1.times_v(), (c0 + c1).mul_01(a, b + c) - t0 - t1};
  }

  // this^(p^6); the inverse for elements of norm 1 over Fp6.
  SNL_HD constexpr Fp12 conjugate() const { return {c0, -c1}; }
  constexpr Fp12 inverse() const {
    const Fp6<C> norm = (c0 * c0 - (c1 * c1).times_v()).inverse();
    return {c0 * norm, -(c1 * norm)};
  }
  // this^p, with gamma = xi^((p - 1) / 6): w^p = gamma w.
  SNL_FN constexpr Fp12 frobenius(const F& gamma) const {
    Fp12 out{};
    F power = F::one();
    for (int i = 0; i < 6; i++, power *= gamma) out.at(i) = at(i).conjugate() * power;
    return out;
  }

  // this^2 in the cyclotomic subgroup (order p^4 - p^2 + 1): 9S. Over Fp4 = Fp2[s], s = w^3, s^2 = xi, and with
  // this = g0 + g1 w + g2 w^2 and bar: s -> -s, it is (3 g0^2 - 2 bar g0) + (3 s g2^2 + 2 bar g1) w + (3 g1^2 -
  // 2 bar g2) w^2. Granger, Scott, "Faster squaring in the cyclotomic subgroup of sixth degree extensions" (eprint
  // 2009/565), section 3.2.
  SNL_FN constexpr Fp12 cyclotomic_sqr() const {
    Fp12 out{};
    for (int i = 0; i < 3; i++) {
      const F &a = at(i), &b = at(i + 3);
      const F aa = a.sqr(), bb = b.sqr();
      F t0 = aa + times_xi<C>(bb), t1 = (a + b).sqr() - aa - bb;  // (a + b s)^2
      const int j = 2 * i % 3;
      if (i == 2) {  // s (t0 + t1 s)
        const F t = times_xi<C>(t1);
        t1 = t0;
        t0 = t;
      }
      const F d0 = j == 1 ? t0 + at(j) : t0 - at(j);
      const F d1 = j == 1 ? t1 - at(j + 3) : t1 + at(j + 3);
      out.at(j) = d0.dbl() + t0;
      out.at(j + 3) = d1.dbl() + t1;
    }
    return out;
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline
