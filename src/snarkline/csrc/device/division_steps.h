// One inversion in Fp, for the top of a product tree, where nothing else runs and latency is all: division steps
// (Bernstein and Yang, "Fast constant-time gcd computation and modular inversion", 2019), 30 at a time on the low
// words, then applied to the long numbers; the variant with half steps (delta from 1/2) of libsecp256k1's
// documentation, doc/safegcd_implementation.md. Variable time: it stops when g is 0.
#pragma once

#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {

using i32 = int;

template <class F>
struct DivisionSteps {
  static constexpr int limbs = F::bits / 30 + 1;  // signed limbs of 30 bits, room for (-2 p, 2 p)
  static constexpr i32 mask = (1 << 30) - 1;
  static constexpr int max_batches = (49 * F::bits + 57) / 17 / 30 + 2;  // their bound for delta from 1 covers this one

  struct Number {
    i32 limb[limbs];
  };
  struct Matrix {
    i32 u, v, q, r;
  };

  SNL_DEVICE static Number from_int(const Int<F::N>& a) {
    Number n;
    SNL_UNROLL for (int i = 0; i < limbs; i++) {
      const int at = 30 * i / 64, shift = 30 * i % 64;
      u64 x = a.limb[at] >> shift;
      if (shift > 34 && at + 1 < F::N) x |= a.limb[at + 1] << (64 - shift);
      n.limb[i] = static_cast<i32>(x & mask);
    }
    return n;
  }
  // a in [0, p), limbs in [0, 2^30)
  SNL_DEVICE static Int<F::N> to_int(const Number& a) {
    Int<F::N> n{};
    SNL_UNROLL for (int i = 0; i < limbs; i++) {
      const int at = 30 * i / 64, shift = 30 * i % 64;
      n.limb[at] |= static_cast<u64>(a.limb[i]) << shift;
      if (shift > 34 && at + 1 < F::N) n.limb[at + 1] |= static_cast<u64>(a.limb[i]) >> (64 - shift);
    }
    return n;
  }

  // 30 steps on the low words of f and g; `zeta` is -(delta + 1/2). The matrix is scaled by 2^30.
  SNL_DEVICE static Matrix batch(i32& zeta, u32 f, u32 g) {
    u32 u = 1, v = 0, q = 0, r = 1;
    SNL_UNROLL for (int i = 0; i < 30; i++) {
      const u32 odd = 0 - (g & 1);
      u32 swap = static_cast<u32>(zeta >> 31);
      g += ((f ^ swap) - swap) & odd;
      q += ((u ^ swap) - swap) & odd;
      r += ((v ^ swap) - swap) & odd;
      swap &= odd;
      zeta = static_cast<i32>((static_cast<u32>(zeta) ^ swap) - 1);
      f += g & swap;
      u += q & swap;
      v += r & swap;
      g >>= 1;
      u <<= 1;
      v <<= 1;
    }
    return Matrix{static_cast<i32>(u), static_cast<i32>(v), static_cast<i32>(q), static_cast<i32>(r)};
  }

  // (f, g) = matrix * (f, g) / 2^30, exactly
  SNL_DEVICE static void apply(const Matrix& m, Number& f, Number& g) {
    i64 cf = static_cast<i64>(m.u) * f.limb[0] + static_cast<i64>(m.v) * g.limb[0];
    i64 cg = static_cast<i64>(m.q) * f.limb[0] + static_cast<i64>(m.r) * g.limb[0];
    cf >>= 30;
    cg >>= 30;
    SNL_UNROLL for (int i = 1; i < limbs; i++) {
      cf += static_cast<i64>(m.u) * f.limb[i] + static_cast<i64>(m.v) * g.limb[i];
      cg += static_cast<i64>(m.q) * f.limb[i] + static_cast<i64>(m.r) * g.limb[i];
      f.limb[i - 1] = static_cast<i32>(cf) & mask;
      g.limb[i - 1] = static_cast<i32>(cg) & mask;
      cf >>= 30;
      cg >>= 30;
    }
    f.limb[limbs - 1] = static_cast<i32>(cf);
    g.limb[limbs - 1] = static_cast<i32>(cg);
  }

