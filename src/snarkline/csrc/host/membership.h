// Which points are on their curve, eight at a time by AVX-512 IFMA. Empty unless SNL_ISA_ifma; include it after all
// standard headers.
#pragma once

#include "../common/point.h"
#include "ifma.h"

#if SNL_ISA_ifma
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own _mm512_undefined_epi32()
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,bmi2,adx")

namespace snarkline {
inline namespace SNL_ISA {

// A coordinate of eight points over Fp: what was loaded, and as words for arithmetic.
template <class Fp>
struct Coordinate8 {
  using V = Field8<Fp>;
  static constexpr int N = Fp::N;

  __m512i limb[N];

  // Coordinate `c` of eight points of `width` coordinates each, at any address.
  SNL_HD static Coordinate8 load(const u64* points, int width, int c) {
    const long long step = (long long)width * N;
    const __m512i at = _mm512_setr_epi64(0, step, 2 * step, 3 * step, 4 * step, 5 * step, 6 * step, 7 * step);
    Coordinate8 x;
    SNL_UNROLL for (int k = 0; k < N; k++) {
      x.limb[k] = _mm512_i64gather_epi64(at, (const long long*)points + c * N + k, 8);
    }
    return x;
  }
  SNL_HD V words() const { return V::from_limbs(limb); }
  SNL_HD __m512i any() const {
    __m512i bits = limb[0];
    SNL_UNROLL for (int k = 1; k < N; k++) bits = _mm512_or_si512(bits, limb[k]);
    return bits;
  }
  SNL_HD __mmask8 below_modulus() const {
    __mmask8 below = 0;
    SNL_UNROLL for (int k = 0; k < N; k++) {
      const __m512i p = _mm512_set1_epi64((long long)Fp::modulus.limb[k]);
      below = _mm512_cmplt_epu64_mask(limb[k], p) | (_mm512_cmpeq_epu64_mask(limb[k], p) & below);
    }
    return below;
  }
};

// The equation y^2 = x^3 + b over Fp or Fp2. With R = 2^(64 N) and S = 2^(52 W), coordinates come times R and a product
// is divided by S, so that x^3 is times R^3 / S^2 and y^2 needs one more product by R to match. Costs 5 products (G1)
// or 11 (G2), a fourth to a third of which are squares; all values stay below 6p, within ifma.h's ranges. Lanes
// with a coordinate that is not below p hold nonsense, and are refused for that.
template <class F>
struct Equation8;

template <class P>
struct Equation8<Field<P>> {
  using F = Field<P>;
  using V = Field8<F>;
  V one, b;  // R, and b R^3 / S^2

  explicit Equation8(const F& b_) : one(V::constant(F::one())), b(scaled(b_)) {}

  static V scaled(const F& c) {
    const V r = V::constant(F::one());
    return V::mul(V::mul(V::constant(c), r), r);
  }
  // Lanes whose point is infinity or a point of the curve, with coordinates below p.
  SNL_HD __mmask8 holds(const u64* points) const {
    const auto x = Coordinate8<F>::load(points, 2, 0), y = Coordinate8<F>::load(points, 2, 1);
    const V xw = x.words(), yw = y.words();
    const V left = V::mul(V::sqr(yw), one);
    const V right = V::add(V::mul(V::sqr(xw), xw), b);
    const __m512i any = _mm512_or_si512(x.any(), y.any());
    const __mmask8 equal = V::zero_mask(V::template sub<4>(left, right));
    return x.below_modulus() & y.below_modulus() & (equal | _mm512_testn_epi64_mask(any, any));
  }
};

template <class P>
struct Equation8<Fp2<Field<P>>> {
  using F = Field<P>;
  using V = Field8<F>;
  V one, b0, b1;

  explicit Equation8(const Fp2<F>& b)
      : one(V::constant(F::one())), b0(Equation8<F>::scaled(b.c0)), b1(Equation8<F>::scaled(b.c1)) {}

  struct Pair {
    V c0, c1;
  };
  SNL_HD static Pair sqr(const V& a0, const V& a1) {
    return {V::mul(V::add(a0, a1), V::template sub<1>(a0, a1)), V::mul(V::add(a0, a0), a1)};
  }
  SNL_HD __mmask8 holds(const u64* points) const {
    const auto x0 = Coordinate8<F>::load(points, 4, 0), x1 = Coordinate8<F>::load(points, 4, 1);
    const auto y0 = Coordinate8<F>::load(points, 4, 2), y1 = Coordinate8<F>::load(points, 4, 3);
    const V a0 = x0.words(), a1 = x1.words();
    const Pair xx = sqr(a0, a1), yy = sqr(y0.words(), y1.words());
    const V right0 = V::add(V::dot(xx.c0, a0, V::template neg<2>(xx.c1), a1), b0);
    const V right1 = V::add(V::dot(xx.c0, a1, xx.c1, a0), b1);
    const __mmask8 equal = V::zero_mask(V::template sub<4>(V::mul(yy.c0, one), right0)) &
                           V::zero_mask(V::template sub<4>(V::mul(yy.c1, one), right1));
    const __m512i any = _mm512_or_si512(_mm512_or_si512(x0.any(), x1.any()), _mm512_or_si512(y0.any(), y1.any()));
    return x0.below_modulus() & x1.below_modulus() & y0.below_modulus() & y1.below_modulus() &
           (equal | _mm512_testn_epi64_mask(any, any));
  }
};

// Index of the first of the points [begin, end) that is not on its curve, `end` rounded down to whole eights if none.
template <class F>
usize first_off_curve(const u64* points, const F& b, usize begin, usize end) {
  const Equation8<F> equation(b);
  for (; end - begin >= 8; begin += 8) {
    const u8* at = reinterpret_cast<const u8*>(points) + begin * sizeof(Affine<F>);
    const __mmask8 good = equation.holds(reinterpret_cast<const u64*>(at));
    if (good != 0xff) return begin + static_cast<usize>(__builtin_ctz(~unsigned{good}));
  }
  return begin;
}

}  // namespace SNL_ISA
}  // namespace snarkline
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
