// Layout and wiring of structured systems.
#include "structured.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lanes.h"
#include "sha256.h"

namespace snarkline {
namespace {

u64* bit_word(const SystemPlan& system, const RunPlan& run, const Values& values, u64 instance, u32 slot) {
  const u64 batch = instance / (lanes_per_word * run.words), word = instance / lanes_per_word % run.words;
  return values.bits + run.bits + (batch * system.plan(run).n_bits + slot) * run.words + word;
}
u64* wide_value(const SystemPlan& system, const RunPlan& run, const Values& values, u64 instance, u32 slot) {
  const u64 group = instance / lanes_per_word, first = group * lanes_per_word;
  const u64 lanes = std::min<u64>(lanes_per_word, run.count - first);
  return values.wides + 4 * (run.wides + first * system.plan(run).n_wides + slot * lanes + instance % lanes_per_word);
}
bool is_zero(const u64* limbs) { return (limbs[0] | limbs[1] | limbs[2] | limbs[3]) == 0; }

// A bit, wherever it stands.
u64 read_bit(const SystemPlan& system, const Values& values, u64 wire) {
  const Place place = find_wire(system, wire);
  if (place.run == nullptr) return !is_zero(values.publics + 4 * wire);
  const u32 at = system.plan(*place.run).place[place.column];
  if (at & 1) return !is_zero(wide_value(system, *place.run, values, place.instance, at >> 1));
  return *bit_word(system, *place.run, values, place.instance, at >> 1) >> (place.instance % lanes_per_word) & 1;
}
void read_element(const SystemPlan& system, const Values& values, u64 wire, const u64* one, u64* out) {
  const Place place = find_wire(system, wire);
  const u64* from = values.publics + 4 * wire;
  u64 bit[4] = {};
  if (place.run != nullptr) {
    const u32 at = system.plan(*place.run).place[place.column];
    if (at & 1) {
      from = wide_value(system, *place.run, values, place.instance, at >> 1);
    } else {
      if (read_bit(system, values, wire)) std::copy_n(one, 4, bit);
      from = bit;
    }
  }
  std::copy_n(from, 4, out);
}

bool inside(const SystemPlan& system, const RunPlan& run, u64 wire) {
  return wire >= run.first_wire && wire < run.first_wire + run.count * system.plan(run).n_aux;
}

u64 mask_of(u32 begin, u32 end) { return (end == 64 ? ~u64{0} : (u64{1} << end) - 1) & ~u64{0} << begin; }

// 64 instances of one column of a run, from `instance` on, which the run has at least `n` of.
u64 consecutive_bits(const SystemPlan& system, const RunPlan& run, const Values& values, u64 instance, u32 slot,
                     u32 n) {
  const u32 shift = instance % lanes_per_word;
  u64 out = *bit_word(system, run, values, instance, slot) >> shift;
  if (shift + n > 64) out |= *bit_word(system, run, values, instance + 64 - shift, slot) << (64 - shift);
  return out;
}

// The port's bits in the lanes [begin, end) whose wires are in other runs (or anywhere), one after the other.
u64 port_bits(const SystemPlan& system, const RunPlan& run, const Values& values, const LaneGroup& group, u32 begin,
              u32 end, u32 port, bool outside) {
  const u32 n_ports = system.plan(run).n_ports;
  const u64 first = port_wire(run, n_ports, group.first + begin, port);
  const u64 last = port_wire(run, n_ports, group.first + end - 1, port);
  if (run.table.empty() && first > system.n_public && last > system.n_public) {
    const Place place = find_wire(system, first), stop = find_wire(system, last);
    const TemplatePlan& plan = system.plan(*place.run);
    const bool same_column = place.run == stop.run && place.column == stop.column;
    if (same_column && run.stride[port] == plan.n_aux && (!outside || place.run != &run)) {
      const u32 at = plan.place[place.column];
      if (!(at & 1)) {
        return consecutive_bits(system, *place.run, values, place.instance, at >> 1, end - begin) << begin &
               mask_of(begin, end);
      }
    }
    if (place.run == stop.run && place.run->count == 1 && (!outside || place.run != &run)) {
      const u64* bits = values.bits + place.run->bits;
      u64 out = 0;
      u32 column = place.column;
      bool all = true;
      for (u32 lane = begin; lane < end && all; lane++, column += static_cast<u32>(run.stride[port])) {
        const u32 at = plan.place[column];
        all = !(at & 1);
        if (all) out |= (bits[at >> 1] & 1) << lane;
      }
      if (all) return out;
    }
  }
  u64 out = 0;
  for (u32 lane = begin; lane < end; lane++) {
    const u64 wire = port_wire(run, n_ports, group.first + lane, port);
    if (outside && inside(system, run, wire)) continue;
    out |= read_bit(system, values, wire) << lane;
  }
  return out;
}

// The slot of 64 bits that are consecutive wires from `wire` on and consecutive slots of a run of one instance other
// than `run`; null where they are not.
const u64* consecutive_slots(const SystemPlan& system, const RunPlan& run, const Values& values, u64 wire) {
  if (wire <= system.n_public) return nullptr;
  const Place place = find_wire(system, wire);
  if (place.run->count != 1 || place.run == &run) return nullptr;
  const TemplatePlan& plan = system.plan(*place.run);
  if (place.column + 63 >= plan.n_columns()) return nullptr;
  // Slots of bits ascend with columns: the ends tell that there is nothing but bits between.
  const u32 at = plan.place[place.column];
  if (at & 1 || plan.place[place.column + 63] != at + 2 * 63) return nullptr;
  return values.bits + place.run->bits + (at >> 1);
}

// 64 ports from `port` on that read 64 consecutive wires: 64 words become one a lane, and these are transposed. False
// where the wiring is otherwise.
bool gather_block(const SystemPlan& system, const RunPlan& run, const Values& values, const LaneGroup& group, u32 begin,
                  u32 end, u32 port) {
  const TemplatePlan& plan = system.plan(run);
  if (!run.table.empty() || port + 64 > plan.n_ports || end - begin < 8) return false;
  const u32 slot = plan.place[1 + port] >> 1;
  for (u32 i = 0; i < 64; i++) {
    if (plan.place[1 + port + i] != 2 * (slot + i)) return false;
    if (run.base[port + i] != run.base[port] + i || run.stride[port + i] != run.stride[port]) return false;
  }
  alignas(64) u64 block[64] = {};
  for (u32 lane = begin; lane < end; lane++) {
    const u64* bits = consecutive_slots(system, run, values, port_wire(run, plan.n_ports, group.first + lane, port));
    if (bits == nullptr) return false;
    block[lane] = system.lanes->low_bits(bits);
  }
  system.lanes->transpose(block);
  for (u32 i = 0; i < 64; i++) group.bits[usize{slot + i} * group.words] |= block[i];
  return true;
}

// A port that takes output number `output` of the instance before; its literal is negated there.
struct Link {
  u32 output, slot;
  bool flip;
};

// How the outputs of one instance become inputs of the next: whole words where bits stay in order, else bit by bit.
class ChainMoves {
 public:
  ChainMoves(const TemplatePlan& plan, const std::vector<u32>& port_of, const std::vector<u32>& link_of,
             const std::vector<Link>& links) {
    for (u32 block = 0; block < 12; block++) {
      std::vector<Bit> bits;
      for (u32 k = 64 * block; k < 64 * block + 64; k++) {
        const u32 literal = plan.native_inputs[k];
        const u32 link = literal > 1 ? link_of[port_of[literal >> 1]] : ~u32{0};
        if (link == ~u32{0}) continue;
        bits.push_back({k, links[link].output, u64{links[link].flip} ^ u64{literal & 1}});
      }
      bool in_order = bits.size() == 64 && bits[0].output % 64 == 0;
      Word word{block, bits.empty() ? 0 : bits[0].output / 64, 0};
      for (const Bit& bit : bits) {
        in_order = in_order && bit.output == 64 * word.output + bit.input % 64;
        word.flip |= bit.flip << (bit.input % 64);
      }
      if (in_order) {
        words_.push_back(word);
      } else {
        bits_.insert(bits_.end(), bits.begin(), bits.end());
      }
    }
  }
  void apply(const u64 (&outputs)[4], u64 (&inputs)[12]) const {
    for (const Word& word : words_) inputs[word.input] = outputs[word.output] ^ word.flip;
    for (const Bit& bit : bits_) {
      const u64 value = (outputs[bit.output / 64] >> (bit.output % 64) & 1) ^ bit.flip;
      u64& word = inputs[bit.input / 64];
      word = (word & ~(u64{1} << (bit.input % 64))) | value << (bit.input % 64);
    }
  }

