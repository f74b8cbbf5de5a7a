// Witness programs of structured systems. Read by structured_kernels.cpp only, once per curve and instruction set.
#pragma once

#include <deque>

#include "poseidon.h"
#include "sha256.h"
#include "structured_combine.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u64 chain_block = 256;  // instances between two looks at whether to stop

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
      batches([&](u64 g) { gather(g, false, run_.late() ? Ports::read : Ports::all); }, true);
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
  // The ports that `run` left out.
  void gather_rest() { gather(0, false, Ports::rest); }

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
          gather_ports(system_, run_, values_, group, lane, lane + 1, false, Ports::all, one());
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
  void gather(u64 g, bool outside, Ports which) {
    const LaneGroup group = group_of(system_, run_, values_, g);
    gather_ports(system_, run_, values_, group, 0, group.lanes, outside, which, one());
  }
  bool chain_sha256() {
    batches([&](u64 g) { gather(g, true, Ports::all); }, false);
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
      if (wire > system_.n_public || !(plan_.port_use[j] & port_written)) continue;
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

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
