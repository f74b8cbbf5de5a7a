// Points of y^2 = x^3 + b over F (Fp or Fp2). Formulas: Explicit-Formulas Database, short Weierstrass curves with a =
// 0, https://www.hyperelliptic.org/EFD/g1p/auto-shortw-xyzz.html. Variable time: for public data, and for secret
// scalars only where timing is not observable.
#pragma once

#include "tower.h"

namespace snarkline {
inline namespace SNL_ISA {

// An affine point; infinity is (0, 0), which is on neither curve.
template <class F>
struct Affine {
  F x, y;

  SNL_HD static constexpr Affine infinity() { return Affine{}; }
  SNL_HD constexpr bool is_infinity() const { return x.is_zero() && y.is_zero(); }
  SNL_HD constexpr bool operator==(const Affine& o) const { return x == o.x && y == o.y; }
  SNL_HD constexpr Affine operator-() const { return Affine{x, -y}; }
};

#ifndef __CUDACC__
// Point `i` of an array at any address: a key that is mapped from its file is not aligned to 8 bytes.
template <class F>
SNL_HD Affine<F> load_affine(const u64* points, usize i) {
  Affine<F> p;
  __builtin_memcpy(&p, reinterpret_cast<const u8*>(points) + i * sizeof p, sizeof p);
  return p;
}
#endif

// An accumulator (X, Y, ZZ, ZZZ): x = X / ZZ, y = Y / ZZZ, ZZ^3 = ZZZ^2. Infinity has ZZ = 0. All operations are
// complete: equal, opposite and infinite operands give the right sum.
template <class F>
struct Xyzz {
  F x, y, zz, zzz;

  SNL_HD static constexpr Xyzz infinity() { return Xyzz{}; }
  SNL_HD static constexpr Xyzz from_affine(const Affine<F>& p) {
    if (p.is_infinity()) return infinity();
    return Xyzz{p.x, p.y, F::one(), F::one()};
  }
  SNL_HD constexpr bool is_infinity() const { return zz.is_zero(); }
  SNL_HD constexpr Xyzz operator-() const { return Xyzz{x, -y, zz, zzz}; }

  // mdbl-2008-s-1: 4M + 3S. p must not be infinity; neither curve has points of order 2 in the groups of order r, and
  // y = 0 gives ZZ = 0, which is right.
  SNL_FN static constexpr Xyzz dbl_affine(const Affine<F>& p) {
    const F u = p.y.dbl();
    const F v = u.sqr();
    const F w = u * v;
    const F s = p.x * v;
    const F xx = p.x.sqr();
    const F m = xx.dbl() + xx;
    const F x3 = m.sqr() - s.dbl();
    return Xyzz{x3, m * (s - x3) - w * p.y, v, w};
  }

  // dbl-2008-s-1: 6M + 4S. Infinity stays infinity (ZZ3 = V * 0).
  SNL_FN constexpr Xyzz dbl() const {
    const F u = y.dbl();
    const F v = u.sqr();
    const F w = u * v;
    const F s = x * v;
    const F xx = x.sqr();
    const F m = xx.dbl() + xx;
    const F x3 = m.sqr() - s.dbl();
    return Xyzz{x3, m * (s - x3) - w * y, v * zz, w * zzz};
  }

  // this += p. madd-2008-s: 8M + 2S.
  SNL_FN constexpr void add(const Affine<F>& p) {
    if (p.is_infinity()) return;
    if (is_infinity()) {
      *this = Xyzz{p.x, p.y, F::one(), F::one()};
      return;
    }
    const F dx = p.x * zz - x;
    const F dy = p.y * zzz - y;
    if (dx.is_zero()) {
      *this = dy.is_zero() ? dbl_affine(p) : infinity();
      return;
    }
    const F pp = dx.sqr();
    const F ppp = dx * pp;
    const F q = x * pp;
    const F x3 = dy.sqr() - ppp - q.dbl();
    y = dy * (q - x3) - y * ppp;
    x = x3;
    zz *= pp;
    zzz *= ppp;
  }

  // this += o. add-2008-s: 12M + 2S.
  SNL_FN constexpr void add(const Xyzz& o) {
    if (o.is_infinity()) return;
    if (is_infinity()) {
      *this = o;
      return;
    }
    const F u1 = x * o.zz;
    const F s1 = y * o.zzz;
    const F dx = o.x * zz - u1;
    const F dy = o.y * zzz - s1;
    if (dx.is_zero()) {
      *this = dy.is_zero() ? dbl() : infinity();
      return;
    }
    const F pp = dx.sqr();
    const F ppp = dx * pp;
    const F q = u1 * pp;
    x = dy.sqr() - ppp - q.dbl();
    y = dy * (q - x) - s1 * ppp;
    zz = zz * o.zz * pp;
    zzz = zzz * o.zzz * ppp;
  }

  // 1I + 4M + 1S. With z = ZZZ / ZZ: ZZ / ZZZ = 1 / z.
  constexpr Affine<F> to_affine() const {
    if (is_infinity()) return Affine<F>::infinity();
    const F inverse_zzz = zzz.inverse();
    return to_affine(inverse_zzz);
  }
  // The same with 1 / ZZZ known (from a batch inversion; 0 for infinity): 3M + 1S.
  SNL_FN constexpr Affine<F> to_affine(const F& inverse_zzz) const {
    return Affine<F>{x * (inverse_zzz * zz).sqr(), y * inverse_zzz};
  }

  constexpr bool operator==(const Xyzz& o) const {
    if (is_infinity() || o.is_infinity()) return is_infinity() == o.is_infinity();
    return x * o.zz == o.x * zz && y * o.zzz == o.y * zzz;
  }
};

// scalar * p by double and add, most significant bit first. Variable time.
template <class F, int M>
constexpr Xyzz<F> multiply(const Affine<F>& p, const Int<M>& scalar) {
  Xyzz<F> acc = Xyzz<F>::infinity();
  for (int i = scalar.bit_length(); i-- > 0;) {
    acc = acc.dbl();
    if (scalar.bit(i)) acc.add(p);
  }
  return acc;
}

}  // namespace SNL_ISA
}  // namespace snarkline
