// Inversion in a prime field by division steps: Bernstein, Yang, "Fast constant-time gcd computation and modular
// inversion" (CHES 2019), section 8, here in variable time and with 62 steps on the lowest words between two passes
// over all of them. Some 4,000 cycles for 254 bits, where Fermat's theorem takes 300 products.
#pragma once

#include "../common/field.h"

namespace snarkline {
inline namespace SNL_ISA {

template <class F>
class DivisionSteps {
 public:
  // 1 / x, and 0 for 0, in Montgomery form. Variable time.
  static F invert(const F& x) {
    // f = d x and g = e x mod p throughout.
    Wide f = modulus, g = split(x.v), d{}, e{};
    e.limb[0] = 1;
    i64 delta = 1;
    while (!g.is_zero()) {
      const Matrix t = steps(delta, (u64)f.limb[0], (u64)g.limb[0]);
      apply(t, f, g);
      apply_modular(t, d, e);
    }
    // f = +-1, so d = +-1 / x; or x = 0 and d = 0.
    if (f.is_negative()) d.negate();
    while (d.is_negative()) d.add(modulus, 1);
    F inverse{join(d)};
    return inverse * cube;  // x R -> 1 / (x R) -> 1 / (x R) * R^3 / R
  }

 private:
  using i128 = __int128;
  static constexpr int N = F::N;
  static constexpr int limb_bits = 62;
  // d and e grow by p / 2 each time that 62 steps are applied, at most 18 times for 381 bits: below 2^4 p in size.
  static constexpr int L = (F::bits + 6 + limb_bits - 1) / limb_bits;
  static constexpr i64 limb_mask = (i64{1} << limb_bits) - 1;
  static constexpr F cube{F::r3};

  // A signed integer in limbs of 62 bits; the last limb has the sign.
  struct Wide {
    i64 limb[L];

    bool is_zero() const {
      i64 any = 0;
      for (int i = 0; i < L; i++) any |= limb[i];
      return any == 0;
    }
    bool is_negative() const { return limb[L - 1] < 0; }
    void carry() {
      for (int i = 0; i + 1 < L; i++) {
        limb[i + 1] += limb[i] >> limb_bits;
        limb[i] &= limb_mask;
      }
    }
    void add(const Wide& b, i64 sign) {
      for (int i = 0; i < L; i++) limb[i] += sign * b.limb[i];
      carry();
    }
    void negate() {
      for (i64& l : limb) l = -l;
      carry();
    }
  };

  static constexpr Wide split(const Int<N>& a) {
    Wide w{};
    for (int i = 0; i < L; i++) {
      const int word = limb_bits * i / 64, shift = limb_bits * i % 64;
      if (word >= N) break;
      u64 bits = a.limb[word] >> shift;
      if (shift > 64 - limb_bits && word + 1 < N) bits |= a.limb[word + 1] << (64 - shift);
      w.limb[i] = (i64)(bits & limb_mask);
    }
    return w;
  }
  // A value in [0, 2^4 p), reduced below p.
  static Int<N> join(Wide w) {
    Wide next = w;
    for (next.add(modulus, -1); !next.is_negative(); next.add(modulus, -1)) w = next;
    Int<N> a{};
    for (int i = 0; i < L; i++) {
      const int word = limb_bits * i / 64, shift = limb_bits * i % 64;
      if (word < N) a.limb[word] |= (u64)w.limb[i] << shift;
      if (shift > 64 - limb_bits && word + 1 < N) a.limb[word + 1] |= (u64)w.limb[i] >> (64 - shift);
    }
    return a;
  }
  static constexpr Wide modulus = split(F::modulus);
  static constexpr u64 modulus_inverse = 0 - F::inv;  // p^-1 mod 2^64

  // 2^62 times what 62 division steps do: f to (u f + v g), g to (q f + r g). |u| + |v| and |q| + |r| are at most 2^62.
  struct Matrix {
    i64 u, v, q, r;
  };
  static Matrix steps(i64& delta, u64 f, u64 g) {
    u64 u = 1, v = 0, q = 0, r = 1;  // modulo 2^64, read as signed in the end
    for (int left = limb_bits;;) {
      const int zeros = __builtin_ctzll(g | ~u64{0} << left);
      g >>= zeros;
      u <<= zeros;
      v <<= zeros;
      delta += zeros;
      left -= zeros;
      if (left == 0) break;
      if (delta > 0) {
        delta = -delta;
        swap_negate(f, g);
        swap_negate(u, q);
        swap_negate(v, r);
      }
      // The next 1 - delta steps do not swap: they add a multiple w f to g that clears as many of its low bits. A
      // product gives six bits of w: f (f^2 - 2) = -1 / f mod 2^6.
      const i64 most = delta < -5 ? 6 : 1 - delta;
      const int cleared = (int)(most < left ? most : left);
      const u64 w = (g * f * (f * f - 2)) & ((u64{1} << cleared) - 1);
      g += w * f;
      q += w * u;
      r += w * v;
    }
    return {(i64)u, (i64)v, (i64)q, (i64)r};
  }
  static void swap_negate(u64& a, u64& b) {
    const u64 t = a;
    a = b;
    b = 0 - t;
  }

  // (f, g) = t (f, g) / 2^62, exact.
  static void apply(const Matrix& t, Wide& f, Wide& g) {
    i128 x = (i128)t.u * f.limb[0] + (i128)t.v * g.limb[0];
    i128 y = (i128)t.q * f.limb[0] + (i128)t.r * g.limb[0];
    for (int i = 1; i < L; i++) {
      x = (x >> limb_bits) + (i128)t.u * f.limb[i] + (i128)t.v * g.limb[i];
      y = (y >> limb_bits) + (i128)t.q * f.limb[i] + (i128)t.r * g.limb[i];
      f.limb[i - 1] = (i64)x & limb_mask;
      g.limb[i - 1] = (i64)y & limb_mask;
    }
    f.limb[L - 1] = (i64)(x >> limb_bits);
    g.limb[L - 1] = (i64)(y >> limb_bits);
  }

  // (d, e) = t (d, e) / 2^62 mod p: with the multiples of p, at most p / 2 * 2^62 in size, that make it exact.
  static void apply_modular(const Matrix& t, Wide& d, Wide& e) {
    i128 x = (i128)t.u * d.limb[0] + (i128)t.v * e.limb[0];
    i128 y = (i128)t.q * d.limb[0] + (i128)t.r * e.limb[0];
    const i64 m = exact_multiple((u64)x), n = exact_multiple((u64)y);
    x += (i128)m * modulus.limb[0];
    y += (i128)n * modulus.limb[0];
    for (int i = 1; i < L; i++) {
      x = (x >> limb_bits) + (i128)t.u * d.limb[i] + (i128)t.v * e.limb[i] + (i128)m * modulus.limb[i];
      y = (y >> limb_bits) + (i128)t.q * d.limb[i] + (i128)t.r * e.limb[i] + (i128)n * modulus.limb[i];
      d.limb[i - 1] = (i64)x & limb_mask;
      e.limb[i - 1] = (i64)y & limb_mask;
    }
    d.limb[L - 1] = (i64)(x >> limb_bits);
    e.limb[L - 1] = (i64)(y >> limb_bits);
  }
  // m in [-2^61, 2^61) with x + m p = 0 mod 2^62.
  static i64 exact_multiple(u64 x) {
    constexpr int unused = 64 - limb_bits;
    return (i64)((0 - x * modulus_inverse) << unused) >> unused;
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline
