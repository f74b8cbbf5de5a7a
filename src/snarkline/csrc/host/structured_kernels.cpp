// Witness programs and products of structured systems, for one curve and instruction set.
#include <atomic>
#include <deque>

#include "kernels.h"
#include "lanes.h"
#include "poseidon.h"
#include "sha256.h"
#include "span.h"
#include "structured_combine.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u64 rows_per_task = u64{1} << 17;   // about 1 ms of evaluation
constexpr u64 streamed_bytes = u64{1} << 22;  // outputs beyond that would push everything else out of the caches
constexpr u64 chain_block = 256;              // instances between two looks at whether to stop

Fr* elements(u64* limbs) { return reinterpret_cast<Fr*>(limbs); }
const Fr* elements(const u64* limbs) { return reinterpret_cast<const Fr*>(limbs); }

std::deque<Combiner<Fr>> combiners(const SystemPlan& system) {
  std::deque<Combiner<Fr>> out;
  for (const TemplatePlan& plan : system.templates) out.emplace_back(plan, *system.lanes);
  return out;
}

// 1 / x for the lanes [begin, end), 0 for 0: one inversion for all (Montgomery's trick).
void invert(Fr* x, u32 begin, u32 end) {
  Fr before[64], product = Fr::one();
  for (u32 lane = begin; lane < end; lane++) {
    before[lane] = product;
    if (!x[lane].is_zero()) product *= x[lane];
  }
  Fr inverse = product.inverse();
  for (u32 lane = end; lane-- > begin;) {
    if (x[lane].is_zero()) continue;
    const Fr value = inverse * before[lane];
    inverse *= x[lane];
    x[lane] = value;
  }
}

// Runs a template's program on lanes [begin, end) of a group, whose ports are there.
class Interpreter {
 public:
  Interpreter(const Combiner<Fr>& combiner, const LaneGroup& group, u32 begin, u32 end)
      : combiner_(combiner), plan_(combiner.plan()), group_(group), begin_(begin), end_(end) {}

  void run() {
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::bits) {
        const u32* code = plan_.bit_code.data();
        combiner_.lanes().run_bits(code + step.a, code + step.b, group_.bits, group_.words);
      } else {
        field_step(step);
      }
    }
  }

 private:
  void field_step(const Step& step) {
    combine(step.a, x_);
    switch (step.kind) {
      case StepKind::solve:
        solve(step);
        break;
      case StepKind::inverse:
        invert(x_, begin_, end_);
        break;
      case StepKind::divide:
        combine(step.b, y_);
        invert(y_, begin_, end_);
        multiply_lanes(x_, y_, begin_, end_);
        break;
      case StepKind::is_zero:
        for (u32 lane = begin_; lane < end_; lane++) x_[lane] = x_[lane].is_zero() ? Fr::one() : Fr::zero();
        break;
      case StepKind::low_bits:
        write_low_bits(step);
        return;
      default:
        break;
    }
    write(step.target, x_);
  }
  // target = (a b - c) factor
  void solve(const Step& step) {
    if (step.a == step.b) {
      std::copy(x_ + begin_, x_ + end_, y_ + begin_);
    } else {
      combine(step.b, y_);
    }
    multiply_lanes(x_, y_, begin_, end_);
    const Combination& c = plan_.combinations[step.c];
    if (c.n_terms + c.n_masked + c.layers != 0 || c.constant != no_coefficient) {
      combine(step.c, y_);
      for (u32 lane = begin_; lane < end_; lane++) x_[lane] -= y_[lane];
    }
    if (step.factor == coefficient_one) return;
    const Fr factor = combiner_.coefficient(step.factor);
    for (u32 lane = begin_; lane < end_; lane++) x_[lane] *= factor;
  }
  void write_low_bits(const Step& step) {
    for (u32 lane = begin_; lane < end_; lane++) x_[lane] = Fr{x_[lane].to_canonical()};
    for (u32 i = 0; i < step.c; i++) {
      u64 bits = 0;
      if (i < 256) {
        for (u32 lane = begin_; lane < end_; lane++) bits |= (x_[lane].v.limb[i / 64] >> (i % 64) & 1) << lane;
      }
      write_bits(plan_.words[step.b + i], bits);
    }
  }
  // Programs take a long combination several times in a row (x^5: three times): the last one is kept.
  void combine(u32 number, Fr* out) {
    const Combination& k = plan_.combinations[number];
    if (number == kept_number_) {
      std::copy(kept_ + begin_, kept_ + end_, out + begin_);
      return;
    }
    combiner_.combine(k, group_, begin_, end_, out);
    if (k.n_terms < long_combination) return;
    kept_number_ = number;
    std::copy(out + begin_, out + end_, kept_ + begin_);
  }
  void write(u32 place, const Fr* values) {
    if (place & 1) {
      std::copy(values + begin_, values + end_, elements(group_.wides) + usize{place >> 1} * group_.lanes + begin_);
      return;
    }
    u64 bits = 0;
    for (u32 lane = begin_; lane < end_; lane++) bits |= u64{!values[lane].is_zero()} << lane;
    write_bits(place >> 1, bits);
  }
  void write_bits(u32 slot, u64 bits) {
    u64& word = group_.bits[usize{slot} * group_.words];
    const u64 mask = (end_ == 64 ? ~u64{0} : (u64{1} << end_) - 1) & ~u64{0} << begin_;
    word = (word & ~mask) | bits;
  }

  const Combiner<Fr>& combiner_;
  const TemplatePlan& plan_;
  const LaneGroup& group_;
  u32 begin_, end_;
  static constexpr u32 long_combination = 3;
  u32 kept_number_ = ~u32{0};
  Fr x_[64], y_[64], kept_[64];
};

class ProgramRun {
 public:
  ProgramRun(const SystemPlan& system, const Values& values, const RunPlan& run, const Combiner<Fr>& combiner,
             const Exec& exec)
      : system_(system), values_(values), run_(run), plan_(combiner.plan()), combiner_(combiner), exec_(exec) {}

  void run() {
    if (!run_.chain) {
      batches([&](u64 g) { gather(g, false); }, true);
    } else if (plan_.native == NativeKind::sha256_compress && chain_sha256()) {
      batches([](u64) {}, true);
    } else if (has_native()) {
      instances([&](const LaneGroup& group, u32 lane) { native(group, lane); });
      batches([](u64) {}, true);
    } else {
      instances([&](const LaneGroup& group, u32 lane) { Interpreter(combiner_, group, lane, lane + 1).run(); });
    }
    if (run_.count == 1) publish();
  }

 private:
  // prepare(group) for each group, then the program for each batch.
  template <class Prepare>
  void batches(const Prepare& prepare, bool program) {
    const u64 n = n_groups(run_), words = run_.words;
    parallel(exec_, (n + words - 1) / words, [&](usize batch) {
      for (u64 g = batch * words; g < std::min(n, (batch + 1) * words); g++) prepare(g);
      if (!program) return;
      const LaneGroup group = group_of(system_, run_, values_, batch * words);
      Interpreter(combiner_, group, 0, group.lanes).run();
    });
  }
  template <class Each>
  void instances(const Each& each) {
    for (u64 block = 0; block < run_.count; block += chain_block) {
      parallel(exec_, 1, [&](usize) {
        for (u64 i = block; i < std::min(run_.count, block + chain_block); i++) {
          const LaneGroup group = group_of(system_, run_, values_, i / lanes_per_word);
          const u32 lane = i % lanes_per_word;
          gather_ports(system_, run_, values_, group, lane, lane + 1, false, one());
          each(group, lane);
        }
      });
    }
  }
  bool has_native() {
    const std::vector<u64>& p = plan_.native_parameters;
    const usize inputs = plan_.native_inputs.size(), outputs = plan_.native_outputs.size();
    if (plan_.native == NativeKind::sha256_compress) return inputs == 768 && outputs == 256;
    return plan_.native == NativeKind::poseidon && poseidon_.read(elements(p.data()), p.size() / 4) &&
           inputs + 1 == poseidon_.width && outputs == 1;
  }
  void gather(u64 g, bool outside) {
    const LaneGroup group = group_of(system_, run_, values_, g);
    gather_ports(system_, run_, values_, group, 0, group.lanes, outside, one());
  }
  bool chain_sha256() {
    batches([&](u64 g) { gather(g, true); }, false);
    return fill_sha256_chain(system_, run_, values_);
  }
  // The outputs of one instance, from its ports.
  void native(const LaneGroup& group, u32 lane) {
    if (plan_.native == NativeKind::poseidon) {
      std::vector<Fr> inputs;
      for (const u32 slot : plan_.native_inputs) {
        inputs.push_back(elements(group.wides)[usize{slot} * group.lanes + lane]);
      }
      elements(group.wides)[usize{plan_.native_outputs[0]} * group.lanes + lane] = poseidon_.hash(inputs.data());
    } else {
      u64 in[12] = {}, out[4];
      for (u32 k = 0; k < 768; k++) in[k / 64] |= bit(group, plan_.native_inputs[k], lane) << (k % 64);
      sha256_compress_bits(in, out);
      for (u32 k = 0; k < 256; k++) {
        const u32 literal = plan_.native_outputs[k];
        u64& word = group.bits[usize{literal >> 1} * group.words];
        const u64 value = (out[k / 64] >> (k % 64) & 1) ^ (literal & 1);
        word = (word & ~(u64{1} << lane)) | value << lane;
      }
    }
  }
  static u64 bit(const LaneGroup& group, u32 literal, u32 lane) {
    return (group.bits[usize{literal >> 1} * group.words] >> lane & 1) ^ (literal & 1);
  }
  // Public wires that the program wrote through its ports.
  void publish() {
    const LaneGroup group = group_of(system_, run_, values_, 0);
    for (u32 j = 0; j < plan_.n_ports; j++) {
      const u64 wire = port_wire(run_, plan_.n_ports, 0, j);
      if (wire > system_.n_public) continue;
      const u32 at = plan_.place[1 + j];
      elements(values_.publics)[wire] = at & 1 ? elements(group.wides)[usize{at >> 1} * group.lanes]
                                               : (bit(group, at & ~u32{1}, 0) ? Fr::one() : Fr::zero());
    }
  }
  static const u64* one() {
    static constexpr Fr value = Fr::one();
    return value.v.limb;
  }

  const SystemPlan& system_;
  const Values& values_;
  const RunPlan& run_;
  const TemplatePlan& plan_;
  const Combiner<Fr>& combiner_;
  const Exec& exec_;
  Poseidon<Fr> poseidon_{};
};

void run(const SystemPlan& system, const Values& values, const Exec& exec) {
  SNL_SPAN("witness.program");
  const auto all = combiners(system);
  elements(values.publics)[0] = Fr::one();
  for (const RunPlan& r : system.runs) ProgramRun(system, values, r, all[r.plan], exec).run();
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

// Tiles of rows of the instances of one group.
struct Task {
  const RunPlan* run;
  u64 group;
  u32 begin, end;
};

// `unit` tiles of a template for each group of each run, `size` of a template: tasks of rows_per_task rows or so.
template <class Size>
std::vector<Task> tasks_of(const SystemPlan& system, const Size& size) {
  std::vector<Task> out;
  for (const RunPlan& run : system.runs) {
    const u32 n = size(system.plan(run));
    const u64 lanes = std::min<u64>(run.count, lanes_per_word);
    const u32 step = static_cast<u32>(std::max<u64>(1, rows_per_task / (lanes * tile_rows)));
    for (u64 g = 0; g < n_groups(run); g++) {
      for (u32 begin = 0; begin < n; begin += step) out.push_back({&run, g, begin, std::min(n, begin + step)});
    }
  }
  return out;
}
std::vector<Task> row_tasks(const SystemPlan& system) {
  return tasks_of(system, [](const TemplatePlan& plan) { return plan.n_tiles(); });
}

// The rows of one tile, for the instances of a group: codes, and what does not fit into codes.
class TileReader {
 public:
  TileReader(const SystemPlan& system, const Values& values, const Task& task, const Combiner<Fr>& combiner)
      : plan_(combiner.plan()), combiner_(combiner), group_(group_of(system, *task.run, values, task.group)) {
    u32 most = 0;
    for (u32 t = task.begin; t < task.end; t++) most = std::max(most, n_sums(t));
    sums_.resize(usize{most} * 64);
  }
  void read(u32 tile) {
    tile_ = tile;
    const u32 first = plan_.tiles[tile].first_sum;
    for (u32 i = 0; i < n_sums(tile); i++) {
      combiner_.combine(plan_.combinations[plan_.sums[first + i]], group_, 0, group_.lanes,
                        sums_.data() + usize{i} * 64);
    }
    const u32* p = plan_.small.data() + plan_.tiles[tile].small;
    for (u32 side = 0; side < 3; side++) {
      p = combiner_.lanes().row_codes(p, rows(), group_.bits, group_.words, codes_ + side * tile_rows * 64,
                                      numbers_ + side * tile_rows);
    }
  }
  u32 rows() const { return std::min(tile_rows, plan_.n_rows - tile_ * tile_rows); }
  u32 n_sums(u32 tile) const { return plan_.tiles[tile + 1].first_sum - plan_.tiles[tile].first_sum; }
  const LaneGroup& group() const { return group_; }
  const i8* codes(u32 side) const { return codes_ + side * tile_rows * 64; }
  const u16* numbers() const { return numbers_; }
  const Fr* sums() const { return sums_.data(); }
  int code(u32 side, u32 row, u32 lane) const { return codes_[(side * tile_rows + row) * 64 + lane]; }
  const Fr& value(u32 side, u32 row, u32 lane) const {
    const int c = code(side, row, lane);
    return c == wide_code ? sums_[usize{numbers_[side * tile_rows + row]} * 64 + lane] : small_elements<Fr>()[c + 128];
  }

 private:
  const TemplatePlan& plan_;
  const Combiner<Fr>& combiner_;
  const LaneGroup group_;
  u32 tile_ = 0;
  std::vector<Fr> sums_;
  alignas(64) i8 codes_[3 * tile_rows * 64];
  u16 numbers_[3 * tile_rows];
};

void evaluate(const SystemPlan& system, const Values& values, u64* a, u64* b, u64* c, const Exec& exec) {
  SNL_SPAN("evaluate.structured");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  const bool aligned =
      ((reinterpret_cast<usize>(a) | reinterpret_cast<usize>(b) | reinterpret_cast<usize>(c)) & 31) == 0;
  const bool stream = aligned && 96 * system.n_rows > streamed_bytes;
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    TileReader reader(system, values, task, all[task.run->plan]);
    const u64 n_rows = system.plan(*task.run).n_rows;
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      const u64 at = 4 * (task.run->first_row + reader.group().first * n_rows + u64{tile} * tile_rows);
      system.lanes->store_tile({reader.codes(0),
                                reader.numbers(),
                                reinterpret_cast<const u64*>(reader.sums()),
                                reinterpret_cast<const u64*>(small_elements<Fr>()),
                                {a + at, b + at, c + at},
                                n_rows,
                                reader.rows(),
                                reader.group().lanes,
                                3,
                                stream});
    }
  });
}

void evaluate_codes(const SystemPlan& system, const Values& values, i8* codes, u64* sums, const Exec& exec) {
  SNL_SPAN("evaluate.codes");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const TemplatePlan& plan = system.plan(*task.run);
    TileReader reader(system, values, task, all[task.run->plan]);
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      const u64 first = reader.group().first;
      const u64 row = task.run->first_row + first * plan.n_rows + u64{tile} * tile_rows;
      for (u32 side = 0; side < 3; side++) {
        system.lanes->store_codes(reader.codes(side), reader.rows(), reader.group().lanes,
                                  codes + side * system.n_rows + row, plan.n_rows);
      }
      for (u32 i = 0; i < reader.n_sums(tile); i++) {
        for (u32 lane = 0; lane < reader.group().lanes; lane++) {
          const u64 number = (first + lane) * plan.sums.size() + plan.tiles[tile].first_sum + i;
          elements(sums)[task.run->first_sum + number] = reader.sums()[usize{i} * 64 + lane];
        }
      }
    }
  });
}

void expand_codes(const SystemPlan& system, const i8* codes, const u64* sums, u64* a, u64* b, u64* c,
                  const Exec& exec) {
  SNL_SPAN("evaluate.expand");
  Fr* const out[3] = {elements(a), elements(b), elements(c)};
  const auto tasks = row_tasks(system);
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const TemplatePlan& plan = system.plan(*task.run);
    const u64 first = task.group * lanes_per_word;
    const u64 lanes = std::min<u64>(lanes_per_word, task.run->count - first);
    for (u32 tile = task.begin; tile < task.end; tile++) {
      const u32* p = plan.small.data() + plan.tiles[tile].small;
      const u32 rows = std::min(tile_rows, plan.n_rows - tile * tile_rows);
      for (u32 side = 0; side < 3; side++) {
        for (u32 r = 0; r < rows; r++) {
          const u32 header = *p++;
          if (!(header >> 31)) p += (header & 0xff) + (header >> 8 & 0xff);
          u64 row = task.run->first_row + first * plan.n_rows + u64{tile} * tile_rows + r;
          u64 sum = task.run->first_sum + first * plan.sums.size() + plan.tiles[tile].first_sum + (header & 0xffff);
          for (u64 lane = 0; lane < lanes; lane++, row += plan.n_rows, sum += plan.sums.size()) {
            out[side][row] =
                header >> 31 ? elements(sums)[sum] : small_elements<Fr>()[codes[side * system.n_rows + row] + 128];
          }
        }
      }
    }
  });
}

