// Programs of templates in phases, and code over bits as rows.
#include "bit_rows.h"

#include <algorithm>
#include <bit>

namespace snarkline {
namespace {

constexpr u32 row_lanes = 32;
constexpr u32 bits_per_count = 8;
constexpr u32 never = 1;  // literal
// Opcodes of programs (r1cs/program.py).
constexpr u32 op_xor = 1, op_choose = 3, op_copy = 5, op_add = 6;

// An instruction over bits. Operands of an ADD are k words of m literals, one after the other.
struct Instruction {
  u32 op, n_targets, k, m;
  const u32* targets;   // slots
  const u32* literals;  // over slots
  u32 one_target, words;

  u32 n_literals() const { return k * m; }
  // Of what rows it is: what takes two bits is what takes three, one of which is false.
  u32 row_op() const {
    return op == op_xor || op == op_copy ? bits_xor : op == op_choose ? bits_choose : bits_majority;
  }
  u32 target(u32 i) const { return targets == nullptr ? one_target : targets[i]; }
};

Instruction decode(const u32* p) {
  static constexpr u32 n_literals[] = {0, 2, 2, 3, 3, 1};
  const u32 op = p[0] & 15;
  if (op < op_add) return {op, 1, 1, n_literals[op], nullptr, p + 1, p[0] >> 4, 1 + n_literals[op]};
  const u32 n = p[0] >> 4, k = p[1], m = p[2];
  return {op, n, k, m, p + 3, p + 3 + n, 0, 3 + n + k * m};
}

// The slots that a combination reads: each(slot, wide).
template <class Each>
void for_slots(const TemplatePlan& plan, u32 number, const Each& each) {
  const Combination& k = plan.combinations[number];
  const u32* p = plan.words.data() + k.digits;
  for (u32 layers = k.layers; layers != 0; layers--) {
    for (u32 digits = *p++; digits != 0; digits--) {
      const u32 n = p[1] + p[2];
      p += 3;
      for (u32 i = 0; i < n; i++) each(*p++, false);
    }
  }
  for (u32 i = 0; i < k.n_terms; i++) each(plan.words[k.terms + 2 * i], true);
  for (u32 i = 0; i < k.n_masked; i++) each(plan.words[k.masked + 2 * i], false);
}

// Numbers phases: even ones are of one kind, odd ones of the other.
class Phaser {
 public:
  Phaser(const TemplatePlan& plan, bool bits_first)
      : plan_(plan), bits_first_(bits_first), bits_(plan.n_bits), wides_(plan.n_wides) {
    for (u32 number = 0; number < plan.steps.size(); number++) {
      const Step& step = plan.steps[number];
      if (step.kind == StepKind::bits) {
        for (u32 at = step.a; at < step.b;) at += place(at);
      } else {
        place(step, number);
      }
    }
  }
  std::vector<ProgramPhase> take() { return std::move(phases_); }

 private:
  u32 place(u32 at) {
    const Instruction x = decode(plan_.bit_code.data() + at);
    u32 phase = 0;
    for (u32 i = 0; i < x.n_literals(); i++) phase = std::max(phase, bits_[x.literals[i] >> 1]);
    phase = put(phase, true, at);
    for (u32 i = 0; i < x.n_targets; i++) bits_[x.target(i)] = phase;
    return x.words;
  }
  void place(const Step& step, u32 number) {
    u32 phase = 0;
    const auto read = [&](u32 slot, bool wide) { phase = std::max(phase, wide ? wides_[slot] : bits_[slot]); };
    for_slots(plan_, step.a, read);
    if (step.kind == StepKind::solve || step.kind == StepKind::divide) for_slots(plan_, step.b, read);
    if (step.kind == StepKind::solve) for_slots(plan_, step.c, read);
    phase = put(phase, false, number);
    if (step.kind == StepKind::low_bits) {
      for (u32 i = 0; i < step.c; i++) bits_[plan_.words[step.b + i]] = phase;
    } else {
      (step.target & 1 ? wides_ : bits_)[step.target >> 1] = phase;
    }
  }
  u32 put(u32 phase, bool bits, u32 item) {
    if ((phase % 2 == 0) != (bits == bits_first_)) phase++;
    while (phases_.size() <= phase) phases_.push_back({(phases_.size() % 2 == 0) == bits_first_, {}});
    phases_[phase].items.push_back(item);
    return phase;
  }

