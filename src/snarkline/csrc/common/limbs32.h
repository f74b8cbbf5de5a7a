// Field arithmetic on 32-bit limbs with a carry flag, for GPUs. The memory layout is that of Int<N>: little-endian, so
// word 2 i and word 2 i + 1 are the halves of limb i. On a device every primitive is one PTX instruction; with
// SNL_EMULATE_LIMBS32 the same code runs on the host with the carry flag in a variable, for tests.
#pragma once

#include "int.h"

#if defined(__CUDACC__) || defined(SNL_EMULATE_LIMBS32)
#define SNL_LIMBS32 1
#endif

#ifdef SNL_LIMBS32

#ifdef __CUDACC__
#define SNL_UNROLL _Pragma("unroll")
#define SNL_ROLLED _Pragma("unroll 1")
#else
#define SNL_UNROLL
#define SNL_ROLLED
#endif

namespace snarkline {
inline namespace SNL_ISA {
namespace limbs32 {

// ---- primitives: *_cc writes the carry flag, *c_* reads it ----

#ifdef __CUDACC__
#define SNL_PTX2(name, text)                                      \
  __device__ __forceinline__ u32 name(u32 a, u32 b) {             \
    u32 r;                                                        \
    asm volatile(text " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); \
    return r;                                                     \
  }
#define SNL_PTX3(name, text)                                                  \
  __device__ __forceinline__ u32 name(u32 a, u32 b, u32 c) {                  \
    u32 r;                                                                    \
    asm volatile(text " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); \
    return r;                                                                 \
  }
SNL_PTX2(add_cc, "add.cc.u32")
SNL_PTX2(addc_cc, "addc.cc.u32")
SNL_PTX2(addc, "addc.u32")
SNL_PTX2(sub_cc, "sub.cc.u32")
SNL_PTX2(subc_cc, "subc.cc.u32")
SNL_PTX2(subc, "subc.u32")
SNL_PTX2(mul_lo, "mul.lo.u32")
SNL_PTX2(mul_hi, "mul.hi.u32")
SNL_PTX3(mad_lo_cc, "mad.lo.cc.u32")
SNL_PTX3(madc_lo_cc, "madc.lo.cc.u32")
SNL_PTX3(madc_hi_cc, "madc.hi.cc.u32")
SNL_PTX3(madc_hi, "madc.hi.u32")
#undef SNL_PTX2
#undef SNL_PTX3
#else
inline thread_local u32 carry_flag;
inline u32 keep(u64 sum) {
  carry_flag = static_cast<u32>(sum >> 32) & 1;
  return static_cast<u32>(sum);
}
inline u32 mul_lo(u32 a, u32 b) { return a * b; }
inline u32 mul_hi(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
inline u32 add_cc(u32 a, u32 b) { return keep(u64{a} + b); }
inline u32 addc_cc(u32 a, u32 b) { return keep(u64{a} + b + carry_flag); }
inline u32 addc(u32 a, u32 b) { return a + b + carry_flag; }
inline u32 sub_cc(u32 a, u32 b) { return keep(u64{a} - b); }
inline u32 subc_cc(u32 a, u32 b) { return keep(u64{a} - b - carry_flag); }
inline u32 subc(u32 a, u32 b) { return a - b - carry_flag; }
inline u32 mad_lo_cc(u32 a, u32 b, u32 c) { return keep(u64{a * b} + c); }
inline u32 madc_lo_cc(u32 a, u32 b, u32 c) { return keep(u64{a * b} + c + carry_flag); }
inline u32 madc_hi_cc(u32 a, u32 b, u32 c) { return keep(u64{mul_hi(a, b)} + c + carry_flag); }
inline u32 madc_hi(u32 a, u32 b, u32 c) { return mul_hi(a, b) + c + carry_flag; }
#endif

// ---- N words of 32 bits ----

template <int N>
struct Words {
  u32 word[N];
};

template <int L>
SNL_HD Words<2 * L> split(const Int<L>& a) {
  Words<2 * L> w;
  SNL_UNROLL for (int i = 0; i < L; i++) {
    w.word[2 * i] = static_cast<u32>(a.limb[i]);
    w.word[2 * i + 1] = static_cast<u32>(a.limb[i] >> 32);
  }
  return w;
}

template <int N>
SNL_HD Int<N / 2> join(const Words<N>& w) {
  Int<N / 2> a;
  SNL_UNROLL for (int i = 0; i < N / 2; i++) a.limb[i] = w.word[2 * i] | static_cast<u64>(w.word[2 * i + 1]) << 32;
  return a;
}

// The modulus p of F as words, times 1 or 2 (2 p < 2^(32 N)).
template <class F>
struct Modulus {
  static constexpr int N = 2 * F::N;
  SNL_HD static constexpr u32 word(int i) { return static_cast<u32>(F::modulus.limb[i / 2] >> (32 * (i % 2))); }
  SNL_HD static constexpr u32 twice(int i) { return (word(i) << 1) | (i > 0 ? word(i - 1) >> 31 : 0); }
  static constexpr u32 inv = static_cast<u32>(F::inv);  // -1/p mod 2^32
  // p = 1 mod 2^32 and p / 2^32 = -1 mod 2^32: words 0 and 1 of a multiple of p are then additions.
  static constexpr bool sparse = F::modulus.limb[0] == 0xffffffff00000001ull;
};

// a + b, and the carry out in `carry`
template <int N>
SNL_HD Words<N> add_words(const Words<N>& a, const Words<N>& b, u32& carry) {
  Words<N> s;
  s.word[0] = add_cc(a.word[0], b.word[0]);
  SNL_UNROLL for (int i = 1; i < N; i++) s.word[i] = addc_cc(a.word[i], b.word[i]);
  carry = addc(0, 0);
  return s;
}

// a - b, and 0 - borrow in `mask`
template <int N>
SNL_HD Words<N> sub_words(const Words<N>& a, const Words<N>& b, u32& mask) {
  Words<N> d;
  d.word[0] = sub_cc(a.word[0], b.word[0]);
  SNL_UNROLL for (int i = 1; i < N; i++) d.word[i] = subc_cc(a.word[i], b.word[i]);
  mask = subc(0, 0);
  return d;
}

template <int N>
SNL_HD Words<N> select(u32 mask, const Words<N>& if_set, const Words<N>& if_clear) {
  Words<N> r;
  SNL_UNROLL for (int i = 0; i < N; i++) r.word[i] = mask ? if_set.word[i] : if_clear.word[i];
  return r;
}

// p or 2 p as words
template <class F, bool Twice>
SNL_HD constexpr u32 multiple(int i) {
  return Twice ? Modulus<F>::twice(i) : Modulus<F>::word(i);
}

// [0, 2 m) to [0, m), for m = p or 2 p; `carry` is the word above a.
template <class F, bool Twice = false>
SNL_HD Words<2 * F::N> reduce_once(const Words<2 * F::N>& a, u32 carry = 0) {
  constexpr int N = 2 * F::N;
  Words<N> t;
  t.word[0] = sub_cc(a.word[0], multiple<F, Twice>(0));
  SNL_UNROLL for (int i = 1; i < N; i++) t.word[i] = subc_cc(a.word[i], multiple<F, Twice>(i));
  const u32 below = subc(carry, 0) >> 31;
  return select(below, a, t);
}

// a + b mod m and a - b mod m for a, b in [0, m), m = p or 2 p
template <class F, bool Twice = false>
SNL_HD Words<2 * F::N> add_mod(const Words<2 * F::N>& a, const Words<2 * F::N>& b) {
  u32 carry;
  const auto s = add_words(a, b, carry);
  return reduce_once<F, Twice>(s, carry);
}

template <class F, bool Twice = false>
SNL_HD Words<2 * F::N> sub_mod(const Words<2 * F::N>& a, const Words<2 * F::N>& b) {
  constexpr int N = 2 * F::N;
  u32 mask;
  Words<N> d = sub_words(a, b, mask);
  d.word[0] = add_cc(d.word[0], multiple<F, Twice>(0) & mask);
  SNL_UNROLL for (int i = 1; i < N - 1; i++) d.word[i] = addc_cc(d.word[i], multiple<F, Twice>(i) & mask);
  d.word[N - 1] = addc(d.word[N - 1], multiple<F, Twice>(N - 1) & mask);
  return d;
}

// ---- Montgomery product ----
//
// Word by word (CIOS). The running sum is kept as two numbers of N words, `even` and `odd` (one word higher), so that
// the low and high halves of all products a_j * b, with j even into one and j odd into the other, form two carry
// chains without a break. Dropping the lowest word swaps their parts.

// even + 2^32 odd += a * b, after the sum was divided by 2^32 (which moved `odd` one word down and swapped the two)
template <int N>
SNL_HD void multiply_row(u32* even, u32* odd, const u32* a, u32 b, bool first) {
  if (first) {
    SNL_UNROLL for (int j = 0; j < N; j += 2) {
      even[j] = mul_lo(a[j], b);
      even[j + 1] = mul_hi(a[j], b);
      odd[j] = mul_lo(a[j + 1], b);
      odd[j + 1] = mul_hi(a[j + 1], b);
    }
    return;
  }
  even[0] = add_cc(even[0], odd[1]);
  SNL_UNROLL for (int j = 0; j < N - 2; j += 2) {
    odd[j] = madc_lo_cc(a[j + 1], b, odd[j + 2]);
    odd[j + 1] = madc_hi_cc(a[j + 1], b, odd[j + 3]);
  }
  odd[N - 2] = madc_lo_cc(a[N - 1], b, 0);
  odd[N - 1] = madc_hi(a[N - 1], b, 0);
  even[0] = mad_lo_cc(a[0], b, even[0]);
  even[1] = madc_hi_cc(a[0], b, even[1]);
  SNL_UNROLL for (int j = 2; j < N; j += 2) {
    even[j] = madc_lo_cc(a[j], b, even[j]);
    even[j + 1] = madc_hi_cc(a[j], b, even[j + 1]);
  }
  odd[N - 1] = addc(odd[N - 1], 0);
}

// Adds the multiple m * p that makes even[0] zero.
template <class F>
SNL_HD void reduce_row(u32* even, u32* odd) {
  using M = Modulus<F>;
  constexpr int N = M::N;
  u32 m;
  if constexpr (M::sparse) {
    const u32 e = even[0];
    m = sub_cc(0, e);
    const u32 high = subc(m, 0);  // m * (2^32 - 1) = high * 2^32 + e
    odd[0] = add_cc(odd[0], e);
    odd[1] = addc_cc(odd[1], high);
  } else {
    m = even[0] * M::inv;
    odd[0] = mad_lo_cc(M::word(1), m, odd[0]);
    odd[1] = madc_hi_cc(M::word(1), m, odd[1]);
  }
  SNL_UNROLL for (int j = 2; j < N; j += 2) {
    odd[j] = madc_lo_cc(M::word(j + 1), m, odd[j]);
    odd[j + 1] = madc_hi_cc(M::word(j + 1), m, odd[j + 1]);
  }
  // odd is below 2^(32 N) here: the sum is below 2 p * 2^32
  if constexpr (M::sparse) {
    even[0] = add_cc(even[0], m);
    even[1] = addc_cc(even[1], 0);
  } else {
    even[0] = mad_lo_cc(M::word(0), m, even[0]);
    even[1] = madc_hi_cc(M::word(0), m, even[1]);
  }
  SNL_UNROLL for (int j = 2; j < N; j += 2) {
    even[j] = madc_lo_cc(M::word(j), m, even[j]);
    even[j + 1] = madc_hi_cc(M::word(j), m, even[j + 1]);
  }
  odd[N - 1] = addc(odd[N - 1], 0);
}

// a * b / 2^(32 N) mod p, in [0, 2 p), for a in [0, p) and any b of N words, or, as 4 p < 2^(32 N), for both in [0, 2
// p).
template <class F>
SNL_HD Words<2 * F::N> multiply_lazy(const Words<2 * F::N>& a, const Words<2 * F::N>& b) {
  constexpr int N = 2 * F::N;
  u32 even[N], odd[N];
  SNL_UNROLL for (int i = 0; i < N; i += 2) {
    multiply_row<N>(even, odd, a.word, b.word[i], i == 0);
    reduce_row<F>(even, odd);
    multiply_row<N>(odd, even, a.word, b.word[i + 1], false);
    reduce_row<F>(odd, even);
  }
  Words<N> r;
  r.word[0] = add_cc(even[0], odd[1]);
  SNL_UNROLL for (int i = 1; i < N - 1; i++) r.word[i] = addc_cc(even[i], odd[i + 1]);
  r.word[N - 1] = addc(even[N - 1], 0);
  return r;
}

// ---- Montgomery square ----
//
// The products a_i a_j of different words are made once and doubled: N (N + 1) / 2 wide products in place of N^2, and
// N (N + 1) for the reduction, as in a product. So 108 of 136 for 8 words, 234 of 300 for 12.

// a^2. Products whose lowest word lies at an even place and those at an odd one are two sums without a break in their
// carries, as above; the highest word that a row of products reaches is reached for the first time, so that no carry
// leaves it, or by the row before, and then the word after it is free.
template <int N>
SNL_HD Words<2 * N> square_words(const u32* a) {
  u32 sums[2][2 * N] = {};
  SNL_UNROLL for (int i = 0; i < N - 1; i++) {
    SNL_UNROLL for (int parity = 0; parity < 2; parity++) {
      u32* sum = sums[parity];
      const int first = i + 1 + (parity == 0 ? 1 : 0);  // i + j is even or odd
      SNL_UNROLL for (int j = first; j < N; j += 2) {
        sum[i + j] = j == first ? mad_lo_cc(a[i], a[j], sum[i + j]) : madc_lo_cc(a[i], a[j], sum[i + j]);
        sum[i + j + 1] = madc_hi_cc(a[i], a[j], sum[i + j + 1]);
        if (j + 2 >= N && i + j + 2 < 2 * N) sum[i + j + 2] = addc(sum[i + j + 2], 0);
      }
    }
  }
  Words<2 * N> square;
  u32* word = square.word;
  word[0] = 0;
  word[1] = sums[1][1];
  word[2] = add_cc(sums[0][2], sums[1][2]);
  SNL_UNROLL for (int i = 3; i < 2 * N; i++) word[i] = addc_cc(sums[0][i], sums[1][i]);
  SNL_UNROLL for (int i = 2 * N - 1; i > 0; i--) word[i] = word[i] << 1 | word[i - 1] >> 31;
  word[0] = mad_lo_cc(a[0], a[0], 0);
  SNL_UNROLL for (int i = 0; i < N; i++) {
    if (i > 0) word[2 * i] = madc_lo_cc(a[i], a[i], word[2 * i]);
    word[2 * i + 1] = madc_hi_cc(a[i], a[i], word[2 * i + 1]);
  }
  return square;
}

// Divides by 2^32, which swaps the parts of `even` and `odd`, and adds the multiple of p that makes odd[0], which then
// is the even one, zero.
template <class F>
SNL_HD void shift_and_reduce(u32* even, u32* odd) {
  using M = Modulus<F>;
  constexpr int N = M::N;
  odd[0] = add_cc(odd[0], even[1]);
  const u32 m = odd[0] * M::inv;
  SNL_UNROLL for (int j = 0; j < N - 2; j += 2) {
    even[j] = madc_lo_cc(M::word(j + 1), m, even[j + 2]);
    even[j + 1] = madc_hi_cc(M::word(j + 1), m, even[j + 3]);
  }
  even[N - 2] = madc_lo_cc(M::word(N - 1), m, 0);
  even[N - 1] = madc_hi(M::word(N - 1), m, 0);
  odd[0] = mad_lo_cc(M::word(0), m, odd[0]);
  odd[1] = madc_hi_cc(M::word(0), m, odd[1]);
  SNL_UNROLL for (int j = 2; j < N; j += 2) {
    odd[j] = madc_lo_cc(M::word(j), m, odd[j]);
    odd[j + 1] = madc_hi_cc(M::word(j), m, odd[j + 1]);
  }
  even[N - 1] = addc(even[N - 1], 0);
}

// a^2 / 2^(32 N) mod p, in [0, 2 p), for a in [0, 2 p).
template <class F>
SNL_HD Words<2 * F::N> square_lazy(const Words<2 * F::N>& a) {
  constexpr int N = 2 * F::N;
  const Words<2 * N> square = square_words<N>(a.word);
  u32 even[N], odd[N] = {};
  SNL_UNROLL for (int i = 0; i < N; i++) even[i] = square.word[i];
  reduce_row<F>(even, odd);
  shift_and_reduce<F>(even, odd);
  SNL_UNROLL for (int i = 2; i < N; i += 2) {
    shift_and_reduce<F>(odd, even);
    shift_and_reduce<F>(even, odd);
  }
  // The low half has become even + odd / 2^32, at most p; the high half is below 4 p^2 / 2^(32 N), and that below p.
  Words<N> r;
  r.word[0] = add_cc(even[0], odd[1]);
  SNL_UNROLL for (int i = 1; i < N - 1; i++) r.word[i] = addc_cc(even[i], odd[i + 1]);
  r.word[N - 1] = addc(even[N - 1], 0);
  r.word[0] = add_cc(r.word[0], square.word[N]);
  SNL_UNROLL for (int i = 1; i < N - 1; i++) r.word[i] = addc_cc(r.word[i], square.word[N + i]);
  r.word[N - 1] = addc(r.word[N - 1], square.word[2 * N - 1]);
  return r;
}

template <class F>
SNL_HD F add(const F& a, const F& b) {
  return F{join(add_mod<F>(split(a.v), split(b.v)))};
}
template <class F>
SNL_HD F sub(const F& a, const F& b) {
  return F{join(sub_mod<F>(split(a.v), split(b.v)))};
}
// Inlined, a product is some 350 instructions: where a module needs many of them and speed matters less than the time
// to compile it, they are calls.
#if defined(SNL_CALLED_PRODUCTS) && defined(__CUDACC__)
#define SNL_PRODUCT __device__ __noinline__
#else
#define SNL_PRODUCT SNL_HD
#endif
// a * b and a^2 in [0, 2 p), for a and b in [0, 2 p): no subtraction at the end.
template <class F>
SNL_HD F mul_lazy(const F& a, const F& b) {
  static_assert(F::bits <= 64 * F::N - 2);
  return F{join(multiply_lazy<F>(split(a.v), split(b.v)))};
}
template <class F>
SNL_PRODUCT F mul(F a, F b) {
  return F{join(reduce_once<F>(multiply_lazy<F>(split(a.v), split(b.v))))};
}
template <class F>
SNL_PRODUCT F sqr(F a) {
  return F{join(reduce_once<F>(square_lazy<F>(split(a.v))))};
}

}  // namespace limbs32
}  // namespace SNL_ISA
}  // namespace snarkline

// In a constexpr operator of Field: outside constant evaluation the result is `expression`.
#define SNL_AT_RUN_TIME(expression) \
  if (!__builtin_is_constant_evaluated()) return expression
#else
#define SNL_AT_RUN_TIME(expression)
#endif
