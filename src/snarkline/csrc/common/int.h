// Limb arithmetic: the handful of primitives that everything above is written in. Freestanding: read by the host
// compiler and by NVRTC. `SNL_ISA` names the instruction set that a host translation unit is compiled for
// (portable, adx, ifma); every template lives in the inline namespace of that name, so that the same source can be
// compiled several times into one library and chosen at run time.
#pragma once

#ifndef SNL_ISA
#define SNL_ISA portable
#endif

// SNL_UNROLL_WORDS: the loop over the words that follows is unrolled.
#ifdef __CUDACC__
#define SNL_UNROLL_WORDS _Pragma("unroll")
#else
#define SNL_UNROLL_WORDS _Pragma("GCC unroll 8")
#endif

// SNL_HD: always inlined. SNL_FN: inlining is left to the compiler (functions of many products). SNL_NOINLINE: a call.
#ifdef __CUDACC__
#define SNL_HD __host__ __device__ __forceinline__
#define SNL_FN __host__ __device__
#define SNL_NOINLINE __host__ __device__ __noinline__
#else
#define SNL_HD inline __attribute__((always_inline))
#define SNL_FN
#define SNL_NOINLINE __attribute__((noinline))
#endif

namespace snarkline {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
#ifndef __CUDACC_RTC__
using u128 = unsigned __int128;
#endif
using usize = decltype(sizeof(0));

inline namespace SNL_ISA {

#ifdef __CUDACC_RTC__
// Without a 128-bit type. At run time these serve short loops only: fields have limbs32.h.
SNL_HD constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
  const u64 s = a + b, t = s + carry;
  carry = (s < a) | (t < s);
  return t;
}
SNL_HD constexpr u64 sub_borrow(u64 a, u64 b, u64& borrow) {
  const u64 d = a - b, t = d - borrow;
  borrow = (a < b) | (d < borrow);
  return t;
}
SNL_HD constexpr u64 mul_add(u64 acc, u64 a, u64 b, u64& carry) {
  const u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
  const u64 low = a0 * b0, cross = a0 * b1 + (low >> 32), middle = a1 * b0 + (u32)cross;
  u64 c = 0;
  u64 t = add_carry((middle << 32) | (u32)low, acc, c);
  u64 high = a1 * b1 + (cross >> 32) + (middle >> 32) + c;
  c = 0;
  t = add_carry(t, carry, c);
  carry = high + c;
  return t;
}
#else
// a + b + carry; carry is 0 or 1 before and after.
SNL_HD constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
  u128 t = (u128)a + b + carry;
  carry = (u64)(t >> 64);
  return (u64)t;
}

// a - b - borrow; borrow is 0 or 1 before and after.
SNL_HD constexpr u64 sub_borrow(u64 a, u64 b, u64& borrow) {
  u128 t = (u128)a - b - borrow;
  borrow = (u64)(t >> 64) & 1;
  return (u64)t;
}

// acc + a * b + carry < 2^128: never overflows.
SNL_HD constexpr u64 mul_add(u64 acc, u64 a, u64 b, u64& carry) {
  u128 t = (u128)a * b + acc + carry;
  carry = (u64)(t >> 64);
  return (u64)t;
}
#endif

// An unsigned integer of N 64-bit limbs, least significant first. An aggregate, so constants are written `{...}`.
template <int N>
struct Int {
  u64 limb[N];

  SNL_HD constexpr bool operator==(const Int& o) const {
    u64 diff = 0;
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) diff |= limb[i] ^ o.limb[i];
    return diff == 0;
  }
  SNL_HD constexpr bool is_zero() const {
    u64 any = 0;
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) any |= limb[i];
    return any == 0;
  }
  SNL_HD constexpr bool bit(int i) const { return (limb[i / 64] >> (i % 64)) & 1; }

  SNL_HD constexpr int bit_length() const {
    int n = 64 * N;
    while (n > 0 && !bit(n - 1)) n--;
    return n;
  }
};

// Bits [offset, offset + width) of a, width < 64; bits beyond the top are 0.
template <int N>
SNL_HD constexpr u64 bits_at(const Int<N>& a, int offset, int width) {
  const int i = offset / 64, shift = offset % 64;
  if (i >= N) return 0;
  u64 word = a.limb[i] >> shift;
  if (shift + width > 64 && i + 1 < N) word |= a.limb[i + 1] << (64 - shift);
  return word & ((u64{1} << width) - 1);
}

// this += b; returns the carry out.
template <int N>
SNL_HD constexpr u64 add_in_place(Int<N>& a, const Int<N>& b) {
  u64 carry = 0;
  SNL_UNROLL_WORDS
  for (int i = 0; i < N; i++) a.limb[i] = add_carry(a.limb[i], b.limb[i], carry);
  return carry;
}

// this -= b; returns the borrow out.
template <int N>
SNL_HD constexpr u64 sub_in_place(Int<N>& a, const Int<N>& b) {
  u64 borrow = 0;
  SNL_UNROLL_WORDS
  for (int i = 0; i < N; i++) a.limb[i] = sub_borrow(a.limb[i], b.limb[i], borrow);
  return borrow;
}

template <int N>
SNL_HD constexpr bool less(const Int<N>& a, const Int<N>& b) {
  Int<N> t = a;
  return sub_in_place(t, b) != 0;
}

template <int N>
SNL_HD constexpr Int<N> shift_right(Int<N> a, int bits) {
  for (; bits > 0; bits--) {
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) a.limb[i] = (a.limb[i] >> 1) | (i + 1 < N ? a.limb[i + 1] << 63 : 0);
  }
  return a;
}

// a / d rounded down, digit by digit; for constants.
template <int N>
constexpr Int<N> divide(const Int<N>& a, u64 d) {
  Int<N> out{};
  u64 rest = 0;
  for (int i = 64 * N; i-- > 0;) {
    rest = 2 * rest + a.bit(i);
    if (rest < d) continue;
    rest -= d;
    out.limb[i / 64] |= u64{1} << (i % 64);
  }
  return out;
}

// An integer from its hexadecimal digits, most significant first: hex<4>("30644e72...").
template <int N, usize Len>
constexpr Int<N> hex(const char (&digits)[Len]) {
  Int<N> out{};
  for (usize i = 0; i + 1 < Len; i++) {
    const char c = digits[Len - 2 - i];
    const u64 v = c <= '9' ? c - '0' : c - 'a' + 10;
    out.limb[i / 16] |= v << (4 * (i % 16));
  }
  return out;
}

}  // namespace SNL_ISA
}  // namespace snarkline
