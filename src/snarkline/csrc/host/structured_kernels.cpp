// Witness programs and products of structured systems, for one curve and instruction set.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels.h"
#include "structured_rows.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

// Which runs have been made, for threads that make others of them.
class Done {
 public:
  explicit Done(usize n) : done_(n) {}
  // Waits for other runs, of which a thread has each. False if one of them ended with an exception.
  bool wait(const std::vector<u32>& others) const {
    for (const u32 other : others) {
      while (!done_[other].load(std::memory_order_acquire)) {
        if (failed_) return false;
        std::this_thread::yield();
      }
    }
    return true;
  }
  template <class Make>
  void make(usize run, const Make& make) {
    try {
      make();
    } catch (...) {
      failed_ = true;
      throw;
    }
    done_[run].store(true, std::memory_order_release);
  }

 private:
  std::vector<std::atomic<bool>> done_;
  std::atomic<bool> failed_{false};
};

void run(const SystemPlan& system, const Values& values, usize n_runs, const Exec& exec) {
  SNL_SPAN("witness.program");
  const auto all = combiners(system);
  elements(values.publics)[0] = Fr::one();
  const auto program = [&](const RunPlan& r, const Exec& on) { return ProgramRun(system, values, r, all[r.plan], on); };
  Done done(n_runs);
  for (usize begin = 0; begin < n_runs;) {
    if (!system.runs[begin].few()) {  // on all threads
      program(system.runs[begin++], exec).run();
      continue;
    }
    // Runs of few instances up to the next of many, each on one thread. Those that wait for the fewest others come
    // first; whoever takes one waits for runs that were taken before it.
    std::vector<u32> order;
    for (; begin < n_runs && system.runs[begin].few(); begin++) order.push_back(static_cast<u32>(begin));
    std::stable_sort(order.begin(), order.end(),
                     [&](u32 a, u32 b) { return system.runs[a].level < system.runs[b].level; });
    parallel(exec, order.size(), [&](usize i) {
      const RunPlan& r = system.runs[order[i]];
      if (done.wait(r.after)) done.make(order[i], [&] { program(r, Exec{}).run(); });
    });
  }
  parallel_ranges(exec, n_runs, 4, [&](usize begin, usize end) {
    for (usize i = begin; i < end; i++) {
      if (system.runs[i].late()) program(system.runs[i], Exec{}).gather_rest();
    }
  });
}

usize give(const SystemPlan& system, const Values& values, const u32* wires, const u8* bits, const u64* given, usize n,
           const Exec& exec) {
  return first_index(exec, n, 4096, [&](usize begin, usize end) -> usize {
    const RunPlan* run = nullptr;  // given wires mostly lie in one run: it is looked for again when they leave it
    for (usize i = begin; i < end; i++) {
      Int<4> v;
      std::copy_n(given + 4 * i, 4, v.limb);
      const u64 high = v.limb[1] | v.limb[2] | v.limb[3];
      Int<4> rest = v;
      if (bits[i] ? (high | v.limb[0] >> 1) != 0 : !sub_in_place(rest, Fr::modulus)) return i;
      if (wires[i] <= system.n_public) {
        elements(values.publics)[wires[i]] = Fr::from_canonical(v);
        continue;
      }
      if (run == nullptr || wires[i] < run->first_wire || wires[i] >= run->first_wire + system.plan(*run).n_aux) {
        run = find_wire(system, wires[i]).run;
      }
      const TemplatePlan& plan = system.plan(*run);
      const u32 at = plan.place[plan.first_aux() + (wires[i] - run->first_wire)];
      if (at & 1) {
        elements(values.wides)[run->wides + (at >> 1)] = Fr::from_canonical(v);
      } else {
        values.bits[run->bits + (at >> 1)] = v.limb[0];
      }
    }
    return npos;
  });
}

