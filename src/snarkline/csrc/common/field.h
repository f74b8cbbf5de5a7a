// A prime field in Montgomery form. `P` states the irreducible facts (limbs, modulus, multiplicative generator);
// everything else is derived here at compile time.
#pragma once

#include "limbs32.h"

// Fields of 4 and 6 words have assembly for these sets; constants are computed by the portable text in any case.
#if (SNL_ISA_adx || SNL_ISA_ifma) && defined(__x86_64__)
#include "x86.h"
#define SNL_X86 1
#endif

namespace snarkline {
inline namespace SNL_ISA {

template <class P>
struct Field {
  static constexpr int N = P::limbs;
  static constexpr Int<N> modulus = P::modulus;
  static constexpr int bits = P::modulus.bit_length();
  // The products below never carry out of N limbs: they need one spare bit on top (all four fields have it).
  static_assert(bits < 64 * N);

  Int<N> v;  // a * 2^(64 N) mod p, in [0, p)

  // -p^-1 mod 2^64 by Newton's iteration: each step doubles the correct low bits.
  static constexpr u64 derive_inv() {
    u64 x = 1;
    for (int i = 0; i < 6; i++) x *= 2 - P::modulus.limb[0] * x;
    return 0 - x;
  }
  // 2^k mod p by doubling.
  static constexpr Int<N> derive_pow2(int k) {
    Int<N> x{};
    x.limb[0] = 1;
    for (int i = 0; i < k; i++) {
      Int<N> y = x;
      add_in_place(y, x);
      if (!less(y, modulus)) sub_in_place(y, modulus);
      x = y;
    }
    return x;
  }

  static constexpr u64 inv = derive_inv();
  static constexpr Int<N> r1 = derive_pow2(64 * N);      // R mod p: one
  static constexpr Int<N> r2 = derive_pow2(2 * 64 * N);  // R^2 mod p: takes an integer to Montgomery form
  static constexpr Int<N> r3 = derive_pow2(3 * 64 * N);  // R^3 mod p

  SNL_HD static constexpr Field zero() { return Field{}; }
  SNL_HD static constexpr Field one() { return Field{r1}; }
  SNL_HD static constexpr Field from_u64(u64 x) {
    Field f{};
    f.v.limb[0] = x;
    return f * Field{r2};
  }
  // a in [0, p)
  SNL_HD static constexpr Field from_canonical(const Int<N>& a) { return Field{a} * Field{r2}; }
  SNL_HD constexpr Int<N> to_canonical() const {
    Field u{};
    u.v.limb[0] = 1;
    return (*this * u).v;
  }

  SNL_HD constexpr bool operator==(const Field& o) const { return v == o.v; }
  SNL_HD constexpr bool is_zero() const { return v.is_zero(); }

  SNL_HD friend constexpr Field operator+(const Field& a, const Field& b) {
    SNL_AT_RUN_TIME(limbs32::add(a, b));
#if SNL_X86
    if (!__builtin_is_constant_evaluated()) {
      Field c;
      add_x86<Field>(c.v, a.v, b.v);
      return c;
    }
#endif
    Field c = a;
    add_in_place(c.v, b.v);
    reduce_once(c.v);
    return c;
  }
  SNL_HD friend constexpr Field operator-(const Field& a, const Field& b) {
    SNL_AT_RUN_TIME(limbs32::sub(a, b));
#if SNL_X86
    if (!__builtin_is_constant_evaluated()) {
      Field c;
      sub_x86<Field>(c.v, a.v, b.v);
      return c;
    }
#endif
    Field c = a;
    const u64 mask = 0 - sub_in_place(c.v, b.v);
    Int<N> m{};
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) m.limb[i] = modulus.limb[i] & mask;
    add_in_place(c.v, m);
    return c;
  }
  SNL_HD constexpr Field operator-() const { return Field{} - *this; }
  SNL_HD constexpr Field dbl() const { return *this + *this; }

  // Montgomery product, CIOS without the last carry word: Koc, Acar, Kaliski, "Analyzing and comparing Montgomery
  // multiplication algorithms" (1996), section 5, with p < 2^(64 N - 1). In: [0, p); out: [0, p).
  SNL_HD friend constexpr Field operator*(const Field& a, const Field& b) {
    SNL_AT_RUN_TIME(limbs32::mul(a, b));
#if SNL_X86
    if (!__builtin_is_constant_evaluated()) {
      Field c;
      mul_x86<Field>(c.v, a.v, b.v);
      return c;
    }
#endif
    return product(a, b);
  }
  // The product in plain C++. A call, not inlined: some hundred instructions wherever a formula multiplies would make
  // the larger kernels take minutes to compile.
  SNL_NOINLINE static constexpr Field product(const Field& a, const Field& b) {
    u64 t[N + 1] = {};
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) {
      u64 carry = 0;
      SNL_UNROLL_WORDS
      for (int j = 0; j < N; j++) t[j] = mul_add(t[j], a.v.limb[j], b.v.limb[i], carry);
      t[N] = carry;
      const u64 m = t[0] * inv;
      carry = 0;
      mul_add(t[0], m, modulus.limb[0], carry);
      SNL_UNROLL_WORDS
      for (int j = 1; j < N; j++) t[j - 1] = mul_add(t[j], m, modulus.limb[j], carry);
      t[N - 1] = t[N] + carry;
    }
    Field c{};
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) c.v.limb[i] = t[i];
    reduce_once(c.v);
    return c;
  }
  SNL_HD constexpr Field sqr() const {
    SNL_AT_RUN_TIME(limbs32::sqr(*this));
#if SNL_X86
    if constexpr (bits <= 64 * N - 2) {
      if (!__builtin_is_constant_evaluated()) {
        Field c;
        sqr_x86<Field>(c.v, v);
        return c;
      }
    }
#endif
    return *this * *this;
  }

  // Whether `dot` has assembly: it needs 3p < 2^(64 N).
  static constexpr bool fused =