 private:
  struct Bit {
    u32 input, output;
    u64 flip;
  };
  struct Word {
    u32 input, output;
    u64 flip;
  };
  std::vector<Word> words_;
  std::vector<Bit> bits_;
};

// Fills `after` and `level` of a run that is added next.
void find_predecessors(SystemPlan& system, RunPlan& run) {
  const TemplatePlan& plan = system.plan(run);
  system.writer.resize(system.n_public + 1);
  const auto add = [&](usize number) {
    const RunPlan& other = system.runs[number];
    if (!other.few() || (!run.after.empty() && run.after.back() == number)) return;
    run.after.push_back(static_cast<u32>(number));
    run.level = std::max(run.level, other.level + 1);
  };
  for (u32 j = 0; j < plan.n_ports; j++) {
    if (run.late() && !(plan.port_use[j] & port_read)) continue;
    for (u64 i = 0; i < run.count; i++) {
      const u64 wire = port_wire(run, plan.n_ports, i, j);
      if (wire > system.n_public && wire < run.first_wire) {
        const Place place = find_wire(system, wire);
        const TemplatePlan& maker = system.plan(*place.run);
        if (maker.computed[place.column - maker.first_aux()]) add(static_cast<usize>(place.run - system.runs.data()));
      } else if (wire <= system.n_public && system.writer[wire] != 0) {
        add(system.writer[wire] - 1);
      }
    }
  }
  std::sort(run.after.begin(), run.after.end());
  run.after.erase(std::unique(run.after.begin(), run.after.end()), run.after.end());
}

}  // namespace

void add_run(SystemPlan& system, RunPlan run) {
  const TemplatePlan& plan = system.plan(run);
  const u64 stop = run.first_wire + run.count * plan.n_aux;
  const auto own = [&](i64 wire) { return wire >= static_cast<i64>(run.first_wire) && wire < static_cast<i64>(stop); };
  const i64 last = static_cast<i64>(run.count) - 1;
  for (usize j = 0; j < run.base.size(); j++) {
    run.chain = run.chain || own(run.base[j]) || own(run.base[j] + last * run.stride[j]);
  }
  for (const u32 wire : run.table) run.chain = run.chain || own(wire);
  const bool bits_only =
      std::all_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.kind == StepKind::bits; });
  const bool wide = plan.n_wides == 0 && bits_only && run.count > lanes_per_word;
  run.words = wide && !(run.chain && plan.native == NativeKind::none) ? max_words : 1;
  run.bits = system.n_bit_words;
  run.wides = system.n_wide_values;
  run.first_sum = system.n_sums;
  const u64 per_batch = u64{lanes_per_word} * run.words;
  system.n_bit_words += (run.count + per_batch - 1) / per_batch * plan.n_bits * run.words;
  system.n_wide_values += run.count * plan.n_wides;
  system.n_sums += run.count * plan.sums.size();
  system.n_rows += run.count * plan.n_rows;
  if (run.few()) find_predecessors(system, run);
  for (u32 j = 0; j < plan.n_ports && run.count == 1; j++) {
    const u64 wire = port_wire(run, plan.n_ports, 0, j);
    if (wire <= system.n_public && plan.port_use[j] & port_written) {
      system.writer[wire] = static_cast<u32>(system.runs.size()) + 1;
    }
  }
  system.runs.push_back(std::move(run));
}

