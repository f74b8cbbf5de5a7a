// Stand-ins for the ways in which other provers come from a circuit to a, b and c, to measure against: constraint by
// constraint at proving time, and by flat sparse matrices. Documented in cli/bench/synthesis.py.
#pragma once

#include <memory>
#include <vector>

#include "../common/int.h"
#include "exec.h"

namespace snarkline {

// Cures of the constraint-by-constraint path.
struct Cures {
  bool add_to_lc = false;  // bits go straight into a linear combination, not through one of their own
  bool recycle = false;    // linear combinations take their vectors from a pool
  bool prefetch = false;   // values are asked for ahead of their sums
};

struct AllocationCount {
  u64 allocations = 0, bytes_freed = 0;
};

// What synthesis leaves behind: 4 limbs an element, Montgomery form. `inputs` begins with 1.
struct Assignment {
  std::vector<u64> a, b, c, inputs, aux;
  std::vector<bool> a_density, b_density;
  AllocationCount count;
};

struct FlatRows {
  usize rows, entries;
  const u64* row_start;
  const u32* column;
};

struct SynthesisKernels {
  // A chain of SHA-256 compressions over message bits (512 a block, one a byte) from the initial state.
  std::unique_ptr<Assignment> (*sha256_chain)(const u8* bits, usize blocks, const Cures&);
  // As published: 32-byte values and witness in Montgomery form, a product an entry.
  void (*flat_published)(u64* out, const FlatRows&, const u64* values, const u64* w, const Exec&);
  // Ours: classes of one byte, and a witness of bits, one a byte. Class k <= 252: 2^k; 253: -1, or, if the class after
  // it is 254, the integer of that entry's column.
  void (*flat_classes)(u64* out, const FlatRows&, const u8* classes, const u64* integers, const u8* w, const Exec&);
};
const SynthesisKernels* find_synthesis_kernels(const char* curve, const char* isa);

}  // namespace snarkline
