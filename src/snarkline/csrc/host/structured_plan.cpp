// Templates as their streams.
#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "structured.h"

namespace snarkline {
namespace {

constexpr u32 max_digit_terms = 120;  // of one digit in one layer: LaneKernels::digit_sums allows 127
constexpr u32 max_code = 120;         // rows with larger sums of coefficients are not codes
constexpr int max_digits = 24;        // of a coefficient that is taken apart; beyond, a bit selects the coefficient

// A coefficient as an integer: its magnitude, which is the lesser of k and r - k, and its sign.
struct Coefficient {
  u64 limb[4];
  bool negative, zero, one, minus_one;
  int digits;     // ones in its magnitude
  u64 magnitude;  // if it fits into a word, else ~0
};

Coefficient classify(const u64* k, const u64* r) {
  Coefficient c{};
  u64 other[4], borrow = 0;
  for (int i = 0; i < 4; i++) other[i] = sub_borrow(r[i], k[i], borrow);
  for (int i = 3; i >= 0; i--) {
    if (k[i] != other[i]) {
      c.negative = other[i] < k[i];
      break;
    }
  }
  std::copy_n(c.negative ? other : k, 4, c.limb);
  for (const u64 limb : c.limb) c.digits += std::popcount(limb);
  c.magnitude = (c.limb[1] | c.limb[2] | c.limb[3]) != 0 ? ~u64{0} : c.limb[0];
  c.zero = c.magnitude == 0;
  c.one = c.magnitude == 1 && !c.negative;
  c.minus_one = c.magnitude == 1 && c.negative;
  return c;
}

class Planner {
 public:
  explicit Planner(const TemplateSource& source) : source_(source) {
    plan_.n_ports = source.n_ports;
    plan_.n_aux = source.n_aux;
    plan_.n_rows = static_cast<u32>(source.matrix[0].rows);
    plan_.port_use.resize(source.n_ports);
    plan_.computed.resize(source.n_aux);
    for (u32 column = 0; column < plan_.n_columns(); column++) {
      plan_.place.push_back(source.bits[column] ? 2 * plan_.n_bits++ : 2 * plan_.n_wides++ + 1);
    }
    for (const MatrixSource* matrix : {&source.matrix[0], &source.matrix[1], &source.matrix[2], &source.combinations}) {
      add_coefficients(*matrix);
    }
  }

  TemplatePlan make() {
    plan_program();
    plan_rows();
    plan_transposed();
    plan_.native = inputs_are_ports() ? source_.native : NativeKind::none;
    for (usize i = 0; i < source_.n_native_inputs; i++) {
      note(native_column(source_.native_inputs[i]), port_read);
      plan_.native_inputs.push_back(operand(source_.native_inputs[i]));
    }
    for (usize i = 0; i < source_.n_native_outputs; i++) {
      plan_.native_outputs.push_back(operand(source_.native_outputs[i]));
    }
    plan_.native_parameters.assign(source_.native_parameters,
                                   source_.native_parameters + 4 * source_.n_native_parameters);
    return std::move(plan_);
  }

 private:
  // A matrix's coefficients begin at this number of the plan's.
  u32 first_coefficient(const MatrixSource& matrix) const { return first_.at(&matrix); }
  void add_coefficients(const MatrixSource& matrix) {
    first_[&matrix] = static_cast<u32>(plan_.coefficients.size() / 4);
    u32 n = 0;
    const usize entries = matrix.row_start[matrix.rows];
    for (usize i = 0; i < entries; i++) n = std::max(n, matrix.value[i] + 1);
    plan_.coefficients.insert(plan_.coefficients.end(), matrix.montgomery, matrix.montgomery + 4 * usize{n});
    for (u32 i = 0; i < n; i++) classes_.push_back(classify(matrix.canonical + 4 * usize{i}, source_.modulus));
  }
  u32 number(u32 coefficient) const {
    const Coefficient& c = classes_[coefficient];
    return c.one ? coefficient_one : c.minus_one ? coefficient_minus_one : coefficient;
  }
  u32 literal(u32 l) const { return (plan_.place[l >> 1] & ~u32{1}) | (l & 1); }
  // Of natives: literals over slots, or slots.
  u32 native_column(u32 x) const { return source_.native == NativeKind::poseidon ? x : x >> 1; }
  // A gadget within the template has inputs that its program must compute first: no native then.
  bool inputs_are_ports() const {
    return std::all_of(source_.native_inputs, source_.native_inputs + source_.n_native_inputs,
                       [&](u32 x) { return native_column(x) < plan_.first_aux(); });
  }
  u32 operand(u32 x) const { return source_.native == NativeKind::poseidon ? plan_.place[x] >> 1 : literal(x); }