usize pack(const SystemPlan& system, const Values& values, const u64* wires, const Exec& exec) {
  const Fr* w = elements(wires);
  for (u64 i = 0; i <= system.n_public; i++) elements(values.publics)[i] = Fr::from_canonical(w[i].v);
  std::atomic<usize> bad{npos};
  for (const RunPlan& run : system.runs) {
    const TemplatePlan& plan = system.plan(run);
    parallel_ranges(exec, n_groups(run), 1 + (usize{1} << 14) / (64 * plan.n_columns()), [&](usize begin, usize end) {
      for (usize g = begin; g < end; g++) {
        const LaneGroup group = group_of(system, run, values, g);
        group.bits[0] = ~u64{0};
        for (u32 column = 1; column < plan.n_columns(); column++) {
          const u32 at = plan.place[column], slot = at >> 1;
          u64 bits = 0;
          for (u32 lane = 0; lane < group.lanes; lane++) {
            const u64 wire = column < plan.first_aux()
                                 ? port_wire(run, plan.n_ports, group.first + lane, column - 1)
                                 : run.first_wire + (group.first + lane) * plan.n_aux + (column - plan.first_aux());
            const auto& limb = w[wire].v.limb;
            if (at & 1) {
              elements(group.wides)[usize{slot} * group.lanes + lane] = Fr::from_canonical(w[wire].v);
            } else {
              if (((limb[0] >> 1) | limb[1] | limb[2] | limb[3]) != 0) {
                usize seen = bad;
                while (wire < seen && !bad.compare_exchange_weak(seen, wire)) {
                }
              }
              bits |= (limb[0] & 1) << lane;
            }
          }
          if (!(at & 1)) group.bits[usize{slot} * group.words] = bits;
        }
      }
    });
  }
  return bad;
}

// The values of all wires: tiles are of aux columns here.
void expand(const SystemPlan& system, const Values& values, u64* out, const Exec& exec) {
  SNL_SPAN("witness.expand");
  for (u64 wire = 0; wire <= system.n_public; wire++) {
    elements(out)[wire] = Fr{elements(values.publics)[wire].to_canonical()};
  }
  static const auto integers = [] {
    std::vector<Fr> table(256);
    table[129].v.limb[0] = 1;
    return table;
  }();
  const auto tasks =
      tasks_of(system, [](const TemplatePlan& plan) { return (plan.n_aux + tile_rows - 1) / tile_rows; });
  const bool stream = (reinterpret_cast<usize>(out) & 31) == 0 && 32 * system.n_wires > streamed_bytes;
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const TemplatePlan& plan = system.plan(*task.run);
    const LaneGroup group = group_of(system, *task.run, values, task.group);
    std::vector<Fr> wide(plan.n_wides != 0 ? tile_rows * 64 : 0);
    alignas(64) i8 codes[tile_rows * 64];
    u16 numbers[tile_rows];
    for (u32 tile = task.begin; tile < task.end; tile++) {
      const u32 columns = std::min(tile_rows, plan.n_aux - tile * tile_rows);
      u32 stream_of[2 * tile_rows], n = 0;
      for (u32 i = 0; i < columns; i++) {
        const u32 at = plan.place[plan.first_aux() + tile * tile_rows + i];
        if (at & 1) {
          stream_of[n++] = u32{1} << 31 | i;
          for (u32 lane = 0; lane < group.lanes; lane++) {
            wide[i * 64 + lane] = Fr{elements(group.wides)[usize{at >> 1} * group.lanes + lane].to_canonical()};
          }
        } else {
          stream_of[n++] = 1;
          stream_of[n++] = at >> 1;
        }
      }
      system.lanes->row_codes(stream_of, columns, group.bits, group.words, codes, numbers);
      u64* to = out + 4 * (task.run->first_wire + group.first * plan.n_aux + u64{tile} * tile_rows);
      system.lanes->store_tile({codes,
                                numbers,
                                reinterpret_cast<const u64*>(wide.data()),
                                reinterpret_cast<const u64*>(integers.data()),
                                {to, nullptr, nullptr},
                                plan.n_aux,
                                columns,
                                group.lanes,
                                1,
                                stream});
    }
  });
}

