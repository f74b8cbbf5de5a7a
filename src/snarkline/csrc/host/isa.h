// The instruction sets of this build and of this processor.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"

namespace snarkline {

// Those that this build has and this processor and operating system can run, slowest first.
const std::vector<std::string>& instruction_sets();

// The table of a curve ("bn254", "bls12_381") under one of instruction_sets(); null for other names.
const CurveKernels* find_kernels(const std::string& curve, const std::string& isa);

}  // namespace snarkline
