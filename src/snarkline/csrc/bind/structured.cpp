// Face of host/structured.h. Arrays are checked for their shapes here; what they say is checked in Python
// (r1cs/structured_check.py) before a system is made of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <memory>

#include "../host/isa.h"
#include "../host/lanes.h"
#include "../host/structured.h"
#include "../host/structured_form.h"
#include "array.h"
#include "bind.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

constexpr Py_ssize_t fr_limbs = 4;
using Shape = std::initializer_list<Py_ssize_t>;

NativeKind parse_native(const std::string& name) {
  if (name == "sha256_compress") return NativeKind::sha256_compress;
  if (name == "poseidon") return NativeKind::poseidon;
  return NativeKind::none;  // the program does without
}

std::string best_set(const std::string& isa) { return isa == "auto" ? instruction_sets().back() : isa; }

// One matrix of a template: (row_start, column, value, coefficients), coefficients in Montgomery form.
class MatrixArrays {
 public:
  MatrixArrays(const nb::tuple& arrays, const FieldKernels& fr)
      : row_start_(arrays[0], "row_start", {any_length}, false),
        column_(arrays[1], "column", {any_length}, false),
        value_(arrays[2], "value", {static_cast<Py_ssize_t>(column_.length())}, false),
        coefficients_(arrays[3], "coefficients", {any_length, fr_limbs}, false),
        canonical_(4 * coefficients_.length()) {
    fr.to_canonical(canonical_.data(), coefficients_.data(), coefficients_.length(), Exec{});
  }
  MatrixSource source() const {
    return {row_start_.length() - 1, row_start_.data(), column_.data(),
            value_.data(),           canonical_.data(), coefficients_.data()};
  }

 private:
  Array<u64> row_start_;
  Array<u32> column_, value_;
  Array<u64> coefficients_;
  std::vector<u64> canonical_;
};

class System {
 public:
  System(const std::string& curve, u64 n_wires, u64 n_public, const std::string& isa, const std::string& lanes)
      : curve_(find_kernels(curve, best_set(isa))),
        kernels_(find_structured_kernels(curve.c_str(), best_set(isa).c_str())) {
    if (curve_ == nullptr || kernels_ == nullptr) refuse("curve and isa", "known names", curve + ", " + isa);
    plan_.lanes = lanes == "auto" ? &lane_kernels() : find_lanes(lanes.c_str());
    if (plan_.lanes == nullptr) refuse("lanes", "'auto', 'base', or a vector length of this processor", lanes);
    plan_.n_wires = n_wires;
    plan_.n_public = n_public;
  }

  void add_template(u32 n_ports, u32 n_aux, nb::handle bits, nb::list matrices, nb::handle code,
                    const std::string& native, nb::handle inputs, nb::handle outputs, nb::handle parameters) {
    const Array<u8> is_bit(bits, "bits", {Py_ssize_t{1} + n_ports + n_aux}, false);
    std::deque<MatrixArrays> held;
    for (nb::handle matrix : matrices) held.emplace_back(nb::cast<nb::tuple>(matrix), curve_->fr);
    if (held.size() != 4) refuse("matrices", "4 of them", std::to_string(held.size()));
    const Array<u32> words(code, "code", {any_length}, false);
    const Array<u32> in(inputs, "native_inputs", {any_length}, false);
    const Array<u32> out(outputs, "native_outputs", {any_length}, false);
    const Array<u64> constants(parameters, "native_parameters", {any_length, fr_limbs}, false);
    plan_.templates.push_back(plan_template({n_ports,
                                             n_aux,
                                             is_bit.data(),
                                             {held[0].source(), held[1].source(), held[2].source()},
                                             held[3].source(),
                                             words.data(),
                                             words.length(),
                                             curve_->fr.modulus,
                                             kernels_->inverse,
                                             parse_native(native),
                                             in.data(),
                                             in.length(),
                                             out.data(),
                                             out.length(),
                                             constants.data(),
                                             constants.length()}));
  }

