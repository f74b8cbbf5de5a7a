// The quadratic extension Fp2 = Fp[u]/(u^2 + 1), for p = 3 mod 4 (both curves).
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

  // Karatsuba: 3M in Fp.
  SNL_FN friend constexpr Fp2 operator*(const Fp2& a, const Fp2& b) {
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

}  // namespace SNL_ISA
}  // namespace snarkline
