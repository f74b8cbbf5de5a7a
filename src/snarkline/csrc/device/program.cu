// Witness programs of structured systems (host/structured.h, structured_form.h), steps over field elements, for runs of
// independent instances. `lanes` threads of a warp, a power of two, share an instance: each adds up a part of a long
// combination, and all of them have its value.
#include "division_steps.h"
#include "instances.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 alone = 2;  // of combinations with fewer parts than these each thread adds up all
constexpr u32 kept_terms = 3;

constexpr u32 gathers = 1, publishes = 2;  // what a launch does before the steps and behind them

struct Step {
  u32 kind, target, a, b, c, factor;
};

// What programs share. `powers` are 2^0 ... 2^255.
struct System {
  Wires wires;
  const Step* steps;
  const u32* slots;
  const SumRecord* combinations;
  const Digit* digits;
  const Term* terms;
  const Fr *coefficients, *powers;
};

SNL_DEVICE Fr coefficient_at(const Fr* coefficients, u32 number) {
  if (number == coefficient_one) return Fr::one();
  if (number == coefficient_minus_one) return -Fr::one();
  return load_constant(coefficients + number);
}

// The sum over `lanes` lanes, for each of them. It is reduced when it is complete: an integer below 32 r, so that the
// exchanges have nothing but words to add.
SNL_DEVICE Fr sum_of_lanes(const Fr& x, u32 lanes) {
  u32 sum[9];
  SNL_UNROLL for (u32 i = 0; i < 8; i++) sum[i] = static_cast<u32>(x.v.limb[i / 2] >> (i % 2 * 32));
  sum[8] = 0;
  SNL_ROLLED for (u32 other = lanes / 2; other != 0; other /= 2) {
    u32 theirs[9];
    SNL_UNROLL for (u32 i = 0; i < 9; i++) theirs[i] = __shfl_xor_sync(all_lanes, sum[i], other);
    u64 carry = 0;
    SNL_UNROLL for (u32 i = 0; i < 9; i++) {
      carry += static_cast<u64>(sum[i]) + theirs[i];
      sum[i] = static_cast<u32>(carry);
      carry >>= 32;
    }
  }
  // From the highest words a quotient that is the right one or one less.
  constexpr u64 top = (Fr::modulus.limb[3] >> 32) + 1, inverse = (u64{1} << 56) / top;
  const u64 high = (static_cast<u64>(sum[8]) << 32 | sum[7]) >> 4;  // below 2^32
  const u32 quotient = static_cast<u32>(high * inverse >> 52);
  Fr out;
  u64 product = 0, borrow = 0;
  SNL_UNROLL for (u32 i = 0; i < 8; i++) {
    product += static_cast<u64>(quotient) * static_cast<u32>(Fr::modulus.limb[i / 2] >> (i % 2 * 32));
    const u64 word = static_cast<u64>(sum[i]) - static_cast<u32>(product) - borrow;
    out.v.limb[i / 2] = i % 2 ? out.v.limb[i / 2] | word << 32 : static_cast<u32>(word);
    product >>= 32;
    borrow = word >> 63;
  }
  Int<4> rest = out.v;
  if (!sub_in_place(rest, Fr::modulus)) out.v = rest;
  return out;
}

// One instance, as one of its threads makes it. What it writes is there for the others after `publish`.
class Program {
 public:
  SNL_DEVICE Program(const System& system, const Run& run, const Instance& at, u32 lane, u32 lanes, bool writes)
      : system_(system), run_(run), at_(at), lane_(lane), lanes_(lanes), writes_(writes) {}

  SNL_DEVICE void gather(u64 i, const Fr* publics, u32* bits, Fr* wides) {
    if (writes_) {
      if (lane_ == 0) at_.set(0);
      for (u32 j = lane_; j < run_.n_ports; j += lanes_) {
        const Place to = system_.wires.places[run_.first_port + j];
        const Fr value = system_.wires.value(system_.wires.of_port(run_, i, j), publics, bits, wides);
        write((to.slot << 1) | (to.header >> 31), value);
      }
    }
    __syncwarp();
  }

  SNL_DEVICE void run(const PhaseRecord& phase) {
    SNL_ROLLED for (u32 i = 0; i < phase.count; i++) {
      step(system_.steps[phase.first + i]);
      __syncwarp();
    }
  }

  SNL_DEVICE void publish(u64 i, Fr* publics) {
    if (!writes_) return;
    for (u32 j = lane_; j < run_.n_ports; j += lanes_) {
      const Place from = system_.wires.places[run_.first_port + j];
      const u64 wire = system_.wires.of_port(run_, i, j);
      if (!(from.header & is_written) || wire > system_.wires.n_public) continue;
      store(publics + wire, from.header & is_wide ? load(at_.wide(from.slot))
                            : at_.bit(from.slot)  ? Fr::one()
                                                  : Fr::zero());
    }
  }