#if SNL_X86
      bits <= 64 * N - 2;
#else
      false;
#endif
  // a * b + c * d.
  SNL_HD static constexpr Field dot(const Field& a, const Field& b, const Field& c, const Field& d) {
#if SNL_X86
    if constexpr (fused) {
      if (!__builtin_is_constant_evaluated()) {
        Field out;
        dot_x86<Field>(out.v, a.v, b.v, c.v, d.v);
        return out;
      }
    }
#endif
    return a * b + c * d;
  }

  SNL_HD constexpr Field& operator+=(const Field& o) { return *this = *this + o; }
  SNL_HD constexpr Field& operator-=(const Field& o) { return *this = *this - o; }
  SNL_HD constexpr Field& operator*=(const Field& o) { return *this = *this * o; }

  // this^e, e public (variable time).
  template <int M>
  constexpr Field pow(const Int<M>& e) const {
    Field acc = one();
    for (int i = e.bit_length(); i-- > 0;) {
      acc = acc.sqr();
      if (e.bit(i)) acc = acc * *this;
    }
    return acc;
  }
  // 1 / this, and 0 for 0 (Fermat; variable time in the public exponent only).
  constexpr Field inverse() const {
    Int<N> e = modulus;
    Int<N> two{};
    two.limb[0] = 2;
    sub_in_place(e, two);
    return pow(e);
  }

  // [0, 2p) to [0, p)
  SNL_HD static constexpr void reduce_once(Int<N>& a) {
    Int<N> t = a;
    const u64 mask = 0 - sub_in_place(t, modulus);
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) a.limb[i] = (a.limb[i] & mask) | (t.limb[i] & ~mask);
  }
};

// p - 1 = 2^two_adicity * odd: the domains of the NTT.
template <class F>
struct Domain {
  static constexpr int derive_two_adicity() {
    int s = 1;
    while (!F::modulus.bit(s)) s++;
    return s;
  }
  static constexpr int two_adicity = derive_two_adicity();
  // The element of order 2^two_adicity: generator^((p - 1) / 2^two_adicity).
  static constexpr F derive_root(const F& generator) {
    auto e = F::modulus;
    e.limb[0] -= 1;
    return generator.pow(shift_right(e, two_adicity));
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline
