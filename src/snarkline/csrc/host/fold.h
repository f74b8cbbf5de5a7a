// The end of a sum that a device computed: a chain of doublings, in which a device would use one thread of thousands.
#pragma once

#include <string>

#include "kernels.h"

namespace snarkline {

// out = sum of 2^starts[i] * sums[i], an affine point: sums in XYZZ coordinates, starts ascending.
using Fold = void (*)(Group, u64* out, const u64* sums, const u32* starts, usize n);

#define SNL_FOLDS(isa)                                                         \
  void SNL_JOIN(fold, isa, Bn254)(Group, u64*, const u64*, const u32*, usize); \
  void SNL_JOIN(fold, isa, Bls12_381)(Group, u64*, const u64*, const u32*, usize);
SNL_FOLDS(portable)
SNL_FOLDS(adx)
SNL_FOLDS(ifma)
#undef SNL_FOLDS

// That of a curve, compiled for the fastest of instruction_sets(); null for other names.
Fold find_fold(const std::string& curve);

}  // namespace snarkline
