// Structured constraint systems as they are executed: templates decoded once into streams over *slots*, and runs of
// their instances. Bits are kept bit-sliced: a slot is `words` 64-bit words, bit l of word k is its value in instance
// 64 k + l of a batch of 64 * words instances. Field elements are kept in batches of 64 instances, slot by slot.
#pragma once

#include <vector>

#include "../common/int.h"
#include "../common/records.h"
#include "exec.h"

namespace snarkline {

using i8 = signed char;
using u16 = unsigned short;
using i32 = int;

inline constexpr u32 lanes_per_word = 64;
inline constexpr u32 tile_rows = 32;
inline constexpr u32 max_words = 8;
inline constexpr i8 wide_code = -128;  // in place of a value that does not fit into a code

// A linear combination over slots: bits with integer coefficients as sums of binary digits, field elements and bits
// with other coefficients as terms, and a constant. Offsets are into TemplatePlan::words.
struct Combination {
  u32 digits = 0, layers = 0;    // see LaneKernels::digit_sums
  u32 groups = 0;                // digits are below 8 * groups
  u32 terms = 0, n_terms = 0;    // pairs (wide slot, coefficient)
  u32 masked = 0, n_masked = 0;  // pairs (bit slot, coefficient)
  u32 constant = no_coefficient;
};

enum class StepKind : u32 { bits, solve, linear, inverse, is_zero, low_bits, divide };

// One step of a witness program: a stretch of code over bits (a to b), or an instruction over field elements, whose
// operands a, b, c are combinations. `target` is a place.
struct Step {
  StepKind kind;
  u32 target = 0, a = 0, b = 0, c = 0;
  u32 factor = coefficient_one;  // solve: 1 / coefficient of the target
};

enum class NativeKind : u32 { none, sha256_compress, poseidon };

// A matrix of a template, for products from the left.
struct SparseRows {
  std::vector<u32> row_start, column, coefficient;
};

struct Tile {
  u32 small;      // where its stream of rows begins, in TemplatePlan::small
  u32 first_sum;  // of the combinations in TemplatePlan::sums
};

// What a template's program does with a port.
enum PortUse : u8 { port_unused = 0, port_read = 1, port_written = 2 };

struct TemplatePlan {
  u32 n_ports = 0, n_aux = 0, n_rows = 0;
  u32 n_bits = 0, n_wides = 0;
  std::vector<u32> place;    // of each column: 2 * slot + (1 for a field element); column 0 is bit slot 0
  std::vector<u8> port_use;  // of each port: PortUse, or both
  std::vector<u8> computed;  // of each aux column: whether the program writes it; else its wires are given
  std::vector<u32> words;
  std::vector<Combination> combinations;
  std::vector<u64> coefficients;  // Montgomery form, 4 limbs each
  std::vector<u32> bit_code;
  std::vector<Step> steps;
  // a, b, c: per tile of rows, then side, then row: a header (see LaneKernels::row_codes) and its slots.
  std::vector<u32> small;
  std::vector<Tile> tiles;  // and one behind the last
  std::vector<u32> sums;    // combinations that the rows of a tile need, tile after tile
  SparseRows rows[3];
  NativeKind native = NativeKind::none;
  std::vector<u32> native_inputs, native_outputs;  // literals over bit slots, or wide slots
  std::vector<u64> native_parameters;

  u32 n_columns() const { return 1 + n_ports + n_aux; }
  u32 first_aux() const { return 1 + n_ports; }
  u32 n_tiles() const { return static_cast<u32>(tiles.size()) - 1; }
};

// What a template is built from: arrays as Python holds them, checked by its caller.
struct MatrixSource {
  usize rows = 0;
  const u64* row_start = nullptr;
  const u32* column = nullptr;
  const u32* value = nullptr;
  const u64* canonical = nullptr;   // coefficients
  const u64* montgomery = nullptr;  // coefficients
};
struct TemplateSource {
  u32 n_ports, n_aux;
  const u8* bits;  // of each column
  MatrixSource matrix[3], combinations;
  const u32* code;
  usize n_code;
  const u64* modulus;
  // out = 1 / in, one element in Montgomery form
  void (*inverse)(u64* out, const u64* in);
  NativeKind native;
  const u32* native_inputs;
  usize n_native_inputs;
  const u32* native_outputs;
  usize n_native_outputs;
  const u64* native_parameters;
  usize n_native_parameters;
};
TemplatePlan plan_template(const TemplateSource& source);

struct RunPlan {
  u32 plan;
  u64 count, first_row, first_wire;
  std::vector<i64> base, stride;
  std::vector<u32> table;
  u32 words;           // per slot
  u64 bits, wides;     // where its values begin: words, elements
  u64 first_sum;       // of its wide values in the form of codes
  bool chain = false;  // an instance reads wires of another of this run
  // Of a run of at most 64 instances (`few`), which one thread makes: the runs before it, few as well, whose values its
  // program reads, and the length of the longest chain of such runs that ends in it.
  std::vector<u32> after;
  u32 level = 0;

