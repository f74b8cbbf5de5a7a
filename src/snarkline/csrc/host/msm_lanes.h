// What the batched additions of an MSM are written over: coordinates of several points at once ("lanes").
//
// A field type V has the interface of Field8 (ifma.h): Field8 itself, eight lanes, or Field1 below, one lane of
// ordinary field arithmetic. A coordinate type C is V for G1 and Pair<V> for G2. `Rows<C>` moves points between lanes
// and tables.
#pragma once

#include "../common/point.h"
#include "ifma.h"

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// One element with the interface of Field8. Values are canonical, so the multiples of p that a difference of lazily
// reduced elements needs do not matter.
template <class F>
struct Field1 {
  using Scalar = F;
  using Limb = u64;
  static constexpr int N = F::N;
  static constexpr int lanes = 1;
  static constexpr int slack = 0;

  F f;

  SNL_HD static Field1 constant(const F& f) { return {f}; }
  SNL_HD static Field1 wide(const F& f) { return {f}; }
  SNL_HD static Field1 mul(const Field1& a, const Field1& b) { return {a.f * b.f}; }
  SNL_HD static Field1 sqr(const Field1& a) { return {a.f.sqr()}; }
  SNL_HD static Field1 dot(const Field1& a, const Field1& b, const Field1& c, const Field1& d) {
    return {a.f * b.f + c.f * d.f};
  }
  SNL_HD static Field1 add(const Field1& a, const Field1& b) { return {a.f + b.f}; }
  template <u64 K>
  SNL_HD static Field1 sub(const Field1& a, const Field1& b) {
    return {a.f - b.f};
  }
  template <u64 K>
  SNL_HD static Field1 neg(const Field1& a) {
    return {-a.f};
  }
  SNL_HD static Field1 reduce(const Field1& a) { return a; }
  template <u64 K>
  SNL_HD static Field1 sub_reduce(const Field1& a, const Field1& b) {
    return {a.f - b.f};
  }
  template <u64 K>
  SNL_HD static Field1 sub_twice_reduce(const Field1& a, const Field1& b, const Field1& c) {
    return {a.f - b.f - c.f.dbl()};
  }
  SNL_HD static Field1 mul_words(const Field1& a, const Field1& b) { return mul(a, b); }
  SNL_HD static Field1 sqr_words(const Field1& a) { return sqr(a); }
  SNL_HD static Field1 dot_words(const Field1& a, const Field1& b, const Field1& c, const Field1& d) {
    return dot(a, b, c, d);
  }
  SNL_HD static Field1 sub_words(const Field1& a, const Field1& b) { return {a.f - b.f}; }
  SNL_HD static Field1 negate_words(u8 mask, const Field1& a) { return mask ? Field1{-a.f} : a; }
  SNL_HD static Field1 select(u8 mask, const Field1& a, const Field1& b) { return mask ? a : b; }
  SNL_HD static u8 zero_mask(const Field1& a) { return a.f.is_zero(); }
  template <int Shift>
  SNL_HD static Field1 from_limbs(const u64* limb) {
    static_assert(Shift == 0);
    Field1 a;
    for (int i = 0; i < N; i++) a.f.v.limb[i] = limb[i];
    return a;
  }
  SNL_HD void to_limbs(u64* limb) const {
    for (int i = 0; i < N; i++) limb[i] = f.v.limb[i];
  }
  SNL_HD static Field1 load(const u64* limb) { return from_limbs<0>(limb); }
  SNL_HD void store(u64* limb) const { to_limbs(limb); }
  SNL_HD F get(int) const { return f; }
  SNL_HD void set(int, const F& x) { f = x; }
};

// Elements c0 + c1 u of Fp2 over V.
template <class V>
struct Pair {
  V c0, c1;
};

// Operations on coordinates: those of V, and their versions for Fp2.
template <class V>
struct Coordinate {
  using Base = V;
  using Scalar = typename V::Scalar;
  using C = V;
  static constexpr int degree = 1;

