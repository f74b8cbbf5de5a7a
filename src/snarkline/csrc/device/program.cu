// Witness programs of structured systems (host/structured.h, structured_form.h): runs of independent instances whose
// steps are over field elements. `lanes` threads of a warp, a power of two, share an instance: each adds up a part of a
// long combination, and all of them have its value.
#include "../common/records.h"
#include "access.h"
#include "division_steps.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u32 warp_size = 32, all_lanes = ~0u;
constexpr u32 alone = 2;  // of combinations with fewer parts than these each thread adds up all
constexpr u32 kept_terms = 3;

// (a b - c) factor for solve; a; 1 / a; whether it is 0; its bits; a / b. 1 / 0 is 0.
enum Kind : u32 { bit_code, solve, linear, inverse, is_zero, low_bits, divide };

// A run and its template. Its ports' wiring begins at `first_wiring`, or its table at `table`.
struct Run {
  u64 count, first_wire, bits, wides, table;
  u32 words, n_aux, n_bits, n_wides, first_column, n_ports, first_port, first_wiring, has_table, n_steps, first_step,
      unused;
};
struct Place {
  u32 header, slot;
};
struct Wiring {
  u64 base, stride;
};
struct Step {
  u32 kind, target, a, b, c, factor;
};

// What all runs share. `places` are those of columns and of ports; `powers` 2^0 ... 2^255.
struct System {
  const Run* runs;
  u32 n_before;  // runs whose values are there
  const Place* places;
  const Wiring* wiring;
  const u32* tables;
  const Step* steps;
  const u32* slots;
  const SumRecord* combinations;
  const Digit* digits;
  const Term* terms;
  const Fr *coefficients, *powers;
  u64 n_public;
};

// Where an instance's values are: bit `shift` of words[slot * bit_stride], and wides[slot * wide_stride].
struct Instance {
  u32* words;
  Fr* wides;
  u32 bit_stride, wide_stride, shift;

  SNL_DEVICE Instance(const Run& run, u64 i, u32* bits, Fr* elements) {
    const u64 group = i / 64 * 64, batch = i / 64 / run.words, word = i / 64 % run.words;
    words = bits + 2 * (run.bits + batch * run.n_bits * run.words + word) + i / 32 % 2;
    bit_stride = 2 * run.words;
    shift = static_cast<u32>(i % 32);
    wide_stride = static_cast<u32>(run.count - group < 64 ? run.count - group : 64);
    wides = elements + run.wides + group * run.n_wides + i % 64;
  }
  // Other threads of the warp set bits in between.
  SNL_DEVICE bool bit(u32 slot) const {
    return *const_cast<const volatile u32*>(words + u64{slot} * bit_stride) >> shift & 1;
  }
  SNL_DEVICE void set(u32 slot) const { atomicOr(words + u64{slot} * bit_stride, 1u << shift); }
  SNL_DEVICE Fr* wide(u32 slot) const { return wides + u64{slot} * wide_stride; }
};

SNL_DEVICE Fr coefficient_at(const Fr* coefficients, u32 number) {
  if (number == coefficient_one) return Fr::one();
  if (number == coefficient_minus_one) return -Fr::one();
  return load_constant(coefficients + number);
}

SNL_DEVICE Fr value_of_wire(const System& system, u64 wire, const Fr* publics, u32* bits, Fr* wides) {
  if (wire <= system.n_public) return load(publics + wire);
  u32 low = 0, high = system.n_before;  // the last run that begins at the wire or before
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    (system.runs[middle].first_wire <= wire ? low : high) = middle;
  }
  const Run& run = system.runs[low];
  const u32 offset = static_cast<u32>(wire - run.first_wire);
  const Instance from(run, offset / run.n_aux, bits, wides);
  const Place place = system.places[run.first_column + offset % run.n_aux];
  if (place.header & is_wide) return load(from.wide(place.slot));
  return from.bit(place.slot) ? Fr::one() : Fr::zero();
}

