// Linear combinations over slots as records of one size: the host writes them (host/structured_form.h), devices whose
// threads take one each read them.
#pragma once

#include "int.h"

namespace snarkline {

// Numbers of coefficients that stand for themselves.
inline constexpr u32 no_coefficient = ~u32{0}, coefficient_one = ~u32{1}, coefficient_minus_one = ~u32{2};

// Of the header of a row or a column.
inline constexpr u32 is_wide = u32{1} << 31, is_written = u32{1} << 30;

// In place of an operand that a step does not have.
inline constexpr u32 nothing = ~u32{0};

// A combination: bits with integer coefficients, by ascending exponent; pairs (wide slot, coefficient); pairs (bit
// slot, coefficient); a constant.
struct SumRecord {
  u32 digits, n_digits, terms, n_terms, masked, n_masked, constant, unused;
};
// 2^(exponent % 256) times a bit, negative from 256 on.
struct Digit {
  u32 slot, exponent;
};
struct Term {
  u32 slot, coefficient;
};

// Steps over field elements: those of StepKind (host/structured.h), and one in place of three that make x^2, x^4 and
// x^5 of a combination x, whose targets are `target`, b and c.
enum StepCode : u32 {
  code_bits,
  code_solve,     // (a b - c) factor
  code_linear,    // a
  code_inverse,   // 1 / a, where 1 / 0 is 0
  code_is_zero,   // whether a is 0
  code_low_bits,  // bits of a
  code_divide,    // a / b
  code_fifth_power,
};

// A stretch of a program that one kernel runs: `count` steps from `first` on, or code over bits, whose streams are
// those from `first` on.
struct PhaseRecord {
  u32 is_bits, first, count, first_input, n_inputs, n_registers;
};

// Code over bits for a block of threads: each of its warps has a stream of rows of up to 32 instructions, a thread
// each, and passes barriers between them. Instructions work on registers, words with a bit of each of 32 instances,
// each of which is there twice, as it is and negated: an operand is the offset 8 * register + 4 * negated. Register 0
// is true.
enum BitOp : u32 {
  bits_idle,
  bits_xor,
  bits_choose,  // a ? b : c
  bits_majority,
  bits_count,  // a thread counts up to eight more bits of its binary digit
  bits_sum,    // what was counted, with the carry of the row before: a digit a thread, and the lowest of the carry
};
inline constexpr u32 max_registers = 1 << 13;

// A row: how many threads have an instruction; a BitOp; of sums the number of digits of a count, how many of the carry
// are written, and whether the sum goes on; the barriers behind it.
struct BitHeader {
  static constexpr u32 op_at = 6, planes_at = 9, carries_at = 12, more_at = 15, barriers_at = 16;
  static constexpr u32 max_carries = 7, max_barriers = 0xffff;
};

// An instruction: operands a | b << 16, c | target << 16 (an operand, or 0: nobody reads it), and the target's slot. A
// count has eight operands, and no target; a sum targets in place of a and b: low digit | carry << 16, and slots of
// both, or `nothing`.
struct BitRecord {
  u32 ab, cd, slot, carry;
};
struct BitInput {
  u32 slot, target;  // an operand
};
struct BitStream {
  u32 first_row, n_rows, first_record, unused;
};

}  // namespace snarkline
