// Witness programs of systems whose runs have few instances, for a run under a sanitizer: 300 runs with random wiring,
// made by eight threads on memory as it comes, again and again, must give what one thread gives. Exits with 0 if so.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "../common/curves.h"
#include "check.h"
#include "kernels.h"
#include "lanes.h"
#include "structured.h"

using namespace snarkline;

namespace snarkline {
const StructuredKernels& SNL_KERNELS(structured)();
}

namespace {

using Fr = SNL_CURVE::Fr;
const StructuredKernels& kernels = SNL_KERNELS(structured)();

constexpr u32 n_public = 40, n_runs = 300, rounds = 60;
constexpr u64 integer_one[4] = {1, 0, 0, 0};
constexpr Fr element_one = Fr::one();

// A matrix whose row k holds column columns[k] with coefficient 1.
struct Ones {
  explicit Ones(std::vector<u32> columns) : column(std::move(columns)), value(column.size()) {
    for (usize k = 0; k <= column.size(); k++) start.push_back(k);
  }
  MatrixSource source() const {
    return {column.size(), start.data(), column.data(), value.data(), integer_one, element_one.v.limb};
  }
  std::vector<u64> start;
  std::vector<u32> column, value;
};

void invert(u64* out, const u64* in) { std::copy_n(in, 4, out); }  // of 1

TemplatePlan make(u32 n_ports, const std::vector<u8>& bits, const Ones& a, const Ones& b, const Ones& c,
                  const std::vector<u32>& code) {
  static constexpr auto modulus = Fr::modulus;
  const u32 n_aux = static_cast<u32>(bits.size()) - 1 - n_ports;
  const Ones none({});
  return plan_template({n_ports,
                        n_aux,
                        bits.data(),
                        {a.source(), b.source(), c.source()},
                        none.source(),
                        code.data(),
                        code.size(),
                        modulus.limb,
                        invert,
                        NativeKind::none,
                        nullptr,
                        0,
                        nullptr,
                        0,
                        nullptr,
                        0});
}

// Ports: bits x, y, late (which the program does not read), an element z.
// Columns: 1 x, 2 y, 3 late, 4 z, 5 given, 6 x ^ y, 7 (x ^ y) * z, 8 column 7 * z.
TemplatePlan gadget() {
  const Ones a({6, 7, 3}), b({4, 4, 0}), c({7, 8, 5});
  return make(4, {1, 1, 1, 1, 0, 1, 1, 0, 0}, a, b, c, {1, 6, 2, 4, 7, 7, 0, 7, 8, 1});
}
// Copies its port 1 to its port 2, a public wire.
TemplatePlan output() {
  const Ones none({});
  return make(2, {1, 1, 1}, none, none, none, {5, 2, 2});
}

struct System {
  SystemPlan plan;
  std::vector<u32> given;
  std::vector<u8> bits;
  std::vector<u64> values;  // of the given wires
};

System random_system(std::mt19937_64& rng) {
  System out;
  SystemPlan& system = out.plan;
  system.lanes = &lane_kernels();
  system.n_public = n_public;
  system.templates.push_back(gadget());
  system.templates.push_back(output());
  const auto give = [&](u64 wire, bool bit) {
    out.given.push_back(static_cast<u32>(wire));
    out.bits.push_back(bit);
    const u64 value[4] = {bit ? rng() % 2 : rng(), bit ? 0 : rng(), bit ? 0 : rng(), bit ? 0 : rng() >> 4};
    out.values.insert(out.values.end(), value, value + 4);
  };
  give(1, true);
  give(2, false);
  std::vector<u64> bit_wires{1}, elements{2};
  // Mostly one of the last: long chains, and many runs that nobody waits for yet.
  const auto any = [&](const std::vector<u64>& wires) {
    const u64 back = rng() % 3 ? rng() % std::min<u64>(wires.size(), 8) : rng() % wires.size();
    return static_cast<i64>(wires[wires.size() - 1 - back]);
  };
  u64 wire = n_public + 1, next_public = 3;
  for (u32 k = 0; k < n_runs; k++) {
    RunPlan run{};
    run.count = 1;
    run.first_row = system.n_rows;
    run.first_wire = wire;
    if (next_public <= n_public && rng() % 6 == 0) {
      run.plan = 1;
      run.base = {any(bit_wires), static_cast<i64>(next_public)};
      bit_wires.push_back(next_public++);
    } else {
      run.base = {any(bit_wires), any(bit_wires), any(bit_wires), any(elements)};
      give(wire, true);
      bit_wires.insert(bit_wires.end(), {wire, wire + 1});
      elements.insert(elements.end(), {wire + 2, wire + 3});
      wire += 4;
    }
    run.stride.assign(run.base.size(), 0);
    add_run(system, std::move(run));
  }
  system.n_wires = wire;
  return out;
}

// All wires, and a, b, c.
std::vector<u64> made(const System& system, const Exec& exec) {
  const SystemPlan& plan = system.plan;
  std::vector<u64> publics(4 * (n_public + 1)), bits(plan.n_bit_words, 0xdeadbeefdeadbeef);
  std::vector<u64> wides(4 * plan.n_wide_values, 0xdeadbeefdeadbeef), out(4 * (plan.n_wires + 3 * plan.n_rows));
  const Values values{publics.data(), bits.data(), wides.data()};
  CHECK(kernels.give(plan, values, system.given.data(), system.bits.data(), system.values.data(), system.given.size(),
                     exec) == ~usize{0});
  kernels.run(plan, values, plan.runs.size(), exec);
  kernels.expand(plan, values, out.data(), exec);
  u64* a = out.data() + 4 * plan.n_wires;
  const RowProducts products{{a, a + 4 * plan.n_rows, a + 8 * plan.n_rows}};
  kernels.evaluate(plan, &values, &products, 1, exec);
  return out;
}

}  // namespace

int main() {
  std::mt19937_64 rng(7);
  for (u32 round = 0; round < rounds; round++) {
    const System system = random_system(rng);
    const std::vector<u64> alone = made(system, Exec{});
    for (u32 repeat = 0; repeat < 5; repeat++) CHECK(made(system, Exec{8, {}}) == alone);
  }
  std::puts("ok");
}