 private:
  SNL_DEVICE void step(const Step s) {
    Fr x;
    SNL_ROLLED for (u32 k = 0; k < 3; k++) {  // one copy of the code for combinations
      const u32 number = k == 0 ? s.a : k == 1 ? s.b : s.c;
      if (number == nothing || (k > 0 && (s.kind == code_low_bits || s.kind == code_fifth_power))) break;
      Fr y = k == 1 && s.b == s.a ? x : combine(number);
      if (k == 1) {
        if (s.kind == code_divide) y = inverse_of(y);
        y = x * y;
      }
      x = k == 2 ? x - y : y;
    }
    if (s.kind == code_low_bits) {
      write_low_bits(s, x);
      return;
    }
    if (s.kind == code_fifth_power) {
      write_powers(s, x);
      return;
    }
    if (s.kind == code_inverse) x = inverse_of(x);
    if (s.kind == code_is_zero) x = x.is_zero() ? Fr::one() : Fr::zero();
    if (s.factor == coefficient_minus_one) x = -x;
    if (s.factor < coefficient_minus_one) x = x * load_constant(system_.coefficients + s.factor);
    if (writes_ && lane_ == 0) write(s.target, x);
    last_place_ = s.target;
    last_ = x;
  }
  SNL_DEVICE void write_powers(const Step& s, const Fr& x) {
    Fr power = x;
    SNL_ROLLED for (u32 k = 0; k < 3; k++) {
      power = power * (k == 2 ? x : power);
      last_place_ = k == 0 ? s.target : k == 1 ? s.b : s.c;
      if (writes_ && lane_ == 0) write(last_place_, power);
    }
    last_ = power;
  }
  SNL_DEVICE static Fr inverse_of(const Fr& x) { return x.is_zero() ? x : invert(x); }

  SNL_DEVICE void write(u32 place, const Fr& value) const {
    if (place & 1) {
      store(at_.wide(place >> 1), value);
    } else if (!value.is_zero()) {
      at_.set(place >> 1);
    }
  }
  SNL_DEVICE void write_low_bits(const Step& s, const Fr& x) const {
    if (!writes_) return;
    const auto v = x.to_canonical();
    for (u32 i = lane_; i < s.c && i < 256; i += lanes_) {
      if (v.limb[i / 64] >> (i % 64) & 1) at_.set(system_.slots[s.b + i]);
    }
  }

  // Programs take a long combination several times in a row, and a value right after it was made (x^5).
  SNL_DEVICE Fr combine(u32 number) {
    if (number == kept_number_) return kept_;
    const SumRecord record = load_constant(system_.combinations + number);
    const u32 n = record.n_terms + record.n_masked + record.n_digits;
    if (n == 1 && record.n_terms == 1 && record.constant == no_coefficient) {
      const Term term = system_.terms[record.terms];
      if (term.coefficient == coefficient_one && term.slot * 2 + 1 == last_place_) return last_;
    }
    // As many lanes as there are parts, or all; where these are fewer, others do the same and have the sum as well.
    const u32 wanted = n > alone ? 2u << (31 - __clz(n - 1)) : 1, sharing = wanted < lanes_ ? wanted : lanes_;
    Fr sum = parts(record, lane_ % sharing, sharing);
    if (sharing > 1) sum = sum_of_lanes(sum, sharing);
    if (record.constant != no_coefficient) sum += coefficient_at(system_.coefficients, record.constant);
    if (record.n_terms >= kept_terms) {
      kept_number_ = number;
      kept_ = sum;
    }
    return sum;
  }
  SNL_DEVICE Fr parts(const SumRecord& record, u32 begin, u32 step) const {
    Fr sum = Fr::zero();
    SNL_ROLLED for (u32 i = begin; i < record.n_terms; i += step) {
      const Term term = system_.terms[record.terms + i];
      const Fr x = load(at_.wide(term.slot));
      if (term.coefficient == coefficient_one) {
        sum += x;
      } else if (term.coefficient == coefficient_minus_one) {
        sum -= x;
      } else {
        sum += load_constant(system_.coefficients + term.coefficient) * x;
      }
    }
    SNL_ROLLED for (u32 i = begin; i < record.n_masked; i += step) {
      const Term term = system_.terms[record.masked + i];
      if (at_.bit(term.slot)) sum += coefficient_at(system_.coefficients, term.coefficient);
    }
    SNL_ROLLED for (u32 i = begin; i < record.n_digits; i += step) {
      const Digit digit = system_.digits[record.digits + i];
      if (!at_.bit(digit.slot)) continue;
      const Fr power = load_constant(system_.powers + digit.exponent % 256);
      sum = digit.exponent < 256 ? sum + power : sum - power;
    }
    return sum;
  }

  const System& system_;
  const Run& run_;
  const Instance& at_;
  u32 lane_, lanes_;
  bool writes_;
  u32 kept_number_ = nothing, last_place_ = nothing;
  Fr kept_ = Fr::zero(), last_ = Fr::zero();
};

}  // namespace

// Steps of the instances of a run, whose bits that are not made yet are 0. Threads behind the last do its work once
// more and write nothing. `constants` are powers of two and then coefficients. A phase of `nothing` has no steps.
SNL_KERNEL(128, 4)
run_steps(u32 number, u32 phase_number, u32 lanes, u32 flags, Fr* publics, u32* bits, Fr* wides, const Run* runs,
          const Place* places, const Wiring* wiring, const u32* tables, const PhaseRecord* phases, const Step* steps,
          const u32* slots, const SumRecord* combinations, const Digit* digits, const Term* terms, const Fr* constants,
          u64 n_public) {
  const System system{{runs, number, places, wiring, tables, n_public},
                      steps,
                      slots,
                      combinations,
                      digits,
                      terms,
                      constants + 256,
                      constants};
  const Run run = runs[number];
  const u64 mine = global_index() / lanes, i = mine < run.count ? mine : run.count - 1;
  const Instance at(run, i, bits, wides);
  Program program(system, run, at, threadIdx.x % lanes, lanes, mine < run.count);
  if (flags & gathers) program.gather(i, publics, bits, wides);
  if (phase_number != nothing) {
    program.run(phases[phase_number]);
  }
  if (flags & publishes) program.publish(i, publics);
}

// 1 into `violated` if a row does not hold.
SNL_KERNEL(256, 4) check_rows(u32* violated, const Fr* a, const Fr* b, const Fr* c, u64 n) {
  for (u64 i = global_index(); i < n; i += grid_size()) {
    if (!(load(a + i) * load(b + i) - load(c + i)).is_zero()) *violated = 1;
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
