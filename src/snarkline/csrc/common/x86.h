// Arithmetic modulo p < 2^(64 N - 1) in N = 4 or 6 words, for x86-64 with BMI2 and ADX: mulx leaves the flags alone,
// adcx and adox carry in one flag each, so that the low and the high halves of a row of products are added in two
// independent chains. Ozturk, Guilford, Gopal, "New instructions supporting large integer arithmetic on Intel
// architecture processors" (2012).
//
// In the text t0 ... tN is the accumulator, %[a] and %[b] point to the operands, %[p0] ... is the modulus. A reduction
// ends with t0 = 0, which is the next row's highest word.
#pragma once

#include "int.h"

namespace snarkline {
inline namespace SNL_ISA {

// clang-format off
#define SNL_CLEAR_CARRIES "xorl %k[lo], %k[lo]\n\t"
#define SNL_MUL_ADD(source, low, high) \
  "mulxq " source ", %[lo], %[hi]\n\tadcxq %[lo], %[" low "]\n\tadoxq %[hi], %[" high "]\n\t"
#define SNL_LAST_CARRY(t) "adcq $0, %[" t "]\n\t"
#define SNL_MUL(source, low, high) "mulxq " source ", %[" low "], %[" high "]\n\t"
#define SNL_MUL_CHAIN(source, add, low, high) \
  "mulxq " source ", %[lo], %[" high "]\n\t" add " %[lo], %[" low "]\n\t"
#define SNL_LOAD_FACTOR(source) "movq " source ", %[d]\n\t"
#define SNL_LOAD_QUOTIENT(t0) "movq %[inv], %[d]\n\timulq %[" t0 "], %[d]\n\t"
#define SNL_TRY_SUBTRACT(op, t, p, s) "movq %[" t "], %[" s "]\n\t" op " %[" p "], %[" s "]\n\t"
#define SNL_TAKE(s, t) "cmovncq %[" s "], %[" t "]\n\t"

// t = a * word / t += a * word / t = (t + (t * inv mod 2^64) * p), with t0 = 0 / t -= p unless t < p.
#define SNL_FIRST_ROW_4(word, t0, t1, t2, t3, t4) \
  SNL_LOAD_FACTOR(word) SNL_MUL("(%[a])", t0, t1) SNL_MUL_CHAIN("8(%[a])", "addq", t1, t2) \
  SNL_MUL_CHAIN("16(%[a])", "adcq", t2, t3) SNL_MUL_CHAIN("24(%[a])", "adcq", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_ROW_4(word, t0, t1, t2, t3, t4) \
  SNL_LOAD_FACTOR(word) SNL_CLEAR_CARRIES SNL_MUL_ADD("(%[a])", t0, t1) SNL_MUL_ADD("8(%[a])", t1, t2) \
  SNL_MUL_ADD("16(%[a])", t2, t3) SNL_MUL_ADD("24(%[a])", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_REDUCE_4(t0, t1, t2, t3, t4) \
  SNL_LOAD_QUOTIENT(t0) SNL_CLEAR_CARRIES SNL_MUL_ADD("%[p0]", t0, t1) SNL_MUL_ADD("%[p1]", t1, t2) \
  SNL_MUL_ADD("%[p2]", t2, t3) SNL_MUL_ADD("%[p3]", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_SUBTRACT_4(t0, t1, t2, t3, s0, s1, s2, s3) \
  SNL_TRY_SUBTRACT("subq", t0, "p0", s0) SNL_TRY_SUBTRACT("sbbq", t1, "p1", s1) \
  SNL_TRY_SUBTRACT("sbbq", t2, "p2", s2) SNL_TRY_SUBTRACT("sbbq", t3, "p3", s3) \
  SNL_TAKE(s0, t0) SNL_TAKE(s1, t1) SNL_TAKE(s2, t2) SNL_TAKE(s3, t3)

#define SNL_FIRST_ROW_6(word, t0, t1, t2, t3, t4, t5, t6) \
  SNL_LOAD_FACTOR(word) SNL_MUL("(%[a])", t0, t1) SNL_MUL_CHAIN("8(%[a])", "addq", t1, t2) \
  SNL_MUL_CHAIN("16(%[a])", "adcq", t2, t3) SNL_MUL_CHAIN("24(%[a])", "adcq", t3, t4) \
  SNL_MUL_CHAIN("32(%[a])", "adcq", t4, t5) SNL_MUL_CHAIN("40(%[a])", "adcq", t5, t6) SNL_LAST_CARRY(t6)
#define SNL_ROW_6(word, t0, t1, t2, t3, t4, t5, t6) \
  SNL_LOAD_FACTOR(word) SNL_CLEAR_CARRIES SNL_MUL_ADD("(%[a])", t0, t1) SNL_MUL_ADD("8(%[a])", t1, t2) \
  SNL_MUL_ADD("16(%[a])", t2, t3) SNL_MUL_ADD("24(%[a])", t3, t4) SNL_MUL_ADD("32(%[a])", t4, t5) \
  SNL_MUL_ADD("40(%[a])", t5, t6) SNL_LAST_CARRY(t6)
#define SNL_REDUCE_6(t0, t1, t2, t3, t4, t5, t6) \
  SNL_LOAD_QUOTIENT(t0) SNL_CLEAR_CARRIES SNL_MUL_ADD("%[p0]", t0, t1) SNL_MUL_ADD("%[p1]", t1, t2) \
  SNL_MUL_ADD("%[p2]", t2, t3) SNL_MUL_ADD("%[p3]", t3, t4) SNL_MUL_ADD("%[p4]", t4, t5) \
  SNL_MUL_ADD("%[p5]", t5, t6) SNL_LAST_CARRY(t6)
#define SNL_SUBTRACT_6(t0, t1, t2, t3, t4, t5, s0, s1, s2, s3, s4, s5) \
  SNL_TRY_SUBTRACT("subq", t0, "p0", s0) SNL_TRY_SUBTRACT("sbbq", t1, "p1", s1) \
  SNL_TRY_SUBTRACT("sbbq", t2, "p2", s2) SNL_TRY_SUBTRACT("sbbq", t3, "p3", s3) \
  SNL_TRY_SUBTRACT("sbbq", t4, "p4", s4) SNL_TRY_SUBTRACT("sbbq", t5, "p5", s5) \
  SNL_TAKE(s0, t0) SNL_TAKE(s1, t1) SNL_TAKE(s2, t2) SNL_TAKE(s3, t3) SNL_TAKE(s4, t4) SNL_TAKE(s5, t5)

// t = a + b / t = a - b, borrow kept in s0 as a mask, then t += p & mask.
#define SNL_ADD_WORD(op, offset, t) "movq " offset "(%[a]), %[" t "]\n\t" op " " offset "(%[b]), %[" t "]\n\t"
#define SNL_MASK_WORD(p, s) "andq %[" p "], %[" s "]\n\t"
#define SNL_COPY(from, to) "movq %[" from "], %[" to "]\n\t"
#define SNL_ADD_MASKED(op, s, t) op " %[" s "], %[" t "]\n\t"
#define SNL_ADD_4(first, next) \
  SNL_ADD_WORD(first, "", "t0") SNL_ADD_WORD(next, "8", "t1") SNL_ADD_WORD(next, "16", "t2") SNL_ADD_WORD(next, "24", "t3")
#define SNL_ADD_6(first, next) SNL_ADD_4(first, next) SNL_ADD_WORD(next, "32", "t4") SNL_ADD_WORD(next, "40", "t5")
#define SNL_BORROW_MASK "sbbq %[s0], %[s0]\n\t"
// clang-format on

#define SNL_MODULUS_4 \
  [p0] "m"(F::modulus.limb[0]), [p1] "m"(F::modulus.limb[1]), [p2] "m"(F::modulus.limb[2]), [p3] "m"(F::modulus.limb[3])
#define SNL_MODULUS_6 SNL_MODULUS_4, [p4] "m"(F::modulus.limb[4]), [p5] "m"(F::modulus.limb[5])

// out = a * b / 2^256 mod p. 36.
template <class F>
SNL_HD void mul_x86(Int<4>& out, const Int<4>& first, const Int<4>& second) {
  u64 t0, t1, t2, t3, t4, lo, hi, d;
  const u64 *a = first.limb, *b = second.limb;
  asm(SNL_FIRST_ROW_4("(%[b])", "t0", "t1", "t2", "t3", "t4") SNL_REDUCE_4("t0", "t1", "t2", "t3", "t4")
          SNL_ROW_4("8(%[b])", "t1", "t2", "t3", "t4", "t0") SNL_REDUCE_4("t1", "t2", "t3", "t4", "t0")
              SNL_ROW_4("16(%[b])", "t2", "t3", "t4", "t0", "t1") SNL_REDUCE_4("t2", "t3", "t4", "t0", "t1")
                  SNL_ROW_4("24(%[b])", "t3", "t4", "t0", "t1", "t2") SNL_REDUCE_4("t3", "t4", "t0", "t1", "t2")
                      SNL_SUBTRACT_4("t4", "t0", "t1", "t2", "t3", "lo", "hi", "d")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [lo] "=&r"(lo), [hi] "=&r"(hi),
        [d] "=&d"(d)
      : [a] "r"(a), [b] "r"(b), "m"(first), "m"(second), [inv] "m"(F::inv), SNL_MODULUS_4
      : "cc");
  out = {{t4, t0, t1, t2}};
}

// out = a * b / 2^384 mod p. 78. About 1.5 kB of code: not worth inlining.
template <class F>
__attribute__((noinline)) void mul_x86(Int<6>& out, const Int<6>& first, const Int<6>& second) {
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi, d;
  const u64 *a = first.limb, *b = second.limb;
  asm(SNL_FIRST_ROW_6("(%[b])", "t0", "t1", "t2", "t3", "t4", "t5", "t6") SNL_REDUCE_6(
          "t0", "t1", "t2", "t3", "t4", "t5", "t6") SNL_ROW_6("8(%[b])", "t1", "t2", "t3", "t4", "t5", "t6", "t0")
          SNL_REDUCE_6("t1", "t2", "t3", "t4", "t5", "t6", "t0")
              SNL_ROW_6("16(%[b])", "t2", "t3", "t4", "t5", "t6", "t0", "t1")
                  SNL_REDUCE_6("t2", "t3", "t4", "t5", "t6", "t0", "t1")
                      SNL_ROW_6("24(%[b])", "t3", "t4", "t5", "t6", "t0", "t1", "t2")
                          SNL_REDUCE_6("t3", "t4", "t5", "t6", "t0", "t1", "t2")
                              SNL_ROW_6("32(%[b])", "t4", "t5", "t6", "t0", "t1", "t2", "t3")
                                  SNL_REDUCE_6("t4", "t5", "t6", "t0", "t1", "t2", "t3")
                                      SNL_ROW_6("40(%[b])", "t5", "t6", "t0", "t1", "t2", "t3", "t4")
                                          SNL_REDUCE_6("t5", "t6", "t0", "t1", "t2", "t3", "t4") SNL_SUBTRACT_6(
                                              "t6", "t0", "t1", "t2", "t3", "t4", "t5", "lo", "hi", "d", "a", "b")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5), [t6] "=&r"(t6),
        [lo] "=&r"(lo), [hi] "=&r"(hi), [d] "=&d"(d), [a] "+&r"(a), [b] "+&r"(b)
      : "m"(first), "m"(second), [inv] "m"(F::inv), SNL_MODULUS_6
      : "cc");
  out = {{t6, t0, t1, t2, t3, t4}};
}

// The operand of a squaring. Row i of the square is a[i] times (a[i], 2 a[i + 1], ...): the doubled words carry their
// top bits into the next one, but for the row's first. Words: a[0 ... N), once[i] = 2 a[i] mod 2^64, both[i] = once[i]
// + (top bit of a[i - 1]).
template <int N>
struct SquareOperand {
  u64 a[N], once[N], both[N];

  SNL_HD explicit SquareOperand(const Int<N>& x) {
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) {
      a[i] = x.limb[i];
      once[i] = x.limb[i] << 1;
      both[i] = once[i] | (i > 0 ? x.limb[i - 1] >> 63 : 0);
    }
  }
};

// out = a^2 / 2^256 mod p, for p < 2^254.7: between the rows t < 3p + 2^64. 30.
template <class F>
SNL_HD void sqr_x86(Int<4>& out, const Int<4>& x) {
  static_assert(F::bits <= 254);
  const SquareOperand<4> operand(x);
  u64 t0, t1, t2, t3, t4, lo, hi, d;
  asm(SNL_LOAD_FACTOR("(%[a])") SNL_MUL("(%[a])", "t0", "t1") SNL_MUL_CHAIN("40(%[a])", "addq", "t1", "t2")
          SNL_MUL_CHAIN("80(%[a])", "adcq", "t2", "t3") SNL_MUL_CHAIN("88(%[a])", "adcq", "t3", "t4")
              SNL_LAST_CARRY("t4") SNL_REDUCE_4("t0", "t1", "t2", "t3", "t4") SNL_LOAD_FACTOR("8(%[a])")
                  SNL_CLEAR_CARRIES SNL_MUL_ADD("8(%[a])", "t2", "t3") SNL_MUL_ADD("48(%[a])", "t3", "t4")
                      SNL_MUL_ADD("88(%[a])", "t4", "t0") SNL_LAST_CARRY("t0")
                          SNL_REDUCE_4("t1", "t2", "t3", "t4", "t0") SNL_LOAD_FACTOR("16(%[a])")
                              SNL_CLEAR_CARRIES SNL_MUL_ADD("16(%[a])", "t4", "t0") SNL_MUL_ADD("56(%[a])", "t0", "t1")
                                  SNL_LAST_CARRY("t1") SNL_REDUCE_4("t2", "t3", "t4", "t0", "t1")
                                      SNL_LOAD_FACTOR("24(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("24(%[a])", "t1", "t2")
                                          SNL_LAST_CARRY("t2") SNL_REDUCE_4("t3", "t4", "t0", "t1", "t2")
                                              SNL_SUBTRACT_4("t4", "t0", "t1", "t2", "t3", "lo", "hi", "d")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [lo] "=&r"(lo), [hi] "=&r"(hi),
        [d] "=&d"(d)
      : [a] "r"(operand.a), "m"(operand), [inv] "m"(F::inv), SNL_MODULUS_4
      : "cc");
  out = {{t4, t0, t1, t2}};
}

// out = a^2 / 2^384 mod p, for p < 2^382: between the rows t < 3p + 2^64. 63.
template <class F>
__attribute__((noinline)) void sqr_x86(Int<6>& out, const Int<6>& x) {
  static_assert(F::bits <= 382);
  const SquareOperand<6> operand(x);
  const u64 *a = operand.a, *b;
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi, d;
  asm(SNL_LOAD_FACTOR("(%[a])") SNL_MUL("(%[a])", "t0", "t1") SNL_MUL_CHAIN("56(%[a])", "addq", "t1", "t2")
          SNL_MUL_CHAIN("112(%[a])", "adcq", "t2", "t3") SNL_MUL_CHAIN("120(%[a])", "adcq", "t3", "t4") SNL_MUL_CHAIN(
              "128(%[a])", "adcq", "t4", "t5") SNL_MUL_CHAIN("136(%[a])", "adcq", "t5", "t6") SNL_LAST_CARRY("t6")
              SNL_REDUCE_6("t0", "t1", "t2", "t3", "t4", "t5", "t6") SNL_LOAD_FACTOR("8(%[a])")
                  SNL_CLEAR_CARRIES SNL_MUL_ADD("8(%[a])", "t2", "t3") SNL_MUL_ADD("64(%[a])", "t3", "t4") SNL_MUL_ADD(
                      "120(%[a])", "t4", "t5") SNL_MUL_ADD("128(%[a])", "t5", "t6") SNL_MUL_ADD("136(%[a])", "t6", "t0")
                      SNL_LAST_CARRY("t0") SNL_REDUCE_6("t1", "t2", "t3", "t4", "t5", "t6", "t0")
                          SNL_LOAD_FACTOR("16(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("16(%[a])", "t4", "t5") SNL_MUL_ADD(
                              "72(%[a])", "t5", "t6") SNL_MUL_ADD("128(%[a])", "t6", "t0")
                              SNL_MUL_ADD("136(%[a])", "t0", "t1") SNL_LAST_CARRY("t1") SNL_REDUCE_6(
                                  "t2", "t3", "t4", "t5", "t6", "t0", "t1") SNL_LOAD_FACTOR("24(%[a])")
                                  SNL_CLEAR_CARRIES SNL_MUL_ADD("24(%[a])", "t6", "t0") SNL_MUL_ADD(
                                      "80(%[a])", "t0", "t1") SNL_MUL_ADD("136(%[a])", "t1", "t2") SNL_LAST_CARRY("t2")
                                      SNL_REDUCE_6("t3", "t4", "t5", "t6", "t0", "t1", "t2") SNL_LOAD_FACTOR("32(%[a])")
                                          SNL_CLEAR_CARRIES SNL_MUL_ADD("32(%[a])", "t1", "t2")
                                              SNL_MUL_ADD("88(%[a])", "t2", "t3") SNL_LAST_CARRY("t3") SNL_REDUCE_6(
                                                  "t4", "t5", "t6", "t0", "t1", "t2", "t3") SNL_LOAD_FACTOR("40(%[a])")
                                                  SNL_CLEAR_CARRIES SNL_MUL_ADD("40(%[a])", "t3", "t4")
                                                      SNL_LAST_CARRY("t4")
                                                          SNL_REDUCE_6("t5", "t6", "t0", "t1", "t2", "t3", "t4")
                                                              SNL_SUBTRACT_6("t6", "t0", "t1", "t2", "t3", "t4", "t5",
                                                                             "lo", "hi", "d", "a", "b")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5), [t6] "=&r"(t6),
        [lo] "=&r"(lo), [hi] "=&r"(hi), [d] "=&d"(d), [a] "+&r"(a), [b] "=&r"(b)
      : "m"(operand), [inv] "m"(F::inv), SNL_MODULUS_6
      : "cc");
  out = {{t6, t0, t1, t2, t3, t4}};
}

// out = a + b mod p.
template <class F>
SNL_HD void add_x86(Int<4>& out, const Int<4>& first, const Int<4>& second) {
  u64 t0, t1, t2, t3, s0, s1, s2, s3;
  asm(SNL_ADD_4("addq", "adcq") SNL_SUBTRACT_4("t0", "t1", "t2", "t3", "s0", "s1", "s2", "s3")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
        [s3] "=&r"(s3)
      : [a] "r"(first.limb), [b] "r"(second.limb), "m"(first), "m"(second), SNL_MODULUS_4
      : "cc");
  out = {{t0, t1, t2, t3}};
}

template <class F>
SNL_HD void add_x86(Int<6>& out, const Int<6>& first, const Int<6>& second) {
  u64 t0, t1, t2, t3, t4, t5, s0, s1, s2, s3;
  const u64 *a = first.limb, *b = second.limb;
  asm(SNL_ADD_6("addq", "adcq") SNL_SUBTRACT_6("t0", "t1", "t2", "t3", "t4", "t5", "s0", "s1", "s2", "s3", "a", "b")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5), [s0] "=&r"(s0),
        [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [a] "+&r"(a), [b] "+&r"(b)
      : "m"(first), "m"(second), SNL_MODULUS_6
      : "cc");
  out = {{t0, t1, t2, t3, t4, t5}};
}

// out = a - b mod p.
template <class F>
SNL_HD void sub_x86(Int<4>& out, const Int<4>& first, const Int<4>& second) {
  u64 t0, t1, t2, t3, s0, s1, s2, s3;
  asm(SNL_ADD_4("subq", "sbbq") SNL_BORROW_MASK SNL_COPY("s0", "s1") SNL_COPY("s0", "s2") SNL_COPY("s0", "s3")
          SNL_MASK_WORD("p0", "s0") SNL_MASK_WORD("p1", "s1") SNL_MASK_WORD("p2", "s2") SNL_MASK_WORD("p3", "s3")
              SNL_ADD_MASKED("addq", "s0", "t0") SNL_ADD_MASKED("adcq", "s1", "t1") SNL_ADD_MASKED("adcq", "s2", "t2")
                  SNL_ADD_MASKED("adcq", "s3", "t3")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
        [s3] "=&r"(s3)
      : [a] "r"(first.limb), [b] "r"(second.limb), "m"(first), "m"(second), SNL_MODULUS_4
      : "cc");
  out = {{t0, t1, t2, t3}};
}

template <class F>
SNL_HD void sub_x86(Int<6>& out, const Int<6>& first, const Int<6>& second) {
  u64 t0, t1, t2, t3, t4, t5, s0, s1, s2, s3;
  const u64 *a = first.limb, *b = second.limb;
  asm(SNL_ADD_6("subq", "sbbq") SNL_BORROW_MASK SNL_COPY("s0", "s1") SNL_COPY("s0", "s2") SNL_COPY("s0", "s3") SNL_COPY(
          "s0", "a") SNL_COPY("s0", "b") SNL_MASK_WORD("p0", "s0") SNL_MASK_WORD("p1", "s1") SNL_MASK_WORD("p2", "s2")
          SNL_MASK_WORD("p3", "s3") SNL_MASK_WORD("p4", "a") SNL_MASK_WORD("p5", "b") SNL_ADD_MASKED("addq", "s0", "t0")
              SNL_ADD_MASKED("adcq", "s1", "t1") SNL_ADD_MASKED("adcq", "s2", "t2") SNL_ADD_MASKED("adcq", "s3", "t3")
                  SNL_ADD_MASKED("adcq", "a", "t4") SNL_ADD_MASKED("adcq", "b", "t5")
      : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4), [t5] "=&r"(t5), [s0] "=&r"(s0),
        [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [a] "+&r"(a), [b] "+&r"(b)
      : "m"(first), "m"(second), SNL_MODULUS_6
      : "cc");
  out = {{t0, t1, t2, t3, t4, t5}};
}

}  // namespace SNL_ISA
}  // namespace snarkline
