// Templates as arrays of records of one size each, for devices whose threads take a row or a combination each.
#pragma once

#include "../common/records.h"
#include "structured.h"

namespace snarkline {

// A row or a column of tile_rows that lie side by side; those behind the last are zero. `header` is that of
// LaneKernels::row_codes: positive slots | negative << 8 | constant << 16, or is_wide. `at` is the slot if there is
// one, the first of several in SystemForm::slots, or the number of the value among the instance's field elements.
struct RowRecord {
  u32 header, at;
};

// A step of a program over field elements, as Step has it; `kind` is a StepCode. a, b, c are numbers among
// SystemForm::combinations; of low_bits, b is the first of c targets in SystemForm::slots. A solve of which c is
// nothing has nothing there.
struct StepRecord {
  u32 kind, target, a, b, c, factor;
};

struct TemplateForm {
  u32 n_rows, n_aux, n_bits, n_wides, n_sums;
  u32 first_row;     // of its records, per tile and side
  u32 first_column;  // of those of its aux columns, per tile
  u32 first_sum;
  u32 n_ports, first_port;
  u32 n_steps;  // of its program: whether it has one
  u32 n_phases, first_phase;
};
struct RunForm {
  u64 plan, count, first_row, first_wire, words, bits, wides, first_sum;
  u64 chain;
};

struct SystemForm {
  std::vector<TemplateForm> templates;
  std::vector<RunForm> runs;
  std::vector<RowRecord> rows, columns;
  std::vector<RowRecord> ports;  // like columns; those that the program writes have is_written as well
  std::vector<u32> slots;
  std::vector<SumRecord> sums, combinations;  // of rows, and of programs; coefficients are indices into `coefficients`
  std::vector<StepRecord> steps;
  std::vector<PhaseRecord> phases;  // into the arrays of this struct
  std::vector<BitInput> bit_inputs;
  std::vector<BitStream> bit_streams;
  std::vector<u32> bit_headers;
  std::vector<BitRecord> bit_records;
  std::vector<Digit> digits;
  std::vector<Term> terms;
  std::vector<u64> coefficients;  // Montgomery form
};
// With the programs of the templates of runs from `first_program` on, for blocks of `warps` warps.
SystemForm form_of(const SystemPlan& system, usize first_program, u32 warps);

}  // namespace snarkline
