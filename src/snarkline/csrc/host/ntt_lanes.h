// The arithmetic of a transform on several columns at once, one column to a lane. A transform is written once, over the
// interface that both kinds of `Lanes` have:
//
//   Lanes::width                      how many columns
//   Lanes::Factor, factor(f)          one constant for all lanes, prepared for products with many vectors
//   Lanes::Constants, constants(f)    `width` constants, one for each lane; all_lanes(f): the same for each
//   Lanes::LaneFactor, prepare(c)     constants prepared likewise
//   load(p, stride), store(p, stride) lane l from and to the element at p + l * stride
//   store_loose(p, stride)            for a later load: perhaps not the smallest representative
//   trim(x), settle(x)                a sum of values to one that can go into a few sums again; into any number
//   butterflies(u0, v0, f0, u1, v1, f1)      (u, v) = (u + f v, u - f v), twice
//   butterfly(u, v, f), butterfly(u, v)      once; with f = 1
//   times(x, factor), times(c, c)     products of values and of constants
//   times_twice(x, y, f, g, h)        (x, y) = (f g x, f h y) for lane factors f, g, h
#pragma once

#include <array>

#include "../common/field.h"
#include "ifma.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace ntt {

#if !SNL_ISA_ifma

// Four columns: a row is two cache lines. Every value is in [0, p).
template <class F>
struct Lanes {
  using Element = F;
  static constexpr usize width = 4;
  using Factor = F;
  using Constants = Lanes;
  using LaneFactor = Lanes;

  F lane[width];

  static Factor factor(const F& f) { return f; }
  static Constants constants(const F* f) { return load(f->v.limb, F::N); }
  static Constants all_lanes(const F& f) {
    Constants c;
    for (F& e : c.lane) e = f;
    return c;
  }
  static const LaneFactor& prepare(const Constants& c) { return c; }
  static Lanes load(const u64* p, usize stride) {
    Lanes x;
    for (usize l = 0; l < width; l++) {
      for (int k = 0; k < F::N; k++) x.lane[l].v.limb[k] = p[l * stride + k];
    }
    return x;
  }
  void store(u64* p, usize stride) const {
    for (usize l = 0; l < width; l++) {
      for (int k = 0; k < F::N; k++) p[l * stride + k] = lane[l].v.limb[k];
    }
  }
  void store_loose(u64* p, usize stride) const { store(p, stride); }
  static const Lanes& trim(const Lanes& x) { return x; }
  static const Lanes& settle(const Lanes& x) { return x; }

  static void butterfly(Lanes& u, Lanes& v) {
    for (usize l = 0; l < width; l++) {
      const F t = v.lane[l];
      v.lane[l] = u.lane[l] - t;
      u.lane[l] += t;
    }
  }
  static void butterfly(Lanes& u, Lanes& v, const F& f) {
    v = times(v, f);
    butterfly(u, v);
  }
  static void butterflies(Lanes& u0, Lanes& v0, const F& f0, Lanes& u1, Lanes& v1, const F& f1) {
    butterfly(u0, v0, f0);
    butterfly(u1, v1, f1);
  }
  static Lanes times(Lanes x, const F& f) {
    for (F& e : x.lane) e *= f;
    return x;
  }
  static Lanes times(Lanes x, const Lanes& c) {
    for (usize l = 0; l < width; l++) x.lane[l] *= c.lane[l];
    return x;
  }
  static void times_twice(Lanes& x, Lanes& y, const Lanes& f, const Lanes& g, const Lanes& h) {
    x = times(times(x, f), g);
    y = times(times(y, f), h);
  }
};

#else

#include "ifma_begin.h"

// Eight columns, in words of 52 bits. Sums leave their carries in the words: a product adds up to 2^57.2 to a word, a
// sum with f = 1 doubles it, and the words must stay within 2^62 of zero. A value is known modulo 2^260 only. As an
// integer it is in [0, B p): the bounds B are stated at each function, and must stay below 2^260 / p, which is 84 for
// BN254 and 35 for BLS12-381.
template <class F>
struct Lanes {
  using Element = F;
  static constexpr usize width = 8;
  using V = Field8<F>;
  static constexpr int W = V::W;
  static constexpr u64 mask = V::word_mask;