LaneGroup group_of(const SystemPlan& system, const RunPlan& run, const Values& values, u64 group) {
  const u64 first = group * lanes_per_word;
  return {bit_word(system, run, values, first, 0), run.words, wide_value(system, run, values, first, 0),
          static_cast<u32>(std::min<u64>(lanes_per_word, run.count - first)), first};
}

Place find_wire(const SystemPlan& system, u64 wire) {
  if (wire <= system.n_public) return {};
  const auto above = std::upper_bound(system.runs.begin(), system.runs.end(), wire,
                                      [](u64 w, const RunPlan& run) { return w < run.first_wire; });
  const RunPlan& run = *(above - 1);
  const TemplatePlan& plan = system.plan(run);
  const u64 offset = wire - run.first_wire;
  return {&run, offset / plan.n_aux, plan.first_aux() + static_cast<u32>(offset % plan.n_aux)};
}

u64 port_wire(const RunPlan& run, u32 n_ports, u64 instance, u32 port) {
  if (!run.table.empty()) return run.table[instance * n_ports + port];
  return static_cast<u64>(run.base[port] + static_cast<i64>(instance) * run.stride[port]);
}

void gather_ports(const SystemPlan& system, const RunPlan& run, const Values& values, const LaneGroup& group, u32 begin,
                  u32 end, bool outside, Ports which, const u64* one) {
  const TemplatePlan& plan = system.plan(run);
  const u64 keep = ~mask_of(begin, end);
  const auto chosen = [&](u32 port) {
    return which == Ports::all || ((plan.port_use[port] & port_read) != 0) == (which == Ports::read);
  };
  group.bits[0] = ~u64{0};
  for (u32 j = 0; j < plan.n_ports; j++) {
    if (chosen(j) && !(plan.place[1 + j] & 1)) group.bits[usize{plan.place[1 + j] >> 1} * group.words] &= keep;
  }
  for (u32 j = 0; j < plan.n_ports; j++) {
    if (!chosen(j)) continue;
    const u32 at = plan.place[1 + j];
    if (at & 1) {
      for (u32 lane = begin; lane < end; lane++) {
        const u64 wire = port_wire(run, plan.n_ports, group.first + lane, j);
        if (outside && inside(system, run, wire)) continue;
        read_element(system, values, wire, one, group.wides + 4 * (usize{at >> 1} * group.lanes + lane));
      }
    } else if (which == Ports::all && gather_block(system, run, values, group, begin, end, j)) {
      j += 63;
    } else {
      group.bits[usize{at >> 1} * group.words] |= port_bits(system, run, values, group, begin, end, j, outside);
    }
  }
}

