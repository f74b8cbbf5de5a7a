// Systems as their arrays for devices.
#include "structured_form.h"

#include <algorithm>

#include "bit_rows.h"

namespace snarkline {
namespace {

static_assert(static_cast<u32>(StepKind::solve) == code_solve && static_cast<u32>(StepKind::divide) == code_divide);

class Former {
 public:
  SystemForm make(const SystemPlan& system, usize first_program, u32 warps) {
    std::vector<u8> runs(system.templates.size());
    for (usize i = first_program; i < system.runs.size(); i++) runs[system.runs[i].plan] = 1;
    for (usize i = 0; i < runs.size(); i++) add_template(system.templates[i], runs[i] ? warps : 0);
    for (const RunPlan& r : system.runs) {
      form_.runs.push_back(
          {r.plan, r.count, r.first_row, r.first_wire, r.words, r.bits, r.wides, r.first_sum, u64{r.chain}});
    }
    return std::move(form_);
  }

 private:
  template <class T>
  static u32 size(const std::vector<T>& v) {
    return static_cast<u32>(v.size());
  }

  // The program is left out where there are no warps.
  void add_template(const TemplatePlan& plan, u32 warps) {
    form_.templates.push_back({plan.n_rows, plan.n_aux, plan.n_bits, plan.n_wides, size(plan.sums), size(form_.rows),
                               size(form_.columns), size(form_.sums), plan.n_ports, size(form_.ports), size(plan.steps),
                               0, size(form_.phases)});
    for (u32 tile = 0; tile < plan.n_tiles(); tile++) add_tile(plan, tile);
    add_columns(plan);
    add_sums(plan);
    if (warps != 0) add_program(plan, warps);
    form_.templates.back().n_phases = size(form_.phases) - form_.templates.back().first_phase;
    form_.coefficients.insert(form_.coefficients.end(), plan.coefficients.begin(), plan.coefficients.end());
    first_coefficient_ = size(form_.coefficients) / 4;
  }

  void add_tile(const TemplatePlan& plan, u32 tile) {
    const u32* p = plan.small.data() + plan.tiles[tile].small;
    const u32 rows = std::min(tile_rows, plan.n_rows - tile * tile_rows);
    for (u32 side = 0; side < 3; side++) {
      for (u32 r = 0; r < rows; r++) {
        const u32 header = *p++, n = (header & 0xff) + (header >> 8 & 0xff);
        if (header & is_wide) {
          form_.rows.push_back({is_wide, plan.tiles[tile].first_sum + (header & ~is_wide)});
        } else if (n == 1) {
          form_.rows.push_back({header, *p++});
        } else {
          form_.rows.push_back({header, size(form_.slots)});
          form_.slots.insert(form_.slots.end(), p, p + n);
          p += n;
        }
      }
      form_.rows.resize(form_.rows.size() + tile_rows - rows);
    }
  }

  void add_columns(const TemplatePlan& plan) {
    for (u32 column = plan.first_aux(); column < plan.n_columns(); column++) {
      form_.columns.push_back(column_of(plan, column));
    }
    const usize tiles = (form_.columns.size() + tile_rows - 1) / tile_rows;
    form_.columns.resize(tiles * tile_rows);
  }