  // f as an integer, and q = floor(2^260 f / p), so that the quotient of a product by p is itself a product. Shoup's
  // trick, in Harvey, "Faster arithmetic for number-theoretic transforms" (2014), section 2.
  struct Factor {
    u64 f[W], q[W];
  };
  struct LaneFactor {
    __m512i f[W], q[W];
  };
  // Montgomery form of radix 2^260, below 1.1 p.
  struct Constants {
    V v;
  };

  V v;

  static std::array<u64, W> words(const Int<4>& a) {
    const u64* l = a.limb;
    return {l[0] & mask, (l[0] >> 52 | l[1] << 12) & mask, (l[1] >> 40 | l[2] << 24) & mask,
            (l[2] >> 28 | l[3] << 36) & mask, l[3] >> 16};
  }
  // -1 / p mod 2^260: word k makes word k of p times it that of -1.
  static constexpr std::array<u64, W> derive_negative_inverse() {
    const auto p = V::split(F::modulus);
    std::array<u64, W> m{};
    u128 column = 1;
    for (int k = 0; k < W; k++) {
      for (int i = 0; i < k; i++) column += (u128)m[i] * p.w[k - i];
      m[k] = (u64)column * V::inv & mask;
      column = (column + (u128)m[k] * p.w[0]) >> 52;
    }
    return m;
  }
  // 2^260 f = q p + rest, so q is -rest / p mod 2^260; and the rest is f in the Montgomery form of radix 2^260.
  static Factor factor(const F& f) {
    static constexpr auto negative_inverse = derive_negative_inverse();
    const auto integer = words(f.to_canonical()), rest = words(V::widen(f).v);
    Factor out;
    u128 column = 0;
    for (int k = 0; k < W; k++) {
      for (int i = 0; i <= k; i++) column += (u128)rest[i] * negative_inverse[k - i];
      out.f[k] = integer[k];
      out.q[k] = (u64)column & mask;
      column >>= 52;
    }
    return out;
  }
  static Constants constants(const F* f) {
    F wide[width];
    for (usize l = 0; l < width; l++) wide[l] = V::widen(f[l]);
    return {load(wide[0].v.limb, F::N).v};
  }
  static Constants all_lanes(const F& f) { return {V::wide(f)}; }
  SNL_HD static LaneFactor prepare(const Constants& c) {
    static constexpr auto negative_inverse = derive_negative_inverse();
    V one = V::zero();
    one.w[0] = V::splat(1);
    const V integer = V::canonical(V::mul(c.v, one)), rest = V::canonical(c.v);
    LaneFactor out;
    V q = V::zero();
    SNL_UNROLL for (int i = 0; i < W; i++) {
      SNL_UNROLL for (int j = 0; i + j < W; j++) {
        q.w[i + j] = V::lo(q.w[i + j], rest.w[i], V::splat(negative_inverse[j]));
        if (i + j + 1 < W) q.w[i + j + 1] = V::hi(q.w[i + j + 1], rest.w[i], V::splat(negative_inverse[j]));
      }
    }
    q.normalise();
    SNL_UNROLL for (int k = 0; k < W; k++) {
      out.f[k] = integer.w[k];
      out.q[k] = q.w[k];
    }
    return out;
  }