  const TemplatePlan& plan_;
  const bool bits_first_;
  std::vector<u32> bits_, wides_;  // of each slot: the phase that makes it, or 0
  std::vector<ProgramPhase> phases_;
};

// Instructions by level: those of one do not wait for each other. Sums take several times as long as others, so a level
// has either all sums that are ready, or, as long as there are any, all others.
class Levels {
 public:
  explicit Levels(const std::vector<Instruction>& code, u32 n_slots) : code_(code), waits_(code.size()) {
    link(n_slots);
    std::vector<u32> ready[2];
    for (u32 i = 0; i < code.size(); i++) {
      if (waits_[i] == 0) ready[code[i].op == op_add].push_back(i);
    }
    while (!ready[0].empty() || !ready[1].empty()) {
      std::vector<u32> level;
      level.swap(ready[0].empty() ? ready[1] : ready[0]);
      std::sort(level.begin(), level.end(), [&](u32 x, u32 y) {
        return code[x].row_op() != code[y].row_op() ? code[x].row_op() < code[y].row_op() : x < y;
      });
      for (const u32 i : level) {
        for (u32 e = first_[i]; e < first_[i + 1]; e++) {
          if (--waits_[readers_[e]] == 0) ready[code[readers_[e]].op == op_add].push_back(readers_[e]);
        }
      }
      levels_.push_back(std::move(level));
    }
  }
  std::vector<std::vector<u32>> take() { return std::move(levels_); }

 private:
  // Who reads what each instruction makes, once for each operand.
  void link(u32 n_slots) {
    std::vector<u32> maker(n_slots, nothing), n(code_.size() + 1);
    for (u32 i = 0; i < code_.size(); i++) {
      for (u32 t = 0; t < code_[i].n_targets; t++) maker[code_[i].target(t)] = i;
    }
    const auto edges = [&](const auto& each) {
      for (u32 i = 0; i < code_.size(); i++) {
        for (u32 l = 0; l < code_[i].n_literals(); l++) {
          const u32 from = maker[code_[i].literals[l] >> 1];
          if (from != nothing) each(from, i);
        }
      }
    };
    edges([&](u32 from, u32 to) {
      n[from + 1]++;
      waits_[to]++;
    });
    for (usize i = 0; i < code_.size(); i++) n[i + 1] += n[i];
    first_ = n;
    readers_.resize(n.back());
    edges([&](u32 from, u32 to) { readers_[n[from]++] = to; });
  }

  const std::vector<Instruction>& code_;
  std::vector<u32> waits_, first_, readers_;
  std::vector<std::vector<u32>> levels_;
};

// Of xors of which one takes the other's result, both take what they are made from: they need not wait for each other.
class Fusion {
 public:
  Fusion(std::vector<Instruction>& code, u32 n_slots) : depth_(n_slots) {
    std::vector<u32> maker(n_slots, nothing);
    operands_.reserve(3 * code.size());
    for (u32 i = 0; i < code.size(); i++) {
      Instruction& x = code[i];
      const u32* l = x.literals;
      if (x.op == op_xor) {
        const u32 deeper = depth_[l[1] >> 1] > depth_[l[0] >> 1], from = maker[l[deeper] >> 1];
        if (from != nothing) {
          const u32* others = originals_[from];
          const u32 first = static_cast<u32>(operands_.size());
          operands_.insert(operands_.end(), {l[1 - deeper], others[0], others[1] ^ (l[deeper] & 1)});
          x.literals = operands_.data() + first;
          x.m = 3;
        }
      }
      originals_.push_back(l);
      u32 depth = 0;
      for (u32 k = 0; k < x.n_literals(); k++) depth = std::max(depth, depth_[x.literals[k] >> 1]);
      for (u32 t = 0; t < x.n_targets; t++) {
        depth_[x.target(t)] = depth + 1;
        maker[x.target(t)] = x.op == op_xor ? i : nothing;
      }
    }
  }