  static RowRecord column_of(const TemplatePlan& plan, u32 column) {
    const u32 at = plan.place[column];
    return {at & 1 ? is_wide : 1, at >> 1};
  }
  void add_program(const TemplatePlan& plan, u32 warps) {
    for (u32 j = 0; j < plan.n_ports; j++) {
      RowRecord port = column_of(plan, 1 + j);
      if (plan.port_use[j] & port_written) port.header |= is_written;
      form_.ports.push_back(port);
    }
    std::vector<u32> known(plan.combinations.size(), nothing);
    for (const ProgramPhase& phase : phases_of(plan)) {
      if (phase.bits) {
        add_bits(schedule_bits(plan, phase.items, warps));
      } else {
        form_.phases.push_back({0, size(form_.steps), 0, 0, 0, 0});
        for (usize i = 0; i < phase.items.size();) i += add_steps(plan, phase.items, i, known);
        form_.phases.back().count = size(form_.steps) - form_.phases.back().first;
      }
    }
  }
  // One step, or three as one; how many.
  u32 add_steps(const TemplatePlan& plan, const std::vector<u32>& items, usize i, std::vector<u32>& known) {
    const Step& first = plan.steps[items[i]];
    add_step(plan, first, known);
    if (i + 2 >= items.size()) return 1;
    const Step &second = plan.steps[items[i + 1]], &third = plan.steps[items[i + 2]];
    for (const Step* step : {&first, &second, &third}) {
      if (step->kind != StepKind::solve || step->factor != coefficient_one || !is_nothing(plan.combinations[step->c])) {
        return 1;
      }
    }
    const auto takes = [&](u32 number, u32 place) { return is_value(plan, plan.combinations[number], place); };
    const bool fifth =
        first.a == first.b && takes(second.a, first.target) && takes(second.b, first.target) &&
        (third.a == first.a ? takes(third.b, second.target) : third.b == first.a && takes(third.a, second.target));
    if (!fifth) return 1;
    StepRecord& out = form_.steps.back();
    out.kind = code_fifth_power;
    out.b = second.target;
    out.c = third.target;
    return 3;
  }
  // Whether a combination is the field element at a place.
  static bool is_value(const TemplatePlan& plan, const Combination& k, u32 place) {
    return k.n_terms == 1 && k.n_masked + k.layers == 0 && k.constant == no_coefficient &&
           2 * plan.words[k.terms] + 1 == place && plan.words[k.terms + 1] == coefficient_one;
  }
  void add_step(const TemplatePlan& plan, const Step& step, std::vector<u32>& known) {
    const auto combination = [&](u32 number) {
      if (known[number] == nothing) {
        known[number] = size(form_.combinations);
        form_.combinations.push_back(record_of(plan, plan.combinations[number]));
      }
      return known[number];
    };
    StepRecord out{static_cast<u32>(step.kind), step.target, combination(step.a), nothing, nothing,
                   coefficient(step.factor)};
    if (step.kind == StepKind::low_bits) {
      out.b = size(form_.slots);
      out.c = step.c;
      const auto first = plan.words.begin() + step.b;
      form_.slots.insert(form_.slots.end(), first, first + step.c);
    } else if (step.kind == StepKind::divide || step.kind == StepKind::solve) {
      out.b = combination(step.b);
    }
    if (step.kind == StepKind::solve && !is_nothing(plan.combinations[step.c])) out.c = combination(step.c);
    form_.steps.push_back(out);
  }
  void add_bits(const BitRows& rows) {
    form_.phases.push_back(
        {1, size(form_.bit_streams), size(rows.streams), size(form_.bit_inputs), size(rows.inputs), rows.n_registers});
    for (const BitStream& s : rows.streams) {
      form_.bit_streams.push_back(
          {size(form_.bit_headers) + s.first_row, s.n_rows, size(form_.bit_records) + s.first_record, 0});
    }
    form_.bit_inputs.insert(form_.bit_inputs.end(), rows.inputs.begin(), rows.inputs.end());
    form_.bit_headers.insert(form_.bit_headers.end(), rows.headers.begin(), rows.headers.end());
    form_.bit_records.insert(form_.bit_records.end(), rows.records.begin(), rows.records.end());
  }
  static bool is_nothing(const Combination& k) {
    return k.n_terms + k.n_masked + k.layers == 0 && k.constant == no_coefficient;
  }

  // Tiles that take the same combination share what it is made of.
  void add_sums(const TemplatePlan& plan) {
    std::vector<u32> known(plan.combinations.size(), ~u32{0});
    for (const u32 number : plan.sums) {
      if (known[number] == ~u32{0}) {
        known[number] = size(form_.sums);
        form_.sums.push_back(record_of(plan, plan.combinations[number]));
      } else {
        form_.sums.push_back(SumRecord{form_.sums[known[number]]});
      }
    }
  }
  SumRecord record_of(const TemplatePlan& plan, const Combination& k) {
    SumRecord out{};
    out.digits = size(form_.digits);
    add_digits(plan.words.data() + k.digits, k.layers);
    out.n_digits = size(form_.digits) - out.digits;
    out.terms = add_terms(plan.words.data() + k.terms, k.n_terms);
    out.n_terms = k.n_terms;
    out.masked = add_terms(plan.words.data() + k.masked, k.n_masked);
    out.n_masked = k.n_masked;
    out.constant = coefficient(k.constant);
    return out;
  }
  void add_digits(const u32* p, u32 layers) {
    const auto first = static_cast<std::ptrdiff_t>(form_.digits.size());
    for (; layers != 0; layers--) {
      for (u32 digits = *p++; digits != 0; digits--) {
        const u32 exponent = p[0], plus = p[1], minus = p[2];
        p += 3;
        for (u32 i = 0; i < plus + minus; i++) form_.digits.push_back({*p++, exponent + (i < plus ? 0 : 256)});
      }
    }
    std::sort(form_.digits.begin() + first, form_.digits.end(),
              [](const Digit& a, const Digit& b) { return a.exponent % 256 < b.exponent % 256; });
  }
  u32 add_terms(const u32* p, u32 n) {
    for (u32 i = 0; i < n; i++, p += 2) form_.terms.push_back({p[0], coefficient(p[1])});
    return size(form_.terms) - n;
  }
  u32 coefficient(u32 number) const { return number >= coefficient_minus_one ? number : first_coefficient_ + number; }

  SystemForm form_;
  u32 first_coefficient_ = 0;
};

}  // namespace

SystemForm form_of(const SystemPlan& system, usize first_program, u32 warps) {
  return Former().make(system, first_program, warps);
}

}  // namespace snarkline