  struct Entry {
    u32 place, coefficient;
  };
  std::vector<Entry> entries(const MatrixSource& matrix, u32 row, u32 without = ~u32{0}) const {
    std::vector<Entry> out;
    const u32 first = first_coefficient(matrix);
    for (u64 i = matrix.row_start[row]; i < matrix.row_start[row + 1]; i++) {
      const u32 coefficient = first + matrix.value[i];
      if (matrix.column[i] != without && !classes_[coefficient].zero) {
        out.push_back({plan_.place[matrix.column[i]], coefficient});
      }
    }
    return out;
  }

  // Slots by digit.
  using Digits = std::map<u32, std::pair<std::vector<u32>, std::vector<u32>>>;

  // The number of a combination; equal ones have one.
  u32 combine(const std::vector<Entry>& row) {
    std::vector<std::pair<u32, u32>> key;
    for (const Entry& e : row) key.emplace_back(e.place, value_number(e.coefficient));
    std::sort(key.begin(), key.end());
    const auto [found, is_new] = known_.try_emplace(key, static_cast<u32>(plan_.combinations.size()));
    if (is_new) add_combination(row);
    return found->second;
  }
  void add_combination(const std::vector<Entry>& row) {
    Combination out;
    std::vector<u32> terms, masked;
    Digits digits;
    for (const Entry& e : row) {
      const Coefficient& c = classes_[e.coefficient];
      const u32 slot = e.place >> 1;
      if (e.place == 0) {
        out.constant = number(e.coefficient);
      } else if (e.place & 1) {
        terms.insert(terms.end(), {slot, number(e.coefficient)});
      } else if (c.digits > max_digits) {
        masked.insert(masked.end(), {slot, number(e.coefficient)});
      } else {
        for (u32 k = 0; k < 256; k++) {
          if (c.limb[k / 64] >> (k % 64) & 1) (c.negative ? digits[k].second : digits[k].first).push_back(slot);
        }
      }
    }
    out.terms = append(terms);
    out.n_terms = static_cast<u32>(terms.size() / 2);
    out.masked = append(masked);
    out.n_masked = static_cast<u32>(masked.size() / 2);
    out.digits = static_cast<u32>(plan_.words.size());
    out.groups = digits.empty() ? 0 : digits.rbegin()->first / 8 + 1;
    for (; !digits.empty(); out.layers++) append_layer(digits);
    plan_.combinations.push_back(out);
  }
  u32 append(const std::vector<u32>& words) {
    plan_.words.insert(plan_.words.end(), words.begin(), words.end());
    return static_cast<u32>(plan_.words.size() - words.size());
  }
  // Takes up to max_digit_terms slots of each digit.
  void append_layer(Digits& digits) {
    plan_.words.push_back(static_cast<u32>(digits.size()));
    for (auto digit = digits.begin(); digit != digits.end();) {
      auto& [plus, minus] = digit->second;
      const usize n_plus = std::min<usize>(plus.size(), max_digit_terms);
      const usize n_minus = std::min<usize>(minus.size(), max_digit_terms);
      append({digit->first, static_cast<u32>(n_plus), static_cast<u32>(n_minus)});
      for (auto [from, n] : {std::pair{&plus, n_plus}, std::pair{&minus, n_minus}}) {
        append({from->end() - static_cast<std::ptrdiff_t>(n), from->end()});
        from->resize(from->size() - n);
      }
      digit = plus.empty() && minus.empty() ? digits.erase(digit) : std::next(digit);
    }
  }