SNL_DEVICE u64 port_wire(const System& system, const Run& run, u64 i, u32 port) {
  if (run.has_table) return system.tables[run.table + i * run.n_ports + port];
  const Wiring wiring = system.wiring[run.first_wiring + port];
  return wiring.base + i * wiring.stride;
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
        const Place to = system_.places[run_.first_port + j];
        const Fr value = value_of_wire(system_, port_wire(system_, run_, i, j), publics, bits, wides);
        write((to.slot << 1) | (to.header >> 31), value);
      }
    }
    __syncwarp();
  }

  SNL_DEVICE void run() {
    SNL_ROLLED for (u32 i = 0; i < run_.n_steps; i++) {
      step(system_.steps[run_.first_step + i]);
      __syncwarp();
    }
  }

  SNL_DEVICE void publish(u64 i, Fr* publics) {
    if (!writes_) return;
    for (u32 j = lane_; j < run_.n_ports; j += lanes_) {
      const Place from = system_.places[run_.first_port + j];
      const u64 wire = port_wire(system_, run_, i, j);
      if (!(from.header & is_written) || wire > system_.n_public) continue;
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
      if (number == nothing || (k > 0 && s.kind == low_bits)) break;
      Fr y = k == 1 && s.b == s.a ? x : combine(number);
      if (k == 1) {
        if (s.kind == divide) y = inverse_of(y);
        y = x * y;
      }
      x = k == 2 ? x - y : y;
    }
    if (s.kind == low_bits) {
      write_low_bits(s, x);
      return;
    }
    if (s.kind == inverse) x = inverse_of(x);
    if (s.kind == is_zero) x = x.is_zero() ? Fr::one() : Fr::zero();
    if (s.factor == coefficient_minus_one) x = -x;
    if (s.factor < coefficient_minus_one) x = x * load_constant(system_.coefficients + s.factor);
    if (writes_ && lane_ == 0) write(s.target, x);
    last_place_ = s.target;
    last_ = x;
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
    const SumRecord& record = system_.combinations[number];
    const u32 n = record.n_terms + record.n_masked + record.n_digits;
    if (n == 1 && record.n_terms == 1 && record.constant == no_coefficient) {
      const Term term = system_.terms[record.terms];
      if (term.coefficient == coefficient_one && term.slot * 2 + 1 == last_place_) return last_;
    }
    const bool shared = lanes_ > 1 && n > alone;
    Fr sum = parts(record, shared ? lane_ : 0, shared ? lanes_ : 1);
    if (shared) {
      SNL_ROLLED for (u32 other = lanes_ / 2; other != 0; other /= 2) {
        Fr theirs;
        SNL_UNROLL for (int i = 0; i < 4; i++) {
          const u64 limb = sum.v.limb[i];
          const u32 low = __shfl_xor_sync(all_lanes, static_cast<u32>(limb), other);
          const u32 high = __shfl_xor_sync(all_lanes, static_cast<u32>(limb >> 32), other);
          theirs.v.limb[i] = low | static_cast<u64>(high) << 32;
        }
        sum += theirs;
      }
    }
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

// The instances of a run, whose bits are 0 before. Threads behind the last do its work once more and write nothing.
// `constants` are powers of two and then coefficients.
SNL_KERNEL(128, 4)
run_program(u32 number, u32 lanes, Fr* publics, u32* bits, Fr* wides, const Run* runs, const Place* places,
            const Wiring* wiring, const u32* tables, const Step* steps, const u32* slots, const SumRecord* combinations,
            const Digit* digits, const Term* terms, const Fr* constants, u64 n_public) {
  const System system{runs,         number, places, wiring,          tables,    steps,   slots,
                      combinations, digits, terms,  constants + 256, constants, n_public};
  const Run run = runs[number];
  const u64 mine = global_index() / lanes, i = mine < run.count ? mine : run.count - 1;
  const Instance at(run, i, bits, wides);
  Program program(system, run, at, threadIdx.x % lanes, lanes, mine < run.count);
  program.gather(i, publics, bits, wides);
  program.run();
  if (run.count == 1) program.publish(i, publics);
}

// 1 into `violated` if a row does not hold.
SNL_KERNEL(256, 4) check_rows(u32* violated, const Fr* a, const Fr* b, const Fr* c, u64 n) {
  for (u64 i = global_index(); i < n; i += grid_size()) {
    if (!(load(a + i) * load(b + i) - load(c + i)).is_zero()) *violated = 1;
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