 private:
  std::vector<u32> depth_, operands_;
  std::vector<const u32*> originals_;
};

class Scheduler {
 public:
  Scheduler(const TemplatePlan& plan, const std::vector<u32>& instructions, u32 warps)
      : code_(decoded(plan, instructions)),
        fusion_(code_, plan.n_bits),
        levels_(Levels(code_, plan.n_bits).take()),
        warps_(warps),
        register_(plan.n_bits),
        last_read_(plan.n_bits, nothing) {}

  BitRows make() {
    find_inputs();
    for (u32 level = 0; level < levels_.size(); level++) add_level(level);
    for (const Warp& warp : warps_) {
      rows_.streams.push_back({static_cast<u32>(rows_.headers.size()), static_cast<u32>(warp.headers.size()),
                               static_cast<u32>(rows_.records.size()), 0});
      rows_.headers.insert(rows_.headers.end(), warp.headers.begin(), warp.headers.end());
      rows_.records.insert(rows_.records.end(), warp.records.begin(), warp.records.end());
    }
    return std::move(rows_);
  }

 private:
  struct Warp {
    std::vector<u32> headers;
    std::vector<BitRecord> records;
    u32 load = 0;  // of a level
  };

  static std::vector<Instruction> decoded(const TemplatePlan& plan, const std::vector<u32>& instructions) {
    std::vector<Instruction> code;
    for (const u32 at : instructions) code.push_back(decode(plan.bit_code.data() + at));
    return code;
  }

  void find_inputs() {
    std::vector<u8> made(register_.size());
    made[0] = 1;
    for (const Instruction& x : code_) {
      for (u32 t = 0; t < x.n_targets; t++) made[x.target(t)] = 1;
    }
    std::vector<u32> inputs;
    for (u32 level = 0; level < levels_.size(); level++) {
      for (const u32 i : levels_[level]) {
        for (u32 l = 0; l < code_[i].n_literals(); l++) {
          const u32 slot = code_[i].literals[l] >> 1;
          if (!made[slot] && last_read_[slot] == nothing) inputs.push_back(slot);
          last_read_[slot] = level;
        }
      }
    }
    std::sort(inputs.begin(), inputs.end());
    ends_.resize(levels_.size());
    for (const u32 slot : inputs) rows_.inputs.push_back({slot, take_register(slot)});
  }

  // The operand that a slot is from here on, 0 if nobody reads it.
  u32 take_register(u32 slot) {
    if (slot == 0 || last_read_[slot] == nothing) return 0;
    if (free_.empty()) {
      register_[slot] = rows_.n_registers++;
    } else {
      register_[slot] = free_.back();
      free_.pop_back();
    }
    ends_[last_read_[slot]].push_back(register_[slot]);
    return operand(2 * slot);
  }
  u32 operand(u32 literal) const { return 8 * register_[literal >> 1] + 4 * (literal & 1); }

  void add_level(u32 level) {
    for (Warp& warp : warps_) warp.load = 0;
    const std::vector<u32>& items = levels_[level];
    for (usize i = 0; i < items.size();) {
      if (code_[items[i]].op == op_add) {
        add_sum(code_[items[i++]]);
        continue;
      }
      usize end = i;
      while (end < items.size() && end - i < row_lanes && code_[items[end]].row_op() == code_[items[i]].row_op()) {
        end++;
      }
      add_row(items, i, end);
      i = end;
    }
    // What is last read here is free for the next level.
    std::vector<u32>& ends = ends_[level];
    std::sort(ends.rbegin(), ends.rend());
    free_.insert(free_.end(), ends.begin(), ends.end());
    if (level + 1 < levels_.size()) {
      for (Warp& warp : warps_) add_barrier(warp);
    }
  }
  static void add_barrier(Warp& warp) {
    if (warp.headers.empty() || warp.headers.back() >> BitHeader::barriers_at == BitHeader::max_barriers) {
      warp.headers.push_back(bits_idle << BitHeader::op_at);
    }
    warp.headers.back() += u32{1} << BitHeader::barriers_at;
  }
  Warp& least_loaded(u32 load) {
    Warp& warp =
        *std::min_element(warps_.begin(), warps_.end(), [](const Warp& a, const Warp& b) { return a.load < b.load; });
    warp.load += load;
    return warp;
  }

