// Eight elements of a prime field at once, in radix 2^52, by AVX-512 IFMA (Ice Lake, Zen 4 and later). Empty unless
// SNL_ISA_ifma. Include it after all standard headers; code that uses it lies between ifma_begin.h and ifma_end.h.
//
// Interface, for F = Field<P> of N = 4 or 6 limbs, W = 5 or 8 words (V = Field8<F>):
//
//   V x;                              x.w[k] holds word k of all eight elements, one to a lane
//   V::constant(f), V::wide(f)        a Field element in all lanes, as it is, or in the wide form (below)
//   V::load(p), x.store(p)            eight consecutive elements of N limbs, any alignment; store wants [0, 2p) and
//   writes [0, p) V::mul(a, b), V::sqr(a), V::dot(a, b, c, d)              a b, a^2, a b + c d, all divided by 2^(52 W)
//   V::add(a, b), V::sub<K>(a, b), V::neg<K>(a)              a + b, a - b + K p, K p - a
//   V::reduce(a)                      [0, K p) to [0, p + K p / 2^15), by one quotient estimate (a fifth of a product)
//   V::sub_reduce<K>(a, b), V::sub_twice_reduce<K>(a, b, c)   reduce(a - b + K p), reduce(a - b - 2 c + K p)
//   V::mul_words, sqr_words, dot_words, sub_words, negate_words   the same before carries: words in (-2^60, 2^60),
//   values
//                                     of either sign; operands of sub (either side), sub_words and the reduce functions
//                                     only
//   x.get(lane), x.set(lane, f)       one lane, canonical (slow)
//   V::canonical(a)                   [0, 2p) to [0, p)
//   V::select(mask, a, b)             lane l of a where bit l of mask is set, else of b
//   V::zero_mask(a)                   which lanes are 0 mod p, exactly (as dear as a product)
//
// Radix. A product divides by 2^260 (N = 4) or 2^416 (N = 6), where that of `Field` divides by 2^256 or 2^384. An array
// in ordinary Montgomery form needs no conversion when one factor of each product is a constant in the wide form, which
// wide() makes: mul(x 2^256, c 2^260) = x c 2^256.
//
// Ranges. Words are below 2^52 before and after every function (so values are below 2^(52 W)); a value is bounded by a
// multiple of p. For a < A p and b < B p a product is below (1 + A B p / 2^(52 W)) p, a dot below (1 + (A B + C D) ...)
// p:
//
//   field                p / 2^(52 W)    a product below 2p if
//   BN254 q and r        0.0118          A B <= 84
//   BLS12-381 r          0.0283          A B <= 35
//   BLS12-381 q          2^-35.3         A B <= 2^35
//
// so sums and differences of a few elements go into products as they are; only `reduce` and `canonical` compare.
//
// Costs on a Sapphire Rapids core, cycles for eight: product 66 (N = 4) and 153 (N = 6); latency 98 and 174, so two or
// more independent products should be in flight.
#pragma once

#include "../common/field.h"

// Loops over words and lanes are unrolled, so that vectors live in registers.
#define SNL_UNROLL _Pragma("GCC unroll 32")

#if SNL_ISA_ifma
#include <immintrin.h>

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// Rows of eight 64-bit words to columns: out[i] lane j = in[j] lane i.
SNL_HD void transpose8(__m512i (&r)[8]) {
  __m512i a[8], b[8];
  SNL_UNROLL for (int i = 0; i < 8; i += 2) {
    a[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
  }
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  SNL_UNROLL for (int i = 0; i < 2; i++) {
    SNL_UNROLL for (int h = 0; h < 8; h += 4) {
      b[h + i] = _mm512_permutex2var_epi64(a[h + i], even, a[h + i + 2]);
      b[h + i + 2] = _mm512_permutex2var_epi64(a[h + i], odd, a[h + i + 2]);
    }
  }
  SNL_UNROLL for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0x44);
    r[i + 4] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0xee);
  }
}

// Four words of each of eight rows, given as rows (0, 4), (1, 5), (2, 6), (3, 7): out[i] lane j = row j word i.
SNL_HD void transpose4(__m512i (&r)[4]) {
  const __m512i a0 = _mm512_unpacklo_epi64(r[0], r[1]), a1 = _mm512_unpackhi_epi64(r[0], r[1]);
  const __m512i a2 = _mm512_unpacklo_epi64(r[2], r[3]), a3 = _mm512_unpackhi_epi64(r[2], r[3]);
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  r[0] = _mm512_permutex2var_epi64(a0, low, a2);
  r[1] = _mm512_permutex2var_epi64(a1, low, a3);
  r[2] = _mm512_permutex2var_epi64(a0, high, a2);
  r[3] = _mm512_permutex2var_epi64(a1, high, a3);
}