  void add_run_of(u32 plan, u64 count, u64 first_row, u64 first_wire, nb::handle base, nb::handle stride,
                  nb::handle table) {
    if (plan >= plan_.templates.size()) refuse("template", "one that was added", std::to_string(plan));
    const Array<u64> from(base, "base", {any_length}, false), step(stride, "stride", {any_length}, false);
    const Array<u32> wires(table, "table", {any_length}, false);
    RunPlan run{};
    run.plan = plan;
    run.count = count;
    run.first_row = first_row;
    run.first_wire = first_wire;
    for (usize i = 0; i < from.length(); i++) run.base.push_back(static_cast<i64>(from.data()[i]));
    for (usize i = 0; i < step.length(); i++) run.stride.push_back(static_cast<i64>(step.data()[i]));
    run.table.assign(wires.data(), wires.data() + wires.length());
    const usize ports = plan_.templates[plan].n_ports;
    if (run.table.empty() ? (run.base.size() != ports || run.stride.size() != ports)
                          : run.table.size() != ports * count) {
      refuse("ports", "wires of each of them", "others");
    }
    add_run(plan_, std::move(run));
  }

  Py_ssize_t give(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides, nb::handle wires,
                  nb::handle are_bits, nb::handle given, Py_ssize_t n_runs) const {
    const Store store(*this, publics, bits, wides, true, runs(n_runs));
    const Array<u32> at(wires, "wires", {any_length}, false);
    const u64 end = runs(n_runs) < plan_.runs.size() ? plan_.runs[runs(n_runs)].first_wire : plan_.n_wires;
    for (usize i = 0; i < at.length(); i++) {
      if (at.data()[i] >= end) refuse("wires", "those of the runs", std::to_string(at.data()[i]));
    }
    const Array<u8> flags(are_bits, "are_bits", {static_cast<Py_ssize_t>(at.length())}, false);
    const Array<u64> v(given, "given", {static_cast<Py_ssize_t>(at.length()), fr_limbs}, false);
    const usize found = interruptible(threads, [&](const Exec& exec) {
      return kernels_->give(plan_, store.values(), at.data(), flags.data(), v.data(), at.length(), exec);
    });
    return found == npos ? -1 : static_cast<Py_ssize_t>(found);
  }
  void run(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides, Py_ssize_t n_runs) const {
    const Store store(*this, publics, bits, wides, true, runs(n_runs));
    interruptible(threads, [&](const Exec& exec) { kernels_->run(plan_, store.values(), runs(n_runs), exec); });
  }
  Py_ssize_t pack(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides, nb::handle wires) const {
    const Store store(*this, publics, bits, wides, true);
    const Array<u64> w(wires, "wires", {size(plan_.n_wires), fr_limbs}, false);
    const usize found =
        interruptible(threads, [&](const Exec& exec) { return kernels_->pack(plan_, store.values(), w.data(), exec); });
    return found == npos ? -1 : static_cast<Py_ssize_t>(found);
  }
  void expand(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides, nb::handle out) const {
    const Store store(*this, publics, bits, wides, false);
    const Array<u64> o(out, "out", {size(plan_.n_wires), fr_limbs}, true);
    interruptible(threads, [&](const Exec& exec) { kernels_->expand(plan_, store.values(), o.data(), exec); });
  }
  void read(nb::handle publics, nb::handle bits, nb::handle wides, nb::handle wires, nb::handle out) const {
    const Store store(*this, publics, bits, wides, false);
    const Array<u32> at(wires, "wires", {any_length}, false);
    const Array<u64> o(out, "out", {static_cast<Py_ssize_t>(at.length()), fr_limbs}, true);
    kernels_->read(plan_, store.values(), at.data(), o.data(), at.length());
  }
  void evaluate(unsigned threads, const nb::list& witnesses, const nb::list& out) const {
    if (witnesses.size() != out.size()) refuse("out", "three arrays for each witness", std::to_string(out.size()));
    std::deque<Store> stores;
    std::deque<Array<u64>> held;
    std::vector<Values> values;
    std::vector<RowProducts> products;
    for (usize k = 0; k < witnesses.size(); k++) {
      const nb::tuple w = nb::cast<nb::tuple>(witnesses[k]), abc = nb::cast<nb::tuple>(out[k]);
      if (w.size() != 3 || abc.size() != 3) refuse("witnesses and out", "tuples of three arrays", "others");
      values.push_back(stores.emplace_back(*this, w[0], w[1], w[2], false).values());
      RowProducts to{};
      for (usize side = 0; side < 3; side++) {
        to.side[side] = held.emplace_back(abc[side], "out", Shape{size(plan_.n_rows), fr_limbs}, true).data();
      }
      products.push_back(to);
    }
    interruptible(threads, [&](const Exec& exec) {
      kernels_->evaluate(plan_, values.data(), products.data(), values.size(), exec);
    });
  }
  void evaluate_codes(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides, nb::handle codes,
                      nb::handle sums) const {
    const Store store(*this, publics, bits, wides, false);
    const Array<u8> bytes(codes, "codes", {3, size(plan_.n_rows)}, true);
    const Array<u64> s(sums, "sums", {size(plan_.n_sums), fr_limbs}, true);
    interruptible(threads, [&](const Exec& exec) {
      kernels_->evaluate_codes(plan_, store.values(), reinterpret_cast<i8*>(bytes.data()), s.data(), exec);
    });
  }
  void expand_codes(unsigned threads, nb::handle codes, nb::handle sums, nb::handle a, nb::handle b,
                    nb::handle c) const {
    const Array<u8> bytes(codes, "codes", {3, size(plan_.n_rows)}, false);
    const Array<u64> s(sums, "sums", {size(plan_.n_sums), fr_limbs}, false);
    const Array<u64> x = rows(a, "a"), y = rows(b, "b"), z = rows(c, "c");
    interruptible(threads, [&](const Exec& exec) {
      kernels_->expand_codes(plan_, reinterpret_cast<const i8*>(bytes.data()), s.data(), x.data(), y.data(), z.data(),
                             exec);
    });
  }
  Py_ssize_t first_violation(unsigned threads, nb::handle publics, nb::handle bits, nb::handle wides) const {
    const Store store(*this, publics, bits, wides, false);
    return static_cast<Py_ssize_t>(interruptible(
        threads, [&](const Exec& exec) { return kernels_->first_violation(plan_, store.values(), exec); }));
  }
  void transposed(unsigned threads, nb::handle v, nb::handle a, nb::handle b, nb::handle c) const {
    const Array<u64> x = rows(v, "v");
    const Array<u64> o0(a, "a", {size(plan_.n_wires), fr_limbs}, true),
        o1(b, "b", {size(plan_.n_wires), fr_limbs}, true), o2(c, "c", {size(plan_.n_wires), fr_limbs}, true);
    interruptible(threads, [&](const Exec& exec) {
      kernels_->transposed(plan_, x.data(), {o0.data(), o1.data(), o2.data()}, exec);
    });
  }