  // (d, e) = matrix * (d, e) / 2^30 mod p; both stay in (-2 p, p)
  SNL_DEVICE static void apply_mod(const Matrix& m, Number& d, Number& e, const Number& p, u32 p_inverse) {
    const i32 sign_d = d.limb[limbs - 1] >> 31, sign_e = e.limb[limbs - 1] >> 31;
    i32 md = (m.u & sign_d) + (m.v & sign_e), me = (m.q & sign_d) + (m.r & sign_e);
    i64 cd = static_cast<i64>(m.u) * d.limb[0] + static_cast<i64>(m.v) * e.limb[0];
    i64 ce = static_cast<i64>(m.q) * d.limb[0] + static_cast<i64>(m.r) * e.limb[0];
    md -= static_cast<i32>((p_inverse * static_cast<u32>(cd) + static_cast<u32>(md)) & mask);
    me -= static_cast<i32>((p_inverse * static_cast<u32>(ce) + static_cast<u32>(me)) & mask);
    cd = (cd + static_cast<i64>(p.limb[0]) * md) >> 30;
    ce = (ce + static_cast<i64>(p.limb[0]) * me) >> 30;
    SNL_UNROLL for (int i = 1; i < limbs; i++) {
      cd += static_cast<i64>(m.u) * d.limb[i] + static_cast<i64>(m.v) * e.limb[i] + static_cast<i64>(p.limb[i]) * md;
      ce += static_cast<i64>(m.q) * d.limb[i] + static_cast<i64>(m.r) * e.limb[i] + static_cast<i64>(p.limb[i]) * me;
      d.limb[i - 1] = static_cast<i32>(cd) & mask;
      e.limb[i - 1] = static_cast<i32>(ce) & mask;
      cd >>= 30;
      ce >>= 30;
    }
    d.limb[limbs - 1] = static_cast<i32>(cd);
    e.limb[limbs - 1] = static_cast<i32>(ce);
  }

  SNL_DEVICE static void carry(Number& a) {
    SNL_UNROLL for (int i = 0; i + 1 < limbs; i++) {
      a.limb[i + 1] += a.limb[i] >> 30;
      a.limb[i] &= mask;
    }
  }
  SNL_DEVICE static void add_if_negative(Number& a, const Number& p) {
    const i32 sign = a.limb[limbs - 1] >> 31;
    SNL_UNROLL for (int i = 0; i < limbs; i++) a.limb[i] += p.limb[i] & sign;
    carry(a);
  }

  // 1 / a mod p for a in [1, p), as integers
  SNL_DEVICE static Int<F::N> invert(const Int<F::N>& a) {
    const Number p = from_int(F::modulus);
    const u32 p_inverse = (0 - static_cast<u32>(F::inv)) & mask;  // 1/p mod 2^30
    Number f = p, g = from_int(a), d{}, e{};
    e.limb[0] = 1;
    i32 zeta = -1;
    SNL_ROLLED for (int n = 0; n < max_batches; n++) {
      const Matrix m = batch(zeta, static_cast<u32>(f.limb[0]), static_cast<u32>(g.limb[0]));
      apply_mod(m, d, e, p, p_inverse);
      apply(m, f, g);
      i32 any = 0;
      SNL_UNROLL for (int i = 0; i < limbs; i++) any |= g.limb[i];
      if (any == 0) break;
    }
    // f is 1 or -1, and d times f is the inverse.
    add_if_negative(d, p);
    const i32 sign = f.limb[limbs - 1] >> 31;
    SNL_UNROLL for (int i = 0; i < limbs; i++) d.limb[i] = (d.limb[i] ^ sign) - sign;
    carry(d);
    add_if_negative(d, p);
    return to_int(d);
  }
};

// 1 / a in Montgomery form, a not 0: (a R)^-1 * R^3 / R = a^-1 R.
template <class F>
SNL_CALL F invert(const F& a) {
  return F{DivisionSteps<F>::invert(a.v)} * F{F::r3};
}

}  // namespace SNL_ISA
}  // namespace snarkline
