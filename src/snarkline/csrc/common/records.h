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

}  // namespace snarkline