  nb::dict form(Py_ssize_t first_program, unsigned warps) const {
    const SystemForm form = form_of(plan_, runs(first_program), warps);
    nb::dict out;
    const auto put = [&](const char* name, const auto& items) {
      out[name] = nb::bytes(items.data(), items.size() * sizeof(items[0]));
    };
    put("templates", form.templates);
    put("runs", form.runs);
    put("rows", form.rows);
    put("columns", form.columns);
    put("slots", form.slots);
    put("sums", form.sums);
    put("ports", form.ports);
    put("combinations", form.combinations);
    put("steps", form.steps);
    put("phases", form.phases);
    put("bit_inputs", form.bit_inputs);
    put("bit_streams", form.bit_streams);
    put("bit_headers", form.bit_headers);
    put("bit_records", form.bit_records);
    put("digits", form.digits);
    put("terms", form.terms);
    put("coefficients", form.coefficients);
    return out;
  }
  nb::tuple sizes() const { return nb::make_tuple(plan_.n_bit_words, plan_.n_wide_values, plan_.n_sums); }
  nb::tuple sizes_of(Py_ssize_t n_runs) const { return nb::make_tuple(bits_of(runs(n_runs)), wides_of(runs(n_runs))); }
  usize n_bytes() const {
    usize total = 0;
    for (const TemplatePlan& t : plan_.templates) {
      total += 4 * (t.place.size() + t.words.size() + t.bit_code.size() + t.small.size() + t.sums.size()) +
               sizeof(Combination) * t.combinations.size() + sizeof(Step) * t.steps.size() + 8 * t.coefficients.size() +
               sizeof(Tile) * t.tiles.size();
      for (const SparseRows& r : t.rows) total += 4 * (r.row_start.size() + 2 * r.column.size());
    }
    for (const RunPlan& r : plan_.runs) total += sizeof(RunPlan) + 16 * r.base.size() + 4 * r.table.size();
    return total;
  }

 private:
  static Py_ssize_t size(u64 n) { return static_cast<Py_ssize_t>(n); }
  // How many runs an argument stands for: -1 for all.
  usize runs(Py_ssize_t n) const { return std::min(static_cast<usize>(n), plan_.runs.size()); }
  // Values of the first runs lie before those of the others.
  u64 bits_of(usize n_runs) const { return n_runs < plan_.runs.size() ? plan_.runs[n_runs].bits : plan_.n_bit_words; }
  u64 wides_of(usize n_runs) const {
    return n_runs < plan_.runs.size() ? plan_.runs[n_runs].wides : plan_.n_wide_values;
  }
  Array<u64> rows(nb::handle array, const char* name) const {
    return Array<u64>(array, name, {size(plan_.n_rows), fr_limbs}, true);
  }