  // In memory a value is below 2^256: bound 2.2.
  SNL_HD static Lanes load(const u64* p, usize stride) {
    __m512i limb[4];
    SNL_UNROLL for (usize i = 0; i < 4; i++) {
      limb[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)(p + i * stride))),
                                   _mm256_loadu_si256((const __m256i*)(p + (i + 4) * stride)), 1);
    }
    transpose4(limb);
    return {V::from_limbs(limb)};
  }
  SNL_HD static void scatter(const V& v, u64* p, usize stride) {
    __m512i limb[4];
    v.to_limbs(limb);
    transpose4(limb);
    SNL_UNROLL for (usize i = 0; i < 4; i++) {
      _mm256_storeu_si256((__m256i*)(p + i * stride), _mm512_castsi512_si256(limb[i]));
      _mm256_storeu_si256((__m256i*)(p + (i + 4) * stride), _mm512_extracti64x4_epi64(limb[i], 1));
    }
  }
  SNL_HD static V carried(V v) {
    v.normalise();
    v.w[W - 1] = _mm512_and_si512(v.w[W - 1], V::splat(mask));
    return v;
  }
  // Bound: 35.
  SNL_HD void store(u64* p, usize stride) const { scatter(V::canonical(carried(trim(*this).v)), p, stride); }
  SNL_HD void store_loose(u64* p, usize stride) const { scatter(carried(trim(*this).v), p, stride); }

  // Bounds: 35 to 1.1. The quotient by p is estimated from the top word, where the carry to come may move the sum by
  // one unit. It is estimated from below, so the value does not become negative.
  SNL_HD static Lanes trim(Lanes x) {
    __m512i(&w)[W] = x.v.w;
    const __m512i none = _mm512_setzero_si512();
    __m512i top = _mm512_add_epi64(_mm512_srai_epi64(w[W - 2], 52), _mm512_add_epi64(w[W - 1], V::splat(1)));
    top = _mm512_max_epi64(_mm512_sub_epi64(_mm512_and_si512(top, V::splat(mask)), V::splat(2)), none);
    static constexpr u64 reciprocal = (u64{1} << 62) / (V::template multiple<1>.w[W - 1] + 1);
    const __m512i q = _mm512_srli_epi64(V::hi(none, top, V::splat(reciprocal)), 10);
    SNL_UNROLL for (int k = 0; k < W; k++) w[k] = V::lo(w[k], q, V::splat(V::minus_p.w[k]));
    SNL_UNROLL for (int k = 0; k + 1 < W; k++) w[k + 1] = V::hi(w[k + 1], q, V::splat(V::minus_p.w[k]));
    return x;
  }

  SNL_HD static Lanes settle(const Lanes& x) { return trim({carried(x.v)}); }

  SNL_HD static __m512i word(u64 x) { return V::splat(x); }
  SNL_HD static __m512i word(__m512i x) { return x; }

  // K products t = v f mod p side by side: the chains of one would leave the multipliers idle. Bounds: 35 to 10. Of the
  // product v q only the words from 2^260 up are made: the words below, nine summands at 2^208 and fewer further down,
  // could add less than 9 to the quotient, and what q lacks less than 1. 3 W^2 IFMA.
  template <int K, class AnyFactor>
  SNL_HD static void multiply(__m512i (&t)[K][W], const Lanes* const (&v)[K], const AnyFactor* const (&f)[K]) {
    __m512i q[K][W], x[K][W];
    SNL_UNROLL for (int n = 0; n < K; n++) {
      SNL_UNROLL for (int k = 0; k < W; k++) {
        x[n][k] = v[n]->v.w[k];
        q[n][k] = t[n][k] = _mm512_setzero_si512();
      }
    }
    // IFMA reads the low 52 bits of a word: a carry that was passed on need not be taken off.
    SNL_UNROLL for (int k = 0; k + 1 < W; k++) {
      SNL_UNROLL for (int n = 0; n < K; n++) x[n][k + 1] =
          _mm512_add_epi64(x[n][k + 1], _mm512_srai_epi64(x[n][k], 52));
    }
    SNL_UNROLL for (int i = 0; i < W; i++) {
      SNL_UNROLL for (int j = W - 1 - i; j < W; j++) {
        SNL_UNROLL for (int n = 0; n < K; n++) {
          const __m512i c = word(f[n]->q[j]);
          if (i + j >= W) q[n][i + j - W] = V::lo(q[n][i + j - W], x[n][i], c);
          q[n][i + j - W + 1] = V::hi(q[n][i + j - W + 1], x[n][i], c);
        }
      }
    }
    SNL_UNROLL for (int i = 0; i < W; i++) {
      SNL_UNROLL for (int j = 0; i + j < W; j++) {
        SNL_UNROLL for (int n = 0; n < K; n++) {
          const __m512i c = word(f[n]->f[j]);
          t[n][i + j] = V::lo(t[n][i + j], x[n][i], c);
          if (i + j + 1 < W) t[n][i + j + 1] = V::hi(t[n][i + j + 1], x[n][i], c);
        }
      }
    }
    SNL_UNROLL for (int k = 0; k + 1 < W; k++) {
      SNL_UNROLL for (int n = 0; n < K; n++) q[n][k + 1] =
          _mm512_add_epi64(q[n][k + 1], _mm512_srli_epi64(q[n][k], 52));
    }
    SNL_UNROLL for (int i = 0; i < W; i++) {
      SNL_UNROLL for (int j = 0; i + j < W; j++) {
        SNL_UNROLL for (int n = 0; n < K; n++) {
          const __m512i c = V::splat(V::minus_p.w[j]);
          t[n][i + j] = V::lo(t[n][i + j], q[n][i], c);
          if (i + j + 1 < W) t[n][i + j + 1] = V::hi(t[n][i + j + 1], q[n][i], c);
        }
      }
    }
  }
  // (u, v) = (u + t, u - t), for t of bound B. Bounds: u to u + B.
  template <u64 B>
  SNL_HD static void sum_difference(Lanes& u, Lanes& v, const __m512i (&t)[W]) {
    SNL_UNROLL for (int k = 0; k < W; k++) {
      const __m512i s = t[k];
      v.v.w[k] = _mm512_sub_epi64(_mm512_add_epi64(u.v.w[k], V::splat(V::template multiple<B>.w[k])), s);
      u.v.w[k] = _mm512_add_epi64(u.v.w[k], s);
    }
  }

  // Bounds: u and v 2.2 to 5.2.
  SNL_HD static void butterfly(Lanes& u, Lanes& v) { sum_difference<3>(u, v, v.v.w); }
  // Bounds: v 35; u to u + 10.
  SNL_HD static void butterfly(Lanes& u, Lanes& v, const Factor& f) {
    __m512i t[1][W];
    multiply<1, Factor>(t, {&v}, {&f});
    sum_difference<10>(u, v, t[0]);
  }
  SNL_HD static void butterflies(Lanes& u0, Lanes& v0, const Factor& f0, Lanes& u1, Lanes& v1, const Factor& f1) {
    __m512i t[2][W];
    multiply<2, Factor>(t, {&v0, &v1}, {&f0, &f1});
    sum_difference<10>(u0, v0, t[0]);
    sum_difference<10>(u1, v1, t[1]);
  }
  // Bounds: 35 to 10.
  SNL_HD static Lanes times(Lanes x, const Factor& f) {
    __m512i t[1][W];
    multiply<1, Factor>(t, {&x}, {&f});
    set(x, t[0]);
    return x;
  }
  // Bounds: 35 to 10.
  SNL_HD static void times_twice(Lanes& x, Lanes& y, const LaneFactor& f, const LaneFactor& g, const LaneFactor& h) {
    __m512i t[2][W];
    multiply<2, LaneFactor>(t, {&x, &y}, {&f, &f});
    set(x, t[0]);
    set(y, t[1]);
    multiply<2, LaneFactor>(t, {&x, &y}, {&g, &h});
    set(x, t[0]);
    set(y, t[1]);
  }
  SNL_HD static Constants times(const Constants& x, const Constants& y) { return {V::mul(x.v, y.v)}; }
  SNL_HD static void set(Lanes& x, const __m512i (&words)[W]) {
    SNL_UNROLL for (int k = 0; k < W; k++) x.v.w[k] = words[k];
  }
};

#include "ifma_end.h"

#endif

}  // namespace ntt
}  // namespace SNL_ISA
}  // namespace snarkline