  SNL_HD static C one() { return V::wide(Scalar::one()); }
  SNL_HD static C mul(const C& a, const C& b) { return V::mul(a, b); }
  SNL_HD static C mul_base(const C& a, const V& b) { return V::mul(a, b); }
  SNL_HD static C mul_words(const C& a, const C& b) { return V::mul_words(a, b); }
  SNL_HD static C sqr_words(const C& a) { return V::sqr_words(a); }
  // The inversion of a denominator d goes through an element of the base field: d itself here.
  SNL_HD static V norm(const C& d) { return d; }
  SNL_HD static C invert(const C&, const V& inverse_norm) { return inverse_norm; }
  // f(components of the arguments), component by component.
  template <class Function, class... Args>
  SNL_HD static C map(const Function& f, const Args&... args) {
    return f(args...);
  }
  SNL_HD static Scalar get(const C& a, int lane) { return a.get(lane); }
  SNL_HD static void set(C& a, int lane, const Scalar& x) { a.set(lane, x); }
};

template <class V>
struct Coordinate<Pair<V>> {
  using Base = V;
  using Scalar = Fp2<typename V::Scalar>;
  using C = Pair<V>;
  static constexpr int degree = 2;

  SNL_HD static C one() { return {V::wide(V::Scalar::one()), V::constant(V::Scalar::zero())}; }
  // Schoolbook with one reduction for each component: with IFMA as cheap as Karatsuba's. b at most 4p.
  SNL_HD static C mul(const C& a, const C& b) {
    return {V::dot(a.c0, b.c0, a.c1, V::template neg<4>(b.c1)), V::dot(a.c0, b.c1, a.c1, b.c0)};
  }
  SNL_HD static C mul_words(const C& a, const C& b) {
    return {V::dot_words(a.c0, b.c0, a.c1, V::template neg<4>(b.c1)), V::dot_words(a.c0, b.c1, a.c1, b.c0)};
  }
  SNL_HD static C mul_base(const C& a, const V& b) { return {V::mul(a.c0, b), V::mul(a.c1, b)}; }
  // (c0 + c1) (c0 - c1) + 2 c0 c1 u. a at most 4p.
  SNL_HD static C sqr_words(const C& a) {
    return {V::mul_words(V::add(a.c0, a.c1), V::template sub<4>(a.c0, a.c1)), V::mul_words(V::add(a.c0, a.c0), a.c1)};
  }
  SNL_HD static V norm(const C& d) { return V::dot(d.c0, d.c0, d.c1, d.c1); }
  // 1 / d = conjugate / norm; out at most 2p.
  SNL_HD static C invert(const C& d, const V& inverse_norm) {
    return {V::mul(d.c0, inverse_norm), V::template neg<2>(V::mul(d.c1, inverse_norm))};
  }
  template <class Function, class... Args>
  SNL_HD static C map(const Function& f, const Args&... args) {
    return {f(args.c0...), f(args.c1...)};
  }
  SNL_HD static Scalar get(const C& a, int lane) { return {a.c0.get(lane), a.c1.get(lane)}; }
  SNL_HD static void set(C& a, int lane, const Scalar& x) {
    a.c0.set(lane, x.c0);
    a.c1.set(lane, x.c1);
  }
};

// Multiplies a curve element by a power of two: from a table's form to the lanes' and back.
//
// Lanes hold values in Montgomery form for the radix R' = 2^(64 N + slack), tables for R = 2^(64 N). Instead of
// multiplying by 2^slack, which would leave large values, points are taken to the isomorphic curve with coordinates
// (x / 4^t, y / 8^t), t = slack / 3: the addition formulas for a = 0 know no coefficient, and x R 2^(slack - 2t),
// y R 2^(slack - 3t) are shifts by few bits: 2 and 1 for N = 4, 12 and 2 for N = 6.
template <class V>
struct Scaling {
  using F = typename V::Scalar;
  static constexpr int x_shift = V::slack - 2 * (V::slack / 3);
  static constexpr int y_shift = V::slack - 3 * (V::slack / 3);
  static constexpr u64 x_bound = u64{1} << x_shift;  // lanes just loaded: x < x_bound p, |y| < y_bound p
  static constexpr u64 y_bound = u64{1} << y_shift;

  static constexpr F power(int k) { return F{F::derive_pow2(64 * F::N + k)}; }
  static constexpr F x_up = power(x_shift), x_down = power(-x_shift);
  static constexpr F y_up = power(y_shift), y_down = power(-y_shift);
  // 1 / x in the lanes' form from that of x taken as an ordinary element: R'^2 / R^2.
  static constexpr F inverse_form = power(2 * V::slack);
};

}  // namespace SNL_ISA
}  // namespace snarkline

#include "ifma_end.h"