  class Store {
   public:
    Store(const System& system, nb::handle publics, nb::handle bits, nb::handle wides, bool writable,
          usize n_runs = npos)
        : publics_(publics, "publics", {size(system.plan_.n_public) + 1, fr_limbs}, writable),
          bits_(bits, "bits", {size(system.bits_of(n_runs))}, writable),
          wides_(wides, "wides", {size(system.wides_of(n_runs)), fr_limbs}, writable) {}
    Values values() const { return {publics_.data(), bits_.data(), wides_.data()}; }

   private:
    Array<u64> publics_, bits_, wides_;
  };

  const CurveKernels* curve_;
  const StructuredKernels* kernels_;
  SystemPlan plan_;
};

// Values of rows must be below the modulus: the caller sees to that.
void poseidon_rows(const std::string& curve, unsigned threads, nb::handle parameters, nb::handle rows, nb::handle out) {
  const StructuredKernels* k = find_structured_kernels(curve.c_str(), best_set("auto").c_str());
  if (k == nullptr) throw nb::value_error(("unknown curve " + curve).c_str());
  const Array<u64> p(parameters, "parameters", {any_length, fr_limbs}, false);
  const Array<u64> o(out, "out", {any_length, fr_limbs}, true), r(rows, "rows", {any_length, fr_limbs}, false);
  const usize n = o.length(), arity = n ? r.length() / n : 0;
  if (r.length() != n * arity) throw nb::value_error("rows: as many elements for each of `out` are needed");
  bool known = true;
  interruptible(threads, [&](const Exec& exec) {
    known = n == 0 || k->poseidon_rows(o.data(), r.data(), n, arity, p.data(), p.length(), exec);
  });
  if (!known) throw nb::value_error("parameters: none of Poseidon, or for another number of inputs");
}

}  // namespace

void bind_structured(nb::module_& m) {
  using nb::arg;
  m.def("poseidon_rows", poseidon_rows, arg("curve"), arg("threads"), arg("parameters"), arg("rows"), arg("out"));
  using S = System;
  nb::class_<S>(m, "StructuredSystem")
      .def(nb::init<const std::string&, u64, u64, const std::string&, const std::string&>(), arg("curve"),
           arg("n_wires"), arg("n_public"), arg("isa") = "auto", arg("lanes") = "auto")
      .def_prop_ro("sizes", &S::sizes)
      .def("sizes_of", &S::sizes_of, arg("n_runs"))
      .def_prop_ro("nbytes", &S::n_bytes)
      .def("form", &S::form, nb::arg("first_program") = -1, nb::arg("warps") = 1)
      .def("add_template", &S::add_template, arg("n_ports"), arg("n_aux"), arg("bits"), arg("matrices"), arg("code"),
           arg("native"), arg("native_inputs"), arg("native_outputs"), arg("native_parameters"))
      .def("add_run", &S::add_run_of, arg("template"), arg("count"), arg("first_row"), arg("first_wire"), arg("base"),
           arg("stride"), arg("table"))
      .def("give", &S::give, arg("threads"), arg("publics"), arg("bits"), arg("wides"), arg("wires"), arg("are_bits"),
           arg("given"), arg("n_runs") = -1)
      .def("run", &S::run, arg("threads"), arg("publics"), arg("bits"), arg("wides"), arg("n_runs") = -1)
      .def("pack", &S::pack, arg("threads"), arg("publics"), arg("bits"), arg("wides"), arg("wires"))
      .def("expand", &S::expand, arg("threads"), arg("publics"), arg("bits"), arg("wides"), arg("out"))
      .def("read", &S::read, arg("publics"), arg("bits"), arg("wides"), arg("wires"), arg("out"))
      .def("evaluate", &S::evaluate, arg("threads"), arg("witnesses"), arg("out"))
      .def("evaluate_codes", &S::evaluate_codes, arg("threads"), arg("publics"), arg("bits"), arg("wides"),
           arg("codes"), arg("sums"))
      .def("expand_codes", &S::expand_codes, arg("threads"), arg("codes"), arg("sums"), arg("a"), arg("b"), arg("c"))
      .def("first_violation", &S::first_violation, arg("threads"), arg("publics"), arg("bits"), arg("wides"))
      .def("transposed", &S::transposed, arg("threads"), arg("v"), arg("a"), arg("b"), arg("c"));
}

}  // namespace snarkline