  // What the program does with a column, if it is a port.
  void note(u32 column, PortUse use) {
    if (column >= 1 && column <= source_.n_ports) plan_.port_use[column - 1] |= use;
  }
  u32 program_literal(u32 l) {
    note(l >> 1, port_read);
    return literal(l);
  }
  u32 program_target(u32 column) {
    note(column, port_written);
    if (column >= plan_.first_aux()) plan_.computed[column - plan_.first_aux()] = 1;
    return plan_.place[column];
  }
  u32 program_row(const MatrixSource& matrix, u32 row, u32 without = ~u32{0}) {
    for (u64 i = matrix.row_start[row]; i < matrix.row_start[row + 1]; i++) {
      if (matrix.column[i] != without) note(matrix.column[i], port_read);
    }
    return combine(entries(matrix, row, without));
  }
  u32 combination(u32 row) { return program_row(source_.combinations, row); }

  void plan_program() {
    const u32* p = source_.code;
    const u32* end = p + source_.n_code;
    while (p < end) {
      const u32 op = *p;
      if (op <= 6) {
        const u32 begin = static_cast<u32>(plan_.bit_code.size());
        while (p < end && *p <= 6) p = bit_instruction(p);
        plan_.steps.push_back({StepKind::bits, 0, begin, static_cast<u32>(plan_.bit_code.size()), 0});
      } else {
        p = field_instruction(p);
      }
    }
  }
  const u32* bit_instruction(const u32* p) {
    static constexpr u32 n_literals[] = {0, 2, 2, 3, 3, 1};
    const u32 op = p[0];
    auto& code = plan_.bit_code;
    if (op < 6) {
      code.push_back(op | (program_target(p[1]) >> 1) << 4);
      for (u32 i = 0; i < n_literals[op]; i++) code.push_back(program_literal(p[2 + i]));
      return p + 2 + n_literals[op];
    }
    const u32 n = p[1], k = p[2], m = p[3];
    code.insert(code.end(), {op | n << 4, k, m});
    p += 4;
    for (u32 i = 0; i < n; i++) code.push_back(program_target(*p++) >> 1);
    for (u32 i = 0; i < k * m; i++) code.push_back(program_literal(*p++));
    return p;
  }
  const u32* field_instruction(const u32* p) {
    const u32 op = p[0];
    if (op == 11) {  // n, row, targets
      std::vector<u32> slots;
      for (u32 i = 0; i < p[1]; i++) slots.push_back(program_target(p[3 + i]) >> 1);
      const u32 at = append(slots);
      plan_.steps.push_back({StepKind::low_bits, 0, combination(p[2]), at, p[1]});
      return p + 3 + p[1];
    }
    Step step{StepKind::linear, program_target(p[1])};
    if (op == 7) {
      step.kind = StepKind::solve;
      step.a = program_row(source_.matrix[0], p[2]);
      step.b = program_row(source_.matrix[1], p[2]);
      step.c = program_row(source_.matrix[2], p[2], p[1]);
      step.factor = inverse(coefficient_of(source_.matrix[2], p[2], p[1]));
    } else {
      step.kind = op == 8    ? StepKind::linear
                  : op == 9  ? StepKind::inverse
                  : op == 10 ? StepKind::is_zero
                             : StepKind::divide;
      step.a = combination(p[2]);
      if (op == 12) step.b = combination(p[3]);
    }
    plan_.steps.push_back(step);
    return p + (op == 12 ? 4 : 3);
  }
  u32 coefficient_of(const MatrixSource& matrix, u32 row, u32 column) const {
    for (u64 i = matrix.row_start[row]; i < matrix.row_start[row + 1]; i++) {
      if (matrix.column[i] == column) return first_coefficient(matrix) + matrix.value[i];
    }
    return no_coefficient;
  }
  // The number of a coefficient's inverse.
  u32 inverse(u32 coefficient) {
    if (classes_[coefficient].one || classes_[coefficient].minus_one) return number(coefficient);
    const auto [found, is_new] = inverses_.try_emplace(coefficient, static_cast<u32>(plan_.coefficients.size() / 4));
    if (is_new) {
      u64 out[4];
      source_.inverse(out, plan_.coefficients.data() + 4 * usize{coefficient});
      plan_.coefficients.insert(plan_.coefficients.end(), out, out + 4);
      classes_.push_back({});  // it is only multiplied by
    }
    return found->second;
  }