// A product takes 1 (N = 4) or 2 KiB of code. Loops with more than a few run faster when they call it: they fit into
// the first-level cache then, and loads and stores of the operands are hidden.
enum class Products { Inlined, Called };

// The alignment is stated because GCC gives __m512i less outside of the target region.
template <class F, Products products = F::N == 4 ? Products::Inlined : Products::Called>
struct alignas(64) Field8 {
  static constexpr int N = F::N;
  static constexpr int W = (64 * N + 51) / 52;
  static constexpr int lanes = 8;
  static constexpr int slack = 52 * W - 64 * N;  // the Montgomery radix is 2^slack times that of F
  using Scalar = F;
  using Limb = __m512i;
  static constexpr u64 word_mask = (u64{1} << 52) - 1;

  __m512i w[W];

  // An integer below 2^(52 W) as words.
  struct Words {
    u64 w[W];
  };
  static constexpr Words split(const Int<N>& v) {
    Words out{};
    for (int bit = 0; bit < 64 * N; bit++) {
      if (v.bit(bit)) out.w[bit / 52] |= u64{1} << (bit % 52);
    }
    return out;
  }
  static constexpr Words derive_multiple(u64 k) {
    const Words p = split(F::modulus);
    Words out{};
    u128 carry = 0;
    for (int i = 0; i < W; i++) {
      carry += (u128)p.w[i] * k;
      out.w[i] = i + 1 < W ? (u64)carry & word_mask : (u64)carry;
      carry >>= 52;
    }
    return out;
  }
  template <u64 K>
  static constexpr Words multiple = derive_multiple(K);  // K p
  static constexpr u64 inv = F::inv & word_mask;         // -p^-1 mod 2^52

  SNL_HD static __m512i splat(u64 x) { return _mm512_set1_epi64((long long)x); }
  SNL_HD static __m512i lo(__m512i t, __m512i a, __m512i b) { return _mm512_madd52lo_epu64(t, a, b); }
  SNL_HD static __m512i hi(__m512i t, __m512i a, __m512i b) { return _mm512_madd52hi_epu64(t, a, b); }

  SNL_HD static Field8 broadcast(const Words& c) {
    Field8 x;
    SNL_UNROLL for (int k = 0; k < W; k++) x.w[k] = splat(c.w[k]);
    return x;
  }
  SNL_HD static Field8 zero() { return broadcast(Words{}); }
  SNL_HD static Field8 constant(const F& f) { return broadcast(split(f.v)); }
  // f in Montgomery form for the radix 2^(52 W): f.v 2^(52 W - 64 N) mod p.
  static constexpr F widen(F f) {
    for (int i = 64 * N; i < 52 * W; i++) f = f + f;
    return f;
  }
  static Field8 wide(const F& f) { return constant(widen(f)); }

  // Carries and borrows: words in (-2^63, 2^63) that stand for a value in [0, 2^(52 W)) to words below 2^52.
  SNL_HD void normalise() {
    SNL_UNROLL for (int k = 0; k + 1 < W; k++) {
      w[k + 1] = _mm512_add_epi64(w[k + 1], _mm512_srai_epi64(w[k], 52));
      w[k] = _mm512_and_si512(w[k], splat(word_mask));
    }
  }

  // N limbs of eight elements, one limb to a vector, times 2^Shift. Out: below 2^(64 N + Shift).
  template <int Shift = 0>
  SNL_HD static Field8 from_limbs(const __m512i* limb) {
    static_assert(0 <= Shift && Shift <= 52 * W - 64 * N);
    Field8 x;
    SNL_UNROLL for (int k = 0; k < W; k++) {
      const int bit = 52 * k - Shift;  // of the limbs, where word k begins
      if (bit < 0) {
        x.w[k] = _mm512_slli_epi64(limb[0], -bit);
      } else {
        const int q = bit / 64, r = bit % 64;
        x.w[k] = r ? _mm512_srli_epi64(limb[q], r) : limb[q];
        if (r > 12 && q + 1 < N) x.w[k] = _mm512_or_si512(x.w[k], _mm512_slli_epi64(limb[q + 1], 64 - r));
      }
      if (bit + 52 < 64 * N) x.w[k] = _mm512_and_si512(x.w[k], splat(word_mask));
    }
    return x;
  }
  // One lane's value, [0, 2^13 p) to [0, p), with no change of form.
  F get(int lane) const {
    const Field8 c = canonical(reduce(*this));
    __m512i limb[N];
    c.to_limbs(limb);
    F f{};
    for (int i = 0; i < N; i++) f.v.limb[i] = reinterpret_cast<const u64*>(&limb[i])[lane];
    return f;
  }
  void set(int lane, const F& f) {
    const Words words = split(f.v);
    for (int k = 0; k < W; k++) w[k] = _mm512_mask_set1_epi64(w[k], (__mmask8)(1 << lane), (long long)words.w[k]);
  }