u64 first_violation(const SystemPlan& system, const Values& values, const Exec& exec) {
  SNL_SPAN("check.structured");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  std::atomic<u64> first{~u64{0}};
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const u64 n_rows = system.plan(*task.run).n_rows;
    if (task.run->first_row + task.group * lanes_per_word * n_rows + u64{task.begin} * tile_rows > first) return;
    TileReader reader(system, values, task, all[task.run->plan]);
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      for (u32 r = 0; r < reader.rows(); r++) {
        for (u32 lane = 0; lane < reader.group().lanes; lane++) {
          const int x = reader.code(0, r, lane), y = reader.code(1, r, lane), z = reader.code(2, r, lane);
          if (x * y == z && x != wide_code && y != wide_code && z != wide_code) continue;
          if (reader.value(0, r, lane) * reader.value(1, r, lane) == reader.value(2, r, lane)) continue;
          const u64 row = task.run->first_row + (reader.group().first + lane) * n_rows + u64{tile} * tile_rows + r;
          u64 seen = first;
          while (row < seen && !first.compare_exchange_weak(seen, row)) {
          }
        }
      }
    }
  });
  return first;
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

}  // namespace
}  // namespace SNL_ISA

const StructuredKernels& SNL_KERNELS(structured)() {
  static constexpr StructuredKernels table = {
      give, run, pack, expand, read, evaluate, evaluate_codes, expand_codes, first_violation, transposed, inverse};
  return table;
}

}  // namespace snarkline
