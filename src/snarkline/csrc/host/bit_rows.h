// Code over bits, scheduled for blocks of threads on a device: see BitRecord in common/records.h.
#pragma once

#include <vector>

#include "../common/records.h"
#include "structured.h"

namespace snarkline {

// A stretch of a program that one kernel runs: steps over field elements, or code over bits.
struct ProgramPhase {
  bool bits;
  std::vector<u32> items;  // steps of the template, or offsets of instructions in its bit_code
};

// A template's program as few stretches as its dependencies allow, each in the order of the program.
std::vector<ProgramPhase> phases_of(const TemplatePlan& plan);

// Rows for the warps of a block. Registers are reused: a value has one from where it is made to where it is last read.
struct BitRows {
  u32 n_registers = 1;             // register 0 is true
  std::vector<BitInput> inputs;    // what the code reads and does not make
  std::vector<BitStream> streams;  // of each warp, into the two below
  std::vector<u32> headers;
  std::vector<BitRecord> records;
};
BitRows schedule_bits(const TemplatePlan& plan, const std::vector<u32>& instructions, u32 warps);

}  // namespace snarkline