  void add_row(const std::vector<u32>& items, usize begin, usize end) {
    Warp& warp = least_loaded(1);
    warp.headers.push_back(static_cast<u32>(end - begin) | code_[items[begin]].row_op() << BitHeader::op_at);
    for (usize i = begin; i < end; i++) {
      const Instruction& x = code_[items[i]];
      u32 o[3];
      for (u32 l = 0; l < 3; l++) o[l] = operand(l < x.m ? x.literals[l] : never);
      const u32 slot = x.target(0);
      warp.records.push_back({o[0] | o[1] << 16, o[2] | take_register(slot) << 16, slot, nothing});
    }
  }

  // Piece by piece of 32 digits: what its digits count, then their sum. Digits above the operands are the last carry's.
  void add_sum(const Instruction& x) {
    const u32 low = std::min(x.m, x.n_targets), pieces = (low + row_lanes - 1) / row_lanes;
    Warp& warp = least_loaded(8 * pieces + 2);
    for (u32 first = 0; first < x.n_targets; first += row_lanes) {
      const u32 n = std::min(row_lanes, x.n_targets - first), counted = first < low ? std::min(n, low - first) : 0;
      const u32 planes = (counted == 0 ? 0 : static_cast<u32>(std::bit_width(x.k))) << BitHeader::planes_at;
      for (u32 k = 0; counted != 0 && k < x.k; k += bits_per_count) {
        warp.headers.push_back(counted | bits_count << BitHeader::op_at | planes);
        add_count(warp, x, k, first, counted);
      }
      const u32 rest = x.n_targets - first - n;
      const bool last = rest == 0 || (first + n >= low && rest <= BitHeader::max_carries);
      const u32 carries = last ? rest : 0;
      const u32 lanes = std::max(n, carries);
      warp.headers.push_back(lanes | bits_sum << BitHeader::op_at | planes | carries << BitHeader::carries_at |
                             u32{!last} << BitHeader::more_at);
      for (u32 i = 0; i < lanes; i++) {
        const u32 digit = i < n ? x.target(first + i) : nothing;
        const u32 carry = i < carries ? x.target(first + n + i) : nothing;
        const u32 to = digit == nothing ? 0 : take_register(digit), also = carry == nothing ? 0 : take_register(carry);
        warp.records.push_back({to | also << 16, 0, digit, carry});
      }
      if (last) return;
    }
  }
  void add_count(Warp& warp, const Instruction& x, u32 k, u32 first, u32 n) {
    for (u32 i = 0; i < n; i++) {
      u32 o[bits_per_count];
      for (u32 j = 0; j < bits_per_count; j++) {
        o[j] = operand(k + j < x.k ? x.literals[(k + j) * x.m + first + i] : never);
      }
      warp.records.push_back({o[0] | o[1] << 16, o[2] | o[3] << 16, o[4] | o[5] << 16, o[6] | o[7] << 16});
    }
  }

  std::vector<Instruction> code_;
  const Fusion fusion_;  // holds operands of the code
  const std::vector<std::vector<u32>> levels_;
  std::vector<Warp> warps_;
  std::vector<u32> register_, last_read_, free_;
  std::vector<std::vector<u32>> ends_;  // registers that are free behind a level
  BitRows rows_;
};

}  // namespace

std::vector<ProgramPhase> phases_of(const TemplatePlan& plan) {
  std::vector<ProgramPhase> one = Phaser(plan, false).take(), other = Phaser(plan, true).take();
  const auto used = [](const std::vector<ProgramPhase>& phases) {
    return std::count_if(phases.begin(), phases.end(), [](const ProgramPhase& p) { return !p.items.empty(); });
  };
  std::vector<ProgramPhase>& fewest = used(other) < used(one) ? other : one;
  std::erase_if(fewest, [](const ProgramPhase& p) { return p.items.empty(); });
  return std::move(fewest);
}

BitRows schedule_bits(const TemplatePlan& plan, const std::vector<u32>& instructions, u32 warps) {
  return Scheduler(plan, instructions, warps).make();
}

}  // namespace snarkline