void read(const SystemPlan& system, const Values& values, const u32* wires, u64* out, usize n) {
  for (usize i = 0; i < n; i++) {
    const Place place = find_wire(system, wires[i]);
    if (place.run == nullptr) {
      elements(out)[i] = Fr{elements(values.publics)[wires[i]].to_canonical()};
      continue;
    }
    const u32 at = system.plan(*place.run).place[place.column], lane = place.instance % lanes_per_word;
    const LaneGroup group = group_of(system, *place.run, values, place.instance / lanes_per_word);
    if (at & 1) {
      elements(out)[i] = Fr{elements(group.wides)[usize{at >> 1} * group.lanes + lane].to_canonical()};
    } else {
      elements(out)[i] = Fr{};
      out[4 * i] = group.bits[usize{at >> 1} * group.words] >> lane & 1;
    }
  }
}

// One side's rows of the instances [begin, end) of a run.
void scatter(const SystemPlan& system, const RunPlan& run, u32 side, u64 begin, u64 end, const Fr* v, Fr* out) {
  const TemplatePlan& plan = system.plan(run);
  const SparseRows& rows = plan.rows[side];
  const Fr* coefficients = elements(plan.coefficients.data());
  std::vector<u64> wires(plan.n_columns());
  for (u64 i = begin; i < end; i++) {
    for (u32 j = 0; j < plan.n_ports; j++) wires[1 + j] = port_wire(run, plan.n_ports, i, j);
    for (u32 k = 0; k < plan.n_aux; k++) wires[plan.first_aux() + k] = run.first_wire + i * plan.n_aux + k;
    const Fr* x = v + run.first_row + i * plan.n_rows;
    for (u32 r = 0; r < plan.n_rows; r++) {
      for (u32 e = rows.row_start[r]; e < rows.row_start[r + 1]; e++) {
        Fr& sum = out[wires[rows.column[e]]];
        const u32 number = rows.coefficient[e];
        if (number == coefficient_one) {
          sum += x[r];
        } else if (number == coefficient_minus_one) {
          sum -= x[r];
        } else {
          sum += coefficients[number] * x[r];
        }
      }
    }
  }
}

void transposed(const SystemPlan& system, const u64* v, u64* const (&out)[3], const Exec& exec) {
  SNL_SPAN("transposed.structured");
  for (u64* side : out) {
    parallel_ranges(exec, system.n_wires, 4096,
                    [&](usize begin, usize end) { std::memset(side + 4 * begin, 0, 32 * (end - begin)); });
  }
  // The sides are independent of one another; pieces of rows follow one another, so that a stop is soon seen.
  for (const RunPlan& run : system.runs) {
    const u64 step = 1 + (u64{1} << 16) / std::max<u64>(1, system.plan(run).n_rows);
    for (u64 begin = 0; begin < run.count; begin += step) {
      parallel(exec, 3, [&](usize side) {
        scatter(system, run, static_cast<u32>(side), begin, std::min(run.count, begin + step), elements(v),
                elements(out[side]));
      });
    }
  }
}

void inverse(u64* out, const u64* in) {
  Fr x;
  std::copy_n(in, 4, x.v.limb);
  std::copy_n(x.inverse().v.limb, 4, out);
}

bool poseidon_rows(u64* out, const u64* rows, usize n, usize arity, const u64* parameters, usize n_parameters,
                   const Exec& exec) {
  Poseidon<Fr> poseidon{};
  if (!poseidon.read(elements(parameters), n_parameters) || poseidon.width != arity + 1) return false;
  parallel_ranges(exec, n, 4, [&](usize begin, usize end) {
    std::vector<Fr> inputs(arity);
    for (usize i = begin; i < end; i++) {
      for (usize j = 0; j < arity; j++) inputs[j] = elements(rows)[i * arity + j] * Fr{Fr::r2};
      const auto digest = poseidon.hash(inputs.data()).to_canonical();
      std::copy_n(digest.limb, 4, out + 4 * i);
    }
  });
  return true;
}

}  // namespace
}  // namespace SNL_ISA

const StructuredKernels& SNL_KERNELS(structured)() {
  static constexpr StructuredKernels table = {
      give,       run,     pack,         expand, read, evaluate, evaluate_codes, expand_codes, first_violation,
      transposed, inverse, poseidon_rows};
  return table;
}

}  // namespace snarkline