bool fill_sha256_chain(const SystemPlan& system, const RunPlan& run, const Values& values) {
  const TemplatePlan& plan = system.plan(run);
  if (!run.table.empty() || plan.native_inputs.size() != 768 || plan.native_outputs.size() != 256) return false;
  // Which output of the instance before each port takes, and by which input a port is read.
  std::vector<u32> output_of(plan.n_bits, ~u32{0}), port_of(plan.n_bits, ~u32{0});
  for (u32 i = 0; i < 256; i++) output_of[plan.native_outputs[i] >> 1] = i;
  for (u32 j = 0; j < plan.n_ports; j++) {
    if (plan.place[1 + j] & 1) return false;
    port_of[plan.place[1 + j] >> 1] = j;
  }
  std::vector<Link> links;  // of chained ports
  std::vector<u32> link_of(plan.n_ports, ~u32{0});
  for (u32 j = 0; j < plan.n_ports; j++) {
    const i64 wire = run.base[j] + run.stride[j];
    if (run.count < 2 || !inside(system, run, static_cast<u64>(wire))) continue;
    const Place from = find_wire(system, static_cast<u64>(wire));
    const u32 slot = plan.place[from.column] >> 1, output = output_of[slot];
    if (from.instance != 0 || run.stride[j] != plan.n_aux || output == ~u32{0}) return false;
    link_of[j] = static_cast<u32>(links.size());
    links.push_back({output, plan.place[1 + j] >> 1, (plan.native_outputs[output] & 1) != 0});
  }
  for (u32 j = 0; j < plan.n_ports; j++) {  // a port that reads this run otherwise, later on
    const i64 wire = run.base[j] + static_cast<i64>(run.count - 1) * run.stride[j];
    if (link_of[j] == ~u32{0} && inside(system, run, static_cast<u64>(wire))) return false;
  }
  for (const u32 literal : plan.native_inputs) {
    if (literal > 1 && port_of[literal >> 1] == ~u32{0}) return false;
  }
  const LaneKernels& lanes = *system.lanes;
  const ChainMoves moves(plan, port_of, link_of, links);
  u64 previous[4] = {};  // outputs of the instance before, bit k of word k / 64
  for (u64 g = 0; g < n_groups(run); g++) {
    const LaneGroup group = group_of(system, run, values, g);
    alignas(64) std::array<u64, 12 * 64> in;
    for (u32 k = 0; k < 768; k++) {
      const u32 literal = plan.native_inputs[k];
      in[k] = group.bits[usize{literal >> 1} * group.words] ^ (0 - u64{literal & 1});
    }
    for (u32 block = 0; block < 12; block++) lanes.transpose(in.data() + 64 * block);
    std::array<u64, 4 * 64> out{};
    for (u32 lane = 0; lane < group.lanes; lane++) {
      u64 words[12];
      for (u32 block = 0; block < 12; block++) words[block] = in[64 * block + lane];
      if (group.first + lane != 0) moves.apply(previous, words);  // in instance 0 they come from elsewhere
      sha256_compress_bits(words, previous);
      for (u32 block = 0; block < 4; block++) out[64 * block + lane] = previous[block];
    }
    for (u32 block = 0; block < 4; block++) lanes.transpose(out.data() + 64 * block);
    // Lane l of a chained port is the output of lane l - 1; lane 0 of the next group's is lane 63's.
    for (const Link& link : links) {
      u64& word = group.bits[usize{link.slot} * group.words];
      const u64 outputs = out[link.output] ^ (0 - u64{link.flip});
      word = (word & 1) | outputs << 1;
      if (g + 1 < n_groups(run)) {
        const LaneGroup next = group_of(system, run, values, g + 1);
        u64& carried = next.bits[usize{link.slot} * next.words];
        carried = (carried & ~u64{1}) | outputs >> 63;
      }
    }
  }
  return true;
}

}  // namespace snarkline