  bool few() const { return count <= lanes_per_word; }
  // Ports that the program does not read are gathered when all programs have run: runs need not wait for their wires.
  bool late() const { return count == 1 && !chain; }
};

struct LaneKernels;

struct SystemPlan {
  const LaneKernels* lanes = nullptr;
  u64 n_wires = 0, n_public = 0, n_rows = 0;
  u64 n_bit_words = 0, n_wide_values = 0, n_sums = 0;
  std::vector<TemplatePlan> templates;
  std::vector<RunPlan> runs;
  std::vector<u32> writer;  // of each public wire: 1 + the last run whose program writes it, or 0

  const TemplatePlan& plan(const RunPlan& run) const { return templates[run.plan]; }
};
// Adds a run behind the others and lays its values out.
void add_run(SystemPlan& system, RunPlan run);

// The values of a witness: public wires (Montgomery form, wire 0 first), bits, field elements (Montgomery form).
struct Values {
  u64* publics;
  u64* bits;
  u64* wides;
};

// The values of 64 instances (fewer at a run's end), as combinations read them.
struct LaneGroup {
  u64* bits;  // slot s: bits[s * words]
  u32 words;
  u64* wides;  // slot s, lane l: wides + 4 * (s * lanes + l)
  u32 lanes;   // of this group
  u64 first;   // instance
};
inline u64 n_groups(const RunPlan& run) { return (run.count + lanes_per_word - 1) / lanes_per_word; }
LaneGroup group_of(const SystemPlan& system, const RunPlan& run, const Values& values, u64 group);

// Where the value of a wire stands.
struct Place {
  const RunPlan* run = nullptr;  // null: public
  u64 instance = 0;
  u32 column = 0;
};
Place find_wire(const SystemPlan& system, u64 wire);
u64 port_wire(const RunPlan& run, u32 n_ports, u64 instance, u32 port);

// Which ports are gathered: all, those that the program reads, or the others.
enum class Ports { all, read, rest };

// Ports of a group's instances [begin, end) from the values of their wires; `one` is 1 in Montgomery form. With
// `outside`, ports that are wires of the same run are left out.
void gather_ports(const SystemPlan& system, const RunPlan& run, const Values& values, const LaneGroup& group, u32 begin,
                  u32 end, bool outside, Ports which, const u64* one);

// Ports of instance after instance of a chain whose outputs sha256_compress makes. False if its wiring is not that of
// a chain in which each input is a port, and each port of this run the output of the instance before.
bool fill_sha256_chain(const SystemPlan& system, const RunPlan& run, const Values& values);

// Where the products of one witness go.
struct RowProducts {
  u64* side[3];
};

// What the kernels of one curve do. Outputs a, b, c: n_rows elements each, Montgomery form.
struct StructuredKernels {
  // Values of wires, canonical; `bits` says which are bits. Index of the first that is out of range, or npos.
  usize (*give)(const SystemPlan&, const Values&, const u32* wires, const u8* bits, const u64* values, usize n,
                const Exec&);
  // The programs of the first `n_runs` runs.
  void (*run)(const SystemPlan&, const Values&, usize n_runs, const Exec&);
  // The values of all wires, canonical and in range. The least wire that is a bit and neither 0 nor 1, or npos.
  usize (*pack)(const SystemPlan&, const Values&, const u64* wires, const Exec&);
  void (*expand)(const SystemPlan&, const Values&, u64* out, const Exec&);              // canonical
  void (*read)(const SystemPlan&, const Values&, const u32* wires, u64* out, usize n);  // canonical
  void (*evaluate)(const SystemPlan&, const Values* values, const RowProducts* out, usize n,
                   const Exec&);  // n witnesses
  // codes: 3 n_rows; sums: n_sums elements
  void (*evaluate_codes)(const SystemPlan&, const Values&, i8* codes, u64* sums, const Exec&);
  void (*expand_codes)(const SystemPlan&, const i8* codes, const u64* sums, u64* a, u64* b, u64* c, const Exec&);
  u64 (*first_violation)(const SystemPlan&, const Values&, const Exec&);  // row, or ~0
  // out[side][wire] = sum over rows of v[row] * coefficient
  void (*transposed)(const SystemPlan&, const u64* v, u64* const (&out)[3], const Exec&);
  void (*inverse)(u64* out, const u64* in);
  // Poseidon of n rows of `arity` elements, canonical in and out; parameters as in poseidon.h, Montgomery form. False
  // where these are none, or are for another arity.
  bool (*poseidon_rows)(u64* out, const u64* rows, usize n, usize arity, const u64* parameters, usize n_parameters,
                        const Exec&);
};
const StructuredKernels* find_structured_kernels(const char* curve, const char* isa);

}  // namespace snarkline
