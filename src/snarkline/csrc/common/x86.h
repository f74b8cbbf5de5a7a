// Arithmetic modulo p in N = 4 or 6 words, for x86-64 with BMI2 and ADX: mulx leaves the flags alone, adcx and adox
// carry in one flag each, so that the low and the high halves of a row of products are added in two independent chains.
// Ozturk, Guilford, Gopal, Feghali, "New instructions supporting large integer arithmetic on Intel architecture
// processors" (Intel, 2012). Operands and results are in [0, p). Costs are counts of mulx.
#pragma once

#include "int.h"

namespace snarkline {
inline namespace SNL_ISA {

// The text below is written in these pieces. t0 ... tN is the accumulator, lo, hi and x (rdx) are scratch. A reduction
// ends with its lowest word 0, which is the highest word of the next row: row i of a product names the accumulator by
// SNL_Tn_i, its words in rotated order.
// clang-format off
#define SNL_T4_0 "t0", "t1", "t2", "t3", "t4"
#define SNL_T4_1 "t1", "t2", "t3", "t4", "t0"
#define SNL_T4_2 "t2", "t3", "t4", "t0", "t1"
#define SNL_T4_3 "t3", "t4", "t0", "t1", "t2"
#define SNL_T6_0 "t0", "t1", "t2", "t3", "t4", "t5", "t6"
#define SNL_T6_1 "t1", "t2", "t3", "t4", "t5", "t6", "t0"
#define SNL_T6_2 "t2", "t3", "t4", "t5", "t6", "t0", "t1"
#define SNL_T6_3 "t3", "t4", "t5", "t6", "t0", "t1", "t2"
#define SNL_T6_4 "t4", "t5", "t6", "t0", "t1", "t2", "t3"
#define SNL_T6_5 "t5", "t6", "t0", "t1", "t2", "t3", "t4"

#define SNL_CLEAR_CARRIES "xorl %k[lo], %k[lo]\n\t"
#define SNL_LAST_CARRY(t) "adcq $0, %[" t "]\n\t"
#define SNL_FACTOR(source) "movq " source ", %[x]\n\t"
#define SNL_QUOTIENT(t0) "movq %[inv], %[x]\n\timulq %[" t0 "], %[x]\n\t"
#define SNL_MUL(source, low, high) "mulxq " source ", %[" low "], %[" high "]\n\t"
#define SNL_MUL_CHAIN(source, add, low, high) \
  "mulxq " source ", %[lo], %[" high "]\n\t" add " %[lo], %[" low "]\n\t"
#define SNL_MUL_ADD(source, low, high) \
  "mulxq " source ", %[lo], %[hi]\n\tadcxq %[lo], %[" low "]\n\tadoxq %[hi], %[" high "]\n\t"
#define SNL_TRY_SUBTRACT(op, t, p, s) "movq %[" t "], %[" s "]\n\t" op " %[" p "], %[" s "]\n\t"
#define SNL_TAKE(s, t) "cmovncq %[" s "], %[" t "]\n\t"

// t = f * word.
#define SNL_FIRST_ROW_4(f, word, ...) SNL_FIRST_ROW_4_(f, word, __VA_ARGS__)
#define SNL_FIRST_ROW_6(f, word, ...) SNL_FIRST_ROW_6_(f, word, __VA_ARGS__)
#define SNL_FIRST_ROW_4_(f, word, t0, t1, t2, t3, t4) \
  SNL_FACTOR(word) SNL_MUL("(%[" f "])", t0, t1) \
  SNL_MUL_CHAIN("8(%[" f "])", "addq", t1, t2) SNL_MUL_CHAIN("16(%[" f "])", "adcq", t2, t3) \
  SNL_MUL_CHAIN("24(%[" f "])", "adcq", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_FIRST_ROW_6_(f, word, t0, t1, t2, t3, t4, t5, t6) \
  SNL_FACTOR(word) SNL_MUL("(%[" f "])", t0, t1) \
  SNL_MUL_CHAIN("8(%[" f "])", "addq", t1, t2) SNL_MUL_CHAIN("16(%[" f "])", "adcq", t2, t3) \
  SNL_MUL_CHAIN("24(%[" f "])", "adcq", t3, t4) SNL_MUL_CHAIN("32(%[" f "])", "adcq", t4, t5) \
  SNL_MUL_CHAIN("40(%[" f "])", "adcq", t5, t6) SNL_LAST_CARRY(t6)

// t += f * word.
#define SNL_ROW_4(f, word, ...) SNL_ROW_4_(f, word, __VA_ARGS__)
#define SNL_ROW_6(f, word, ...) SNL_ROW_6_(f, word, __VA_ARGS__)
#define SNL_ROW_4_(f, word, t0, t1, t2, t3, t4) \
  SNL_FACTOR(word) SNL_CLEAR_CARRIES SNL_MUL_ADD("(%[" f "])", t0, t1) \
  SNL_MUL_ADD("8(%[" f "])", t1, t2) SNL_MUL_ADD("16(%[" f "])", t2, t3) \
  SNL_MUL_ADD("24(%[" f "])", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_ROW_6_(f, word, t0, t1, t2, t3, t4, t5, t6) \
  SNL_FACTOR(word) SNL_CLEAR_CARRIES SNL_MUL_ADD("(%[" f "])", t0, t1) \
  SNL_MUL_ADD("8(%[" f "])", t1, t2) SNL_MUL_ADD("16(%[" f "])", t2, t3) \
  SNL_MUL_ADD("24(%[" f "])", t3, t4) SNL_MUL_ADD("32(%[" f "])", t4, t5) \
  SNL_MUL_ADD("40(%[" f "])", t5, t6) SNL_LAST_CARRY(t6)

// t += (t * inv mod 2^64) * p, which makes t0 = 0.
#define SNL_REDUCE_4(...) SNL_REDUCE_4_(__VA_ARGS__)
#define SNL_REDUCE_6(...) SNL_REDUCE_6_(__VA_ARGS__)
#define SNL_REDUCE_4_(t0, t1, t2, t3, t4) \
  SNL_QUOTIENT(t0) SNL_CLEAR_CARRIES \
  SNL_MUL_ADD("%[p0]", t0, t1) SNL_MUL_ADD("%[p1]", t1, t2) SNL_MUL_ADD("%[p2]", t2, t3) \
  SNL_MUL_ADD("%[p3]", t3, t4) SNL_LAST_CARRY(t4)
#define SNL_REDUCE_6_(t0, t1, t2, t3, t4, t5, t6) \
  SNL_QUOTIENT(t0) SNL_CLEAR_CARRIES \
  SNL_MUL_ADD("%[p0]", t0, t1) SNL_MUL_ADD("%[p1]", t1, t2) SNL_MUL_ADD("%[p2]", t2, t3) \
  SNL_MUL_ADD("%[p3]", t3, t4) SNL_MUL_ADD("%[p4]", t4, t5) SNL_MUL_ADD("%[p5]", t5, t6) SNL_LAST_CARRY(t6)

// t -= p unless t < p; s is scratch.
#define SNL_SUBTRACT_4(t0, t1, t2, t3, s0, s1, s2, s3) \
  SNL_TRY_SUBTRACT("subq", t0, "p0", s0) SNL_TRY_SUBTRACT("sbbq", t1, "p1", s1) \
  SNL_TRY_SUBTRACT("sbbq", t2, "p2", s2) SNL_TRY_SUBTRACT("sbbq", t3, "p3", s3) \
  SNL_TAKE(s0, t0) SNL_TAKE(s1, t1) SNL_TAKE(s2, t2) SNL_TAKE(s3, t3)
#define SNL_SUBTRACT_6(t0, t1, t2, t3, t4, t5, s0, s1, s2, s3, s4, s5) \
  SNL_TRY_SUBTRACT("subq", t0, "p0", s0) SNL_TRY_SUBTRACT("sbbq", t1, "p1", s1) \
  SNL_TRY_SUBTRACT("sbbq", t2, "p2", s2) SNL_TRY_SUBTRACT("sbbq", t3, "p3", s3) \
  SNL_TRY_SUBTRACT("sbbq", t4, "p4", s4) SNL_TRY_SUBTRACT("sbbq", t5, "p5", s5) \
  SNL_TAKE(s0, t0) SNL_TAKE(s1, t1) SNL_TAKE(s2, t2) SNL_TAKE(s3, t3) SNL_TAKE(s4, t4) SNL_TAKE(s5, t5)

// t = a + b or a - b, by addq, adcq or subq, sbbq.
#define SNL_ADD_WORD(op, offset, t) "movq " offset "(%[a]), %[" t "]\n\t" op " " offset "(%[b]), %[" t "]\n\t"
#define SNL_ADD_4(op, next) \
  SNL_ADD_WORD(op, "", "t0") SNL_ADD_WORD(next, "8", "t1") SNL_ADD_WORD(next, "16", "t2") SNL_ADD_WORD(next, "24", "t3")
#define SNL_ADD_6(op, next) SNL_ADD_4(op, next) SNL_ADD_WORD(next, "32", "t4") SNL_ADD_WORD(next, "40", "t5")

// t += p if the carry is set: s is p under a mask.
#define SNL_COPY(from, to) "movq %[" from "], %[" to "]\n\t"
#define SNL_MASK(p, s) "andq %[" p "], %[" s "]\n\t"
#define SNL_ADD_MASKED(op, s, t) op " %[" s "], %[" t "]\n\t"
#define SNL_RESTORE_4(s0, s1, s2, s3) \
  "sbbq %[" s0 "], %[" s0 "]\n\t" SNL_COPY(s0, s1) SNL_COPY(s0, s2) SNL_COPY(s0, s3) \
  SNL_MASK("p0", s0) SNL_MASK("p1", s1) SNL_MASK("p2", s2) SNL_MASK("p3", s3) \
  SNL_ADD_MASKED("addq", s0, "t0") SNL_ADD_MASKED("adcq", s1, "t1") SNL_ADD_MASKED("adcq", s2, "t2") \
  SNL_ADD_MASKED("adcq", s3, "t3")
#define SNL_RESTORE_6(s0, s1, s2, s3, s4, s5) \
  "sbbq %[" s0 "], %[" s0 "]\n\t" SNL_COPY(s0, s1) SNL_COPY(s0, s2) SNL_COPY(s0, s3) SNL_COPY(s0, s4) SNL_COPY(s0, s5) \
  SNL_MASK("p0", s0) SNL_MASK("p1", s1) SNL_MASK("p2", s2) SNL_MASK("p3", s3) SNL_MASK("p4", s4) SNL_MASK("p5", s5) \
  SNL_ADD_MASKED("addq", s0, "t0") SNL_ADD_MASKED("adcq", s1, "t1") SNL_ADD_MASKED("adcq", s2, "t2") \
  SNL_ADD_MASKED("adcq", s3, "t3") SNL_ADD_MASKED("adcq", s4, "t4") SNL_ADD_MASKED("adcq", s5, "t5")

#define SNL_MODULUS_4 \
  [p0] "m"(F::modulus.limb[0]), [p1] "m"(F::modulus.limb[1]), [p2] "m"(F::modulus.limb[2]), [p3] "m"(F::modulus.limb[3])
#define SNL_MODULUS_6 SNL_MODULUS_4, [p4] "m"(F::modulus.limb[4]), [p5] "m"(F::modulus.limb[5])
#define SNL_OUT_4 [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3)
#define SNL_OUT_6 SNL_OUT_4, [t4] "=&r"(t4), [t5] "=&r"(t5)
#define SNL_SCRATCH [lo] "=&r"(lo), [hi] "=&r"(hi), [x] "=&d"(x)

// out = a * b / 2^256 mod p, for p < 2^255: between the rows t < 2p. 36.
template <class F>
SNL_HD void mul_x86(Int<4>& out, const Int<4>& a, const Int<4>& b) {
  static_assert(F::bits <= 255);
  u64 t0, t1, t2, t3, t4, lo, hi, x;
  asm(SNL_FIRST_ROW_4("a", "(%[b])", SNL_T4_0) SNL_REDUCE_4(SNL_T4_0)
      SNL_ROW_4("a", "8(%[b])", SNL_T4_1) SNL_REDUCE_4(SNL_T4_1)
      SNL_ROW_4("a", "16(%[b])", SNL_T4_2) SNL_REDUCE_4(SNL_T4_2)
      SNL_ROW_4("a", "24(%[b])", SNL_T4_3) SNL_REDUCE_4(SNL_T4_3)
      SNL_SUBTRACT_4("t4", "t0", "t1", "t2", "t3", "lo", "hi", "x")
      : SNL_OUT_4, [t4] "=&r"(t4), SNL_SCRATCH
      : [a] "r"(a.limb), [b] "r"(b.limb), "m"(a), "m"(b), [inv] "m"(F::inv), SNL_MODULUS_4
      : "cc");
  out = {{t4, t0, t1, t2}};
}

// The same for 2^384 and p < 2^383. 78, in 1.5 kB of code: not worth inlining.
template <class F>
__attribute__((noinline)) void mul_x86(Int<6>& out, const Int<6>& a, const Int<6>& b) {
  static_assert(F::bits <= 383);
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi, x;
  const u64 *pa = a.limb, *pb = b.limb;
  asm(SNL_FIRST_ROW_6("a", "(%[b])", SNL_T6_0) SNL_REDUCE_6(SNL_T6_0)
      SNL_ROW_6("a", "8(%[b])", SNL_T6_1) SNL_REDUCE_6(SNL_T6_1)
      SNL_ROW_6("a", "16(%[b])", SNL_T6_2) SNL_REDUCE_6(SNL_T6_2)
      SNL_ROW_6("a", "24(%[b])", SNL_T6_3) SNL_REDUCE_6(SNL_T6_3)
      SNL_ROW_6("a", "32(%[b])", SNL_T6_4) SNL_REDUCE_6(SNL_T6_4)
      SNL_ROW_6("a", "40(%[b])", SNL_T6_5) SNL_REDUCE_6(SNL_T6_5)
      SNL_SUBTRACT_6("t6", "t0", "t1", "t2", "t3", "t4", "t5", "lo", "hi", "x", "a", "b")
      : SNL_OUT_6, [t6] "=&r"(t6), SNL_SCRATCH, [a] "+&r"(pa), [b] "+&r"(pb)
      : [inv] "m"(F::inv), SNL_MODULUS_6
      : "cc", "memory");
  out = {{t6, t0, t1, t2, t3, t4}};
}

// out = (a * b + c * d) / 2^256 mod p, for 3p < 2^256: between the rows t < 3p, and at the end t < p + 2p^2 / 2^256 < 2p.
// 52, where two products and a sum take 72.
template <class F>
SNL_HD void dot_x86(Int<4>& out, const Int<4>& a, const Int<4>& b, const Int<4>& c, const Int<4>& d) {
  static_assert(F::bits <= 254);
  u64 t0, t1, t2, t3, t4, lo, hi, x;
  asm(SNL_FIRST_ROW_4("a", "(%[b])", SNL_T4_0) SNL_ROW_4("c", "(%[d])", SNL_T4_0) SNL_REDUCE_4(SNL_T4_0)
      SNL_ROW_4("a", "8(%[b])", SNL_T4_1) SNL_ROW_4("c", "8(%[d])", SNL_T4_1) SNL_REDUCE_4(SNL_T4_1)
      SNL_ROW_4("a", "16(%[b])", SNL_T4_2) SNL_ROW_4("c", "16(%[d])", SNL_T4_2) SNL_REDUCE_4(SNL_T4_2)
      SNL_ROW_4("a", "24(%[b])", SNL_T4_3) SNL_ROW_4("c", "24(%[d])", SNL_T4_3) SNL_REDUCE_4(SNL_T4_3)
      SNL_SUBTRACT_4("t4", "t0", "t1", "t2", "t3", "lo", "hi", "x")
      : SNL_OUT_4, [t4] "=&r"(t4), SNL_SCRATCH
      : [a] "r"(a.limb), [b] "r"(b.limb), [c] "r"(c.limb), [d] "r"(d.limb), "m"(a), "m"(b), "m"(c), "m"(d),
        [inv] "m"(F::inv), SNL_MODULUS_4
      : "cc");
  out = {{t4, t0, t1, t2}};
}

// The same for 2^384 and 3p < 2^384. 114, where two products and a sum take 156.
template <class F>
__attribute__((noinline)) void dot_x86(Int<6>& out, const Int<6>& a, const Int<6>& b, const Int<6>& c, const Int<6>& d) {
  static_assert(F::bits <= 382);
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi, x;
  const u64 *pa = a.limb, *pb = b.limb;
  asm(SNL_FIRST_ROW_6("a", "(%[b])", SNL_T6_0) SNL_ROW_6("c", "(%[d])", SNL_T6_0) SNL_REDUCE_6(SNL_T6_0)
      SNL_ROW_6("a", "8(%[b])", SNL_T6_1) SNL_ROW_6("c", "8(%[d])", SNL_T6_1) SNL_REDUCE_6(SNL_T6_1)
      SNL_ROW_6("a", "16(%[b])", SNL_T6_2) SNL_ROW_6("c", "16(%[d])", SNL_T6_2) SNL_REDUCE_6(SNL_T6_2)
      SNL_ROW_6("a", "24(%[b])", SNL_T6_3) SNL_ROW_6("c", "24(%[d])", SNL_T6_3) SNL_REDUCE_6(SNL_T6_3)
      SNL_ROW_6("a", "32(%[b])", SNL_T6_4) SNL_ROW_6("c", "32(%[d])", SNL_T6_4) SNL_REDUCE_6(SNL_T6_4)
      SNL_ROW_6("a", "40(%[b])", SNL_T6_5) SNL_ROW_6("c", "40(%[d])", SNL_T6_5) SNL_REDUCE_6(SNL_T6_5)
      SNL_SUBTRACT_6("t6", "t0", "t1", "t2", "t3", "t4", "t5", "lo", "hi", "x", "a", "b")
      : SNL_OUT_6, [t6] "=&r"(t6), SNL_SCRATCH, [a] "+&r"(pa), [b] "+&r"(pb)
      : [c] "r"(c.limb), [d] "r"(d.limb), [inv] "m"(F::inv), SNL_MODULUS_6
      : "cc", "memory");
  out = {{t6, t0, t1, t2, t3, t4}};
}

// The operand of a squaring. Row i of the square is a[i] times (a[i], 2 a[i + 1], 2 a[i + 2], ...), where 2 a[j] takes in
// the top bit of the word below it unless that is a[i]: once[j] = 2 a[j] mod 2^64, both[j] = once[j] + (top bit of
// a[j - 1]). In the text, at byte 8 j, 8 (N + j) and 8 (2 N + j).
template <int N>
struct SquareOperand {
  u64 a[N], once[N], both[N];

  SNL_HD explicit SquareOperand(const Int<N>& x) {
    SNL_UNROLL_WORDS
    for (int i = 0; i < N; i++) {
      a[i] = x.limb[i];
      once[i] = x.limb[i] << 1;
      both[i] = once[i] | (i > 0 ? x.limb[i - 1] >> 63 : 0);
    }
  }
};

// out = a^2 / 2^256 mod p, for 3p + 2^192 < 2^256: between the rows t < 3p + 2^192. 30.
template <class F>
SNL_HD void sqr_x86(Int<4>& out, const Int<4>& a) {
  static_assert(F::bits <= 254);
  const SquareOperand<4> operand(a);
  u64 t0, t1, t2, t3, t4, lo, hi, x;
  asm(SNL_FACTOR("(%[a])") SNL_MUL("(%[a])", "t0", "t1") SNL_MUL_CHAIN("40(%[a])", "addq", "t1", "t2")
        SNL_MUL_CHAIN("80(%[a])", "adcq", "t2", "t3") SNL_MUL_CHAIN("88(%[a])", "adcq", "t3", "t4")
        SNL_LAST_CARRY("t4") SNL_REDUCE_4(SNL_T4_0)
      SNL_FACTOR("8(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("8(%[a])", "t2", "t3") SNL_MUL_ADD("48(%[a])", "t3", "t4")
        SNL_MUL_ADD("88(%[a])", "t4", "t0") SNL_LAST_CARRY("t0") SNL_REDUCE_4(SNL_T4_1)
      SNL_FACTOR("16(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("16(%[a])", "t4", "t0") SNL_MUL_ADD("56(%[a])", "t0", "t1")
        SNL_LAST_CARRY("t1") SNL_REDUCE_4(SNL_T4_2)
      SNL_FACTOR("24(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("24(%[a])", "t1", "t2") SNL_LAST_CARRY("t2")
        SNL_REDUCE_4(SNL_T4_3)
      SNL_SUBTRACT_4("t4", "t0", "t1", "t2", "t3", "lo", "hi", "x")
      : SNL_OUT_4, [t4] "=&r"(t4), SNL_SCRATCH
      : [a] "r"(operand.a), "m"(operand), [inv] "m"(F::inv), SNL_MODULUS_4
      : "cc");
  out = {{t4, t0, t1, t2}};
}

// The same for 2^384 and 3p + 2^320 < 2^384. 63.
template <class F>
__attribute__((noinline)) void sqr_x86(Int<6>& out, const Int<6>& a) {
  static_assert(F::bits <= 382);
  const SquareOperand<6> operand(a);
  const u64 *pa = operand.a, *pb;
  u64 t0, t1, t2, t3, t4, t5, t6, lo, hi, x;
  asm(SNL_FACTOR("(%[a])") SNL_MUL("(%[a])", "t0", "t1") SNL_MUL_CHAIN("56(%[a])", "addq", "t1", "t2")
        SNL_MUL_CHAIN("112(%[a])", "adcq", "t2", "t3") SNL_MUL_CHAIN("120(%[a])", "adcq", "t3", "t4")
        SNL_MUL_CHAIN("128(%[a])", "adcq", "t4", "t5") SNL_MUL_CHAIN("136(%[a])", "adcq", "t5", "t6")
        SNL_LAST_CARRY("t6") SNL_REDUCE_6(SNL_T6_0)
      SNL_FACTOR("8(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("8(%[a])", "t2", "t3") SNL_MUL_ADD("64(%[a])", "t3", "t4")
        SNL_MUL_ADD("120(%[a])", "t4", "t5") SNL_MUL_ADD("128(%[a])", "t5", "t6") SNL_MUL_ADD("136(%[a])", "t6", "t0")
        SNL_LAST_CARRY("t0") SNL_REDUCE_6(SNL_T6_1)
      SNL_FACTOR("16(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("16(%[a])", "t4", "t5") SNL_MUL_ADD("72(%[a])", "t5", "t6")
        SNL_MUL_ADD("128(%[a])", "t6", "t0") SNL_MUL_ADD("136(%[a])", "t0", "t1") SNL_LAST_CARRY("t1")
        SNL_REDUCE_6(SNL_T6_2)
      SNL_FACTOR("24(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("24(%[a])", "t6", "t0") SNL_MUL_ADD("80(%[a])", "t0", "t1")
        SNL_MUL_ADD("136(%[a])", "t1", "t2") SNL_LAST_CARRY("t2") SNL_REDUCE_6(SNL_T6_3)
      SNL_FACTOR("32(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("32(%[a])", "t1", "t2") SNL_MUL_ADD("88(%[a])", "t2", "t3")
        SNL_LAST_CARRY("t3") SNL_REDUCE_6(SNL_T6_4)
      SNL_FACTOR("40(%[a])") SNL_CLEAR_CARRIES SNL_MUL_ADD("40(%[a])", "t3", "t4") SNL_LAST_CARRY("t4")
        SNL_REDUCE_6(SNL_T6_5)
      SNL_SUBTRACT_6("t6", "t0", "t1", "t2", "t3", "t4", "t5", "lo", "hi", "x", "a", "b")
      : SNL_OUT_6, [t6] "=&r"(t6), SNL_SCRATCH, [a] "+&r"(pa), [b] "=&r"(pb)
      : [inv] "m"(F::inv), SNL_MODULUS_6
      : "cc", "memory");
  out = {{t6, t0, t1, t2, t3, t4}};
}

// out = a + b mod p.
template <class F>
SNL_HD void add_x86(Int<4>& out, const Int<4>& a, const Int<4>& b) {
  u64 t0, t1, t2, t3, s0, s1, s2, s3;
  asm(SNL_ADD_4("addq", "adcq") SNL_SUBTRACT_4("t0", "t1", "t2", "t3", "s0", "s1", "s2", "s3")
      : SNL_OUT_4, [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3)
      : [a] "r"(a.limb), [b] "r"(b.limb), "m"(a), "m"(b), SNL_MODULUS_4
      : "cc");
  out = {{t0, t1, t2, t3}};
}
template <class F>
SNL_HD void add_x86(Int<6>& out, const Int<6>& a, const Int<6>& b) {
  u64 t0, t1, t2, t3, t4, t5, s0, s1, s2, s3;
  const u64 *pa = a.limb, *pb = b.limb;
  asm(SNL_ADD_6("addq", "adcq") SNL_SUBTRACT_6("t0", "t1", "t2", "t3", "t4", "t5", "s0", "s1", "s2", "s3", "a", "b")
      : SNL_OUT_6, [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [a] "+&r"(pa), [b] "+&r"(pb)
      : "m"(a), "m"(b), SNL_MODULUS_6
      : "cc");
  out = {{t0, t1, t2, t3, t4, t5}};
}

// out = a - b mod p.
template <class F>
SNL_HD void sub_x86(Int<4>& out, const Int<4>& a, const Int<4>& b) {
  u64 t0, t1, t2, t3, s0, s1, s2, s3;
  asm(SNL_ADD_4("subq", "sbbq") SNL_RESTORE_4("s0", "s1", "s2", "s3")
      : SNL_OUT_4, [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3)
      : [a] "r"(a.limb), [b] "r"(b.limb), "m"(a), "m"(b), SNL_MODULUS_4
      : "cc");
  out = {{t0, t1, t2, t3}};
}
template <class F>
SNL_HD void sub_x86(Int<6>& out, const Int<6>& a, const Int<6>& b) {
  u64 t0, t1, t2, t3, t4, t5, s0, s1, s2, s3;
  const u64 *pa = a.limb, *pb = b.limb;
  asm(SNL_ADD_6("subq", "sbbq") SNL_RESTORE_6("s0", "s1", "s2", "s3", "a", "b")
      : SNL_OUT_6, [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [a] "+&r"(pa), [b] "+&r"(pb)
      : "m"(a), "m"(b), SNL_MODULUS_6
      : "cc");
  out = {{t0, t1, t2, t3, t4, t5}};
}
// clang-format on

}  // namespace SNL_ISA
}  // namespace snarkline
