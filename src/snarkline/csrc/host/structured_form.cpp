// Systems as their arrays for devices.
#include "structured_form.h"

#include <algorithm>

namespace snarkline {
namespace {

class Former {
 public:
  SystemForm make(const SystemPlan& system) {
    for (const TemplatePlan& plan : system.templates) add_template(plan);
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

  void add_template(const TemplatePlan& plan) {
    const bool has_bit_code =
        std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.kind == StepKind::bits; });
    form_.templates.push_back({plan.n_rows, plan.n_aux, plan.n_bits, plan.n_wides, size(plan.sums), size(form_.rows),
                               size(form_.columns), size(form_.sums), plan.n_ports, size(form_.ports),
                               has_bit_code ? 0 : size(plan.steps), size(form_.steps), has_bit_code});
    for (u32 tile = 0; tile < plan.n_tiles(); tile++) add_tile(plan, tile);
    add_columns(plan);
    add_sums(plan);
    if (!has_bit_code) add_program(plan);
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
  void add_program(const TemplatePlan& plan) {
    for (u32 j = 0; j < plan.n_ports; j++) {
      RowRecord port = column_of(plan, 1 + j);
      if (plan.port_use[j] & port_written) port.header |= is_written;
      form_.ports.push_back(port);
    }
    std::vector<u32> known(plan.combinations.size(), nothing);
    const auto combination = [&](u32 number) {
      if (known[number] == nothing) {
        known[number] = size(form_.combinations);
        form_.combinations.push_back(record_of(plan, plan.combinations[number]));
      }
      return known[number];
    };
    for (const Step& step : plan.steps) {
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

SystemForm form_of(const SystemPlan& system) { return Former().make(system); }

}  // namespace snarkline