  void plan_rows() {
    for (u32 first = 0; first < plan_.n_rows; first += tile_rows) {
      plan_.tiles.push_back({static_cast<u32>(plan_.small.size()), static_cast<u32>(plan_.sums.size())});
      // Rows that are equal within a tile are summed once: x^5 takes one combination three times.
      std::map<u32, u32> known;
      for (const MatrixSource& matrix : source_.matrix) {
        for (u32 r = first; r < std::min(plan_.n_rows, first + tile_rows); r++) plan_row(entries(matrix, r), known);
      }
    }
    plan_.tiles.push_back({static_cast<u32>(plan_.small.size()), static_cast<u32>(plan_.sums.size())});
  }
  void plan_row(const std::vector<Entry>& row, std::map<u32, u32>& known) {
    if (plan_code(row)) return;
    const u32 number = combine(row);
    const auto [found, is_new] = known.try_emplace(number, static_cast<u32>(known.size()));
    if (is_new) plan_.sums.push_back(number);
    plan_.small.push_back(u32{1} << 31 | found->second);
  }
  // Coefficients of the three matrices are told apart by matrix: equal values have one number here.
  u32 value_number(u32 coefficient) {
    const u64* limbs = plan_.coefficients.data() + 4 * usize{coefficient};
    return values_.try_emplace({limbs[0], limbs[1], limbs[2], limbs[3]}, coefficient).first->second;
  }
  // A row of bits whose sum fits into a byte.
  bool plan_code(const std::vector<Entry>& row) {
    u64 total = 0;
    for (const Entry& e : row) {
      const u64 magnitude = classes_[e.coefficient].magnitude;
      if (e.place & 1 || magnitude > max_code || (total += magnitude) > max_code) return false;
    }
    std::vector<u32> plus, minus;
    int constant = 0;
    for (const Entry& e : row) {
      const Coefficient& c = classes_[e.coefficient];
      if (e.place == 0) {
        constant = c.negative ? -static_cast<int>(c.magnitude) : static_cast<int>(c.magnitude);
      } else {
        auto& slots = c.negative ? minus : plus;
        slots.insert(slots.end(), c.magnitude, e.place >> 1);
      }
    }
    plan_.small.push_back(static_cast<u32>(plus.size()) | static_cast<u32>(minus.size()) << 8 |
                          (static_cast<u32>(constant) & 0xff) << 16);
    plan_.small.insert(plan_.small.end(), plus.begin(), plus.end());
    plan_.small.insert(plan_.small.end(), minus.begin(), minus.end());
    return true;
  }

  void plan_transposed() {
    for (int side = 0; side < 3; side++) {
      const MatrixSource& matrix = source_.matrix[side];
      SparseRows& rows = plan_.rows[side];
      for (usize r = 0; r <= matrix.rows; r++) rows.row_start.push_back(static_cast<u32>(matrix.row_start[r]));
      rows.column.assign(matrix.column, matrix.column + matrix.row_start[matrix.rows]);
      for (usize i = 0; i < rows.column.size(); i++) {
        rows.coefficient.push_back(number(first_coefficient(matrix) + matrix.value[i]));
      }
    }
  }

  const TemplateSource& source_;
  TemplatePlan plan_;
  std::map<const MatrixSource*, u32> first_;
  std::vector<Coefficient> classes_;
  std::map<u32, u32> inverses_;
  std::map<std::vector<u64>, u32> values_;
  std::map<std::vector<std::pair<u32, u32>>, u32> known_;
};

}  // namespace

TemplatePlan plan_template(const TemplateSource& source) { return Planner(source).make(); }

}  // namespace snarkline
