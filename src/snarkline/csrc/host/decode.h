// Decoding of the records in which circuit files keep sparse matrices. A record holds 32-bit words and a field
// element of 32 bytes, all little-endian, packed without padding, so reads are unaligned. Matrices come out by rows,
// their distinct values kept once (most circuits have few).
//
// A file can change under its mapping, so nothing that an earlier pass saw is trusted: every pass that writes checks
// what it reads against the arrays it was handed and throws Torn where they disagree.
#pragma once

#include <array>
#include <exception>
#include <vector>

#include "../common/int.h"
#include "exec.h"

namespace snarkline {

using Element = std::array<u64, 4>;

// What is wrong with a record. `None` leaves the other facts of a fault unset.
enum class Fault : int { None = 0, Matrix = 1, Row = 2, Column = 3, Truncated = 4, Trailing = 5 };

struct Torn : std::exception {
  const char* what() const noexcept override { return "the data changed while it was read"; }
};

// One matrix being filled: row_start has rows + 1 entries, column and value have `entries`.
struct CsrOut {
  u64* row_start;
  u32* column;
  u32* value;
  usize rows, entries;
};

// Records (u32 matrix, u32 row, u32 column, value) of two matrices, as in section 4 of a .zkey.
struct CoefficientScan {
  usize entries[2] = {0, 0};
  usize rows = 0;      // largest row + 1
  bool sorted = true;  // by row
  Fault fault = Fault::None;
  usize index = 0;  // of the faulty record, with what it held:
  u64 found = 0;
};
inline constexpr usize coefficient_bytes = 12 + sizeof(Element);

CoefficientScan scan_coefficients(const u8* records, usize n, u64 max_rows, u64 n_columns, const Exec&);
// Entries keep the order of the file within a row. Returns the distinct values, in order of first occurrence.
std::vector<Element> gather_coefficients(const u8* records, usize n, bool sorted, u64 n_columns, const CsrOut out[2],
                                         const Exec&);

// Rows of three linear combinations, each a u32 count and that many (u32 column, value), as in section 2 of a .r1cs.
struct ConstraintScan {
  Fault fault = Fault::None;
  usize row = 0, combination = 0;  // where the fault is, and the byte it starts at:
  usize offset = 0;
  u64 found = 0;
};
inline constexpr usize term_bytes = 4 + sizeof(Element);

// Fills row_start[0 .. 2], each of rows + 1 entries.
ConstraintScan scan_constraints(const u8* data, usize size, usize rows, u64* const row_start[3]);
// Fills column and value. Returns the distinct values. A column that is not below n_columns is reported in `scan`.
std::vector<Element> gather_constraints(const u8* data, usize size, u64 n_columns, const CsrOut out[3],
                                        ConstraintScan& scan, const Exec&);

}  // namespace snarkline