  // In: below 2^(64 N).
  SNL_HD void to_limbs(__m512i* limb) const {
    SNL_UNROLL for (int q = 0; q < N; q++) {
      const int k = 64 * q / 52, r = 64 * q % 52;
      limb[q] = r ? _mm512_srli_epi64(w[k], r) : w[k];
      if (k + 1 < W) limb[q] = _mm512_or_si512(limb[q], _mm512_slli_epi64(w[k + 1], 52 - r));
      if (k + 2 < W && 104 - r < 64) limb[q] = _mm512_or_si512(limb[q], _mm512_slli_epi64(w[k + 2], 104 - r));
    }
  }

  // Eight consecutive elements of N limbs, times 2^Shift.
  template <int Shift = 0>
  SNL_HD static Field8 load(const u64* p) {
    __m512i limb[N];
    if constexpr (N == 4) {
      SNL_UNROLL for (int i = 0; i < 4; i++) {
        limb[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)(p + 4 * i))),
                                     _mm256_loadu_si256((const __m256i*)(p + 4 * i + 16)), 1);
      }
      transpose4(limb);
    } else {
      const __m512i at = _mm512_setr_epi64(0, N, 2 * N, 3 * N, 4 * N, 5 * N, 6 * N, 7 * N);
      SNL_UNROLL for (int i = 0; i < N; i++) limb[i] = _mm512_i64gather_epi64(at, (const long long*)p + i, 8);
    }
    return from_limbs<Shift>(limb);
  }
  // In: [0, 2p). Out: canonical elements.
  SNL_HD void store(u64* p) const {
    __m512i limb[N];
    canonical(*this).to_limbs(limb);
    if constexpr (N == 4) {
      transpose4(limb);  // its own inverse within each half of the lanes
      SNL_UNROLL for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256((__m256i*)(p + 4 * i), _mm512_castsi512_si256(limb[i]));
        _mm256_storeu_si256((__m256i*)(p + 4 * i + 16), _mm512_extracti64x4_epi64(limb[i], 1));
      }
    } else {
      const __m512i at = _mm512_setr_epi64(0, N, 2 * N, 3 * N, 4 * N, 5 * N, 6 * N, 7 * N);
      SNL_UNROLL for (int i = 0; i < N; i++) _mm512_i64scatter_epi64((long long*)p + i, at, limb[i], 8);
    }
  }
  // t += a b[i]
  SNL_HD static void step_mul(__m512i (&t)[W + 1], const Field8& a, __m512i bi) {
    SNL_UNROLL for (int k = 0; k < W; k++) t[k] = lo(t[k], a.w[k], bi);
    SNL_UNROLL for (int k = 0; k < W; k++) t[k + 1] = hi(t[k + 1], a.w[k], bi);
  }
  // t = (t + m p) / 2^52 with the m that makes it exact. Words of t stay below 2^58: at most 6 W + 1 summands of 52
  // bits.
  SNL_HD static void step_reduce(__m512i (&t)[W + 1]) {
    const Words& p = multiple<1>;
    const __m512i m = lo(_mm512_setzero_si512(), t[0], splat(inv));
    SNL_UNROLL for (int k = 0; k < W; k++) t[k] = lo(t[k], m, splat(p.w[k]));
    SNL_UNROLL for (int k = 0; k < W; k++) t[k + 1] = hi(t[k + 1], m, splat(p.w[k]));
    t[1] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], 52));
    SNL_UNROLL for (int k = 0; k < W; k++) t[k] = t[k + 1];
    t[W] = _mm512_setzero_si512();
  }
  template <bool carried>
  SNL_HD static Field8 finish(const __m512i* t) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) c.w[k] = t[k];
    if constexpr (carried) c.normalise();
    return c;
  }

  SNL_HD static Field8 mul(const Field8& a, const Field8& b) { return product<multiply<true>>(a, b); }
  SNL_HD static Field8 sqr(const Field8& a) { return product<square<true>>(a); }
  SNL_HD static Field8 dot(const Field8& a, const Field8& b, const Field8& c, const Field8& d) {
    return product<multiply_add<true>>(a, b, c, d);
  }
  SNL_HD static Field8 mul_words(const Field8& a, const Field8& b) { return product<multiply<false>>(a, b); }
  SNL_HD static Field8 sqr_words(const Field8& a) { return product<square<false>>(a); }
  SNL_HD static Field8 dot_words(const Field8& a, const Field8& b, const Field8& c, const Field8& d) {
    return product<multiply_add<false>>(a, b, c, d);
  }
  template <auto function, class... Args>
  SNL_HD static Field8 product(const Args&... args) {
    if constexpr (products == Products::Inlined) return function(args...);
    return called<function>(args...);
  }
  template <auto function, class... Args>
  [[gnu::noinline]] static Field8 called(const Args&... args) {
    return function(args...);
  }

  // Montgomery product by words (Koc, Acar, Kaliski, CIOS) with carries left in the accumulators: Gueron, Krasnov,
  // "Accelerating big integer arithmetic using Intel IFMA extensions" (ARITH 2016). 4 W^2 + W IFMA.
  template <bool carried>
  SNL_HD static Field8 multiply(const Field8& a, const Field8& b) {
    __m512i t[W + 1];
    SNL_UNROLL for (int k = 0; k <= W; k++) t[k] = _mm512_setzero_si512();
    SNL_UNROLL for (int i = 0; i < W; i++) {
      step_mul(t, a, b.w[i]);
      step_reduce(t);
    }
    return finish<carried>(t);
  }
  // a b + c d with one reduction: 6 W^2 + W IFMA.
  template <bool carried>
  SNL_HD static Field8 multiply_add(const Field8& a, const Field8& b, const Field8& c, const Field8& d) {
    __m512i t[W + 1];
    SNL_UNROLL for (int k = 0; k <= W; k++) t[k] = _mm512_setzero_si512();
    SNL_UNROLL for (int i = 0; i < W; i++) {
      step_mul(t, a, b.w[i]);
      step_mul(t, c, d.w[i]);
      step_reduce(t);
    }
    return finish<carried>(t);
  }
  // Cross products once and doubled: 3 W^2 + 2 W IFMA.
  template <bool carried>
  SNL_HD static Field8 square(const Field8& a) {
    __m512i t[2 * W];
    SNL_UNROLL for (int k = 0; k < 2 * W; k++) t[k] = _mm512_setzero_si512();
    SNL_UNROLL for (int i = 0; i < W; i++) {
      SNL_UNROLL for (int k = i + 1; k < W; k++) {
        t[i + k] = lo(t[i + k], a.w[i], a.w[k]);
        t[i + k + 1] = hi(t[i + k + 1], a.w[i], a.w[k]);
      }
    }
    SNL_UNROLL for (int k = 1; k < 2 * W; k++) t[k] = _mm512_add_epi64(t[k], t[k]);
    SNL_UNROLL for (int i = 0; i < W; i++) {
      t[2 * i] = lo(t[2 * i], a.w[i], a.w[i]);
      t[2 * i + 1] = hi(t[2 * i + 1], a.w[i], a.w[i]);
    }
    const Words& p = multiple<1>;
    SNL_UNROLL for (int i = 0; i < W; i++) {
      const __m512i m = lo(_mm512_setzero_si512(), t[i], splat(inv));
      SNL_UNROLL for (int k = 0; k < W; k++) t[i + k] = lo(t[i + k], m, splat(p.w[k]));
      SNL_UNROLL for (int k = 0; k < W; k++) t[i + k + 1] = hi(t[i + k + 1], m, splat(p.w[k]));
      t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srli_epi64(t[i], 52));
    }
    return finish<carried>(t + W);
  }

  SNL_HD static Field8 add(const Field8& a, const Field8& b) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) c.w[k] = _mm512_add_epi64(a.w[k], b.w[k]);
    c.normalise();
    return c;
  }
  // a - b + K p, for b <= K p.
  template <u64 K>
  SNL_HD static Field8 sub(const Field8& a, const Field8& b) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) {
      c.w[k] = _mm512_add_epi64(_mm512_sub_epi64(a.w[k], b.w[k]), splat(multiple<K>.w[k]));
    }
    c.normalise();
    return c;
  }
  template <u64 K>
  SNL_HD static Field8 neg(const Field8& a) {
    return sub<K>(zero(), a);
  }
  // a - b without carries.
  SNL_HD static Field8 sub_words(const Field8& a, const Field8& b) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) c.w[k] = _mm512_sub_epi64(a.w[k], b.w[k]);
    return c;
  }
  // Minus a in the lanes of mask, without carries.
  SNL_HD static Field8 negate_words(__mmask8 mask, Field8 a) {
    SNL_UNROLL for (int k = 0; k < W; k++) {
      a.w[k] = _mm512_mask_sub_epi64(a.w[k], mask, _mm512_setzero_si512(), a.w[k]);
    }
    return a;
  }

  // Words of a value in [0, K p), before carries (each within 2^60 of zero), to a value in [0, p + K p / 2^15).
  // The quotient is estimated from below: by top / (top of p + 1) for the top word less one (pending carries move it by
  // one at most), with ten bits more than an integer. Then p is subtracted as 2^(52 W) - p, which IFMA can only add,
  // and the overflow dropped.
  SNL_HD void reduce_words() {
    const __m512i one = splat(1), none = _mm512_setzero_si512();
    __m512i top = _mm512_add_epi64(w[W - 1], _mm512_srai_epi64(w[W - 2], 52));
    top = _mm512_max_epi64(_mm512_sub_epi64(top, one), none);
    const __m512i q = _mm512_srli_epi64(hi(none, top, splat(reciprocal)), 10);
    SNL_UNROLL for (int k = 0; k < W; k++) w[k] = lo(w[k], q, splat(minus_p.w[k]));
    SNL_UNROLL for (int k = 0; k + 1 < W; k++) w[k + 1] = hi(w[k + 1], q, splat(minus_p.w[k]));
    normalise();
    w[W - 1] = _mm512_and_si512(w[W - 1], splat(word_mask));
  }
  SNL_HD static Field8 reduce(Field8 a) {
    a.reduce_words();
    return a;
  }
  // reduce(a - b + K p), for b <= K p.
  template <u64 K>
  SNL_HD static Field8 sub_reduce(const Field8& a, const Field8& b) {
    Field8 d;
    SNL_UNROLL for (int k = 0; k < W; k++) {
      d.w[k] = _mm512_add_epi64(_mm512_sub_epi64(a.w[k], b.w[k]), splat(multiple<K>.w[k]));
    }
    d.reduce_words();
    return d;
  }
  // reduce(a - b - 2 c + K p), for b + 2 c <= K p.
  template <u64 K>
  SNL_HD static Field8 sub_twice_reduce(const Field8& a, const Field8& b, const Field8& c) {
    Field8 d;
    SNL_UNROLL for (int k = 0; k < W; k++) {
      const __m512i bc = _mm512_add_epi64(b.w[k], _mm512_add_epi64(c.w[k], c.w[k]));
      d.w[k] = _mm512_add_epi64(_mm512_sub_epi64(a.w[k], bc), splat(multiple<K>.w[k]));
    }
    d.reduce_words();
    return d;
  }
  static constexpr u64 reciprocal = (u64{1} << 62) / (derive_multiple(1).w[W - 1] + 1);
  static constexpr Words derive_minus_p() {
    const Words p = split(F::modulus);
    Words out{};
    for (int k = 0; k < W; k++) out.w[k] = (k == 0 ? word_mask + 1 : word_mask) - p.w[k];  // p is odd: no carry
    return out;
  }
  static constexpr Words minus_p = derive_minus_p();  // 2^(52 W) - p

  // [0, 2p) to [0, p)
  SNL_HD static Field8 canonical(const Field8& a) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) c.w[k] = _mm512_sub_epi64(a.w[k], splat(multiple<1>.w[k]));
    c.normalise();
    return select(_mm512_movepi64_mask(c.w[W - 1]), a, c);
  }

  SNL_HD static Field8 select(__mmask8 mask, const Field8& a, const Field8& b) {
    Field8 c;
    SNL_UNROLL for (int k = 0; k < W; k++) c.w[k] = _mm512_mask_blend_epi64(mask, b.w[k], a.w[k]);
    return c;
  }
  // a / 2^(52 W) is in [0, p], so it is 0 mod p only as 0 or p.
  SNL_HD static __mmask8 zero_mask(const Field8& a) {
    Words one{};
    one.w[0] = 1;
    const Field8 c = mul(a, broadcast(one));
    __m512i any = c.w[0], other = _mm512_xor_si512(c.w[0], splat(multiple<1>.w[0]));
    SNL_UNROLL for (int k = 1; k < W; k++) {
      any = _mm512_or_si512(any, c.w[k]);
      other = _mm512_or_si512(other, _mm512_xor_si512(c.w[k], splat(multiple<1>.w[k])));
    }
    return _mm512_testn_epi64_mask(any, any) | _mm512_testn_epi64_mask(other, other);
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline
#include "ifma_end.h"
#endif
