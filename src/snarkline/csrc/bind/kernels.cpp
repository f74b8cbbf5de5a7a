// The Executor: every kernel, with its arguments checked. Documented in native/_core.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <optional>
#include <stdexcept>

#include "../host/isa.h"
#include "array.h"
#include "bind.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

using Limbs = Array<u64>;
using Words = Array<u32>;
using Shape = std::initializer_list<Py_ssize_t>;
using Name = const std::string&;

Op parse_op(Name op) {
  if (op == "add") return Op::Add;
  if (op == "sub") return Op::Sub;
  if (op == "mul") return Op::Mul;
  refuse("op", "'add', 'sub' or 'mul'", "'" + op + "'");
}

Group parse_group(int group) {
  if (group != 0 && group != 1) refuse("group", "0 for G1 or 1 for G2", std::to_string(group));
  return group == 0 ? Group::G1 : Group::G2;
}

Form parse_form(Name form) {
  if (form == "canonical") return Form::Canonical;
  if (form == "montgomery") return Form::Montgomery;
  refuse("w_form", "'canonical' or 'montgomery'", "'" + form + "'");
}

Py_ssize_t point_limbs(const CurveKernels& k, Group group) { return 2 * k.fp.limbs * (group == Group::G1 ? 1 : 2); }

template <class T>
Py_ssize_t rows(const Array<T>& array) {
  return static_cast<Py_ssize_t>(array.length());
}

Py_ssize_t index(usize i) { return i == npos ? -1 : static_cast<Py_ssize_t>(i); }

int log_size(const CurveKernels& k, const Limbs& data) {
  int log_n = 0;
  while (log_n < k.fr.two_adicity && usize{1} << log_n < data.length()) log_n++;
  if (usize{1} << log_n != data.length()) {
    refuse("data", "a power of two rows, at most 2^" + std::to_string(k.fr.two_adicity), std::to_string(data.length()));
  }
  return log_n;
}

nb::object new_array(Py_ssize_t n, Py_ssize_t limbs) {
  return nb::module_::import_("numpy").attr("empty")(nb::make_tuple(n, limbs), "uint64");
}

// The arrays of a sparse matrix. Columns and values are not checked here: whoever builds a matrix does that.
class Matrix {
 public:
  Matrix(const CurveKernels& k, nb::handle row_start, nb::handle column, nb::handle value, nb::handle coefficients)
      : row_start_(row_start, "row_start", {any_length}, false),
        column_(column, "column", {any_length}, false),
        value_(value, "value", {rows(column_)}, false),
        coefficients_(coefficients, "coefficients", {any_length, k.fr.limbs}, false) {
    if (rows(row_start_) == 0) refuse("row_start", "rows + 1 items", "none");
    const u64 first = row_start_.data()[0], last = row_start_.data()[n_rows()];
    if (first != 0 || last != column_.length()) {
      refuse("row_start", "0 to " + std::to_string(column_.length()),
             std::to_string(first) + " to " + std::to_string(last));
    }
  }

  Py_ssize_t n_rows() const { return rows(row_start_) - 1; }
  SparseView view(usize columns) const {
    return {row_start_.length() - 1, columns,       column_.length(),     row_start_.data(),
            column_.data(),          value_.data(), coefficients_.data(), coefficients_.length()};
  }

 private:
  Limbs row_start_;
  Words column_, value_;
  Limbs coefficients_;
};

class Executor {
 public:
  Executor(int threads, Name isa) : threads_(static_cast<unsigned>(threads)), isa_(isa) {
    if (threads < 1 || threads > 1024) refuse("threads", "1 to 1024", std::to_string(threads));
    const auto& sets = instruction_sets();
    if (sets.empty()) throw std::runtime_error("this build has no instruction set that this processor can run");
    if (isa == "auto") isa_ = sets.back();
    std::string known = "'auto'";
    bool found = false;
    for (const auto& set : sets) {
      known += ", '" + set + "'";
      found = found || set == isa_;
    }
    if (!found) refuse("isa", "one of " + known, "'" + isa + "'");
  }

  unsigned threads() const { return threads_; }
  Name isa() const { return isa_; }

  void from_canonical(Name curve, Name field, nb::handle out, nb::handle a) const {
    convert("from_canonical", &FieldKernels::from_canonical, curve, field, out, a);
  }
  void to_canonical(Name curve, Name field, nb::handle out, nb::handle a) const {
    convert("to_canonical", &FieldKernels::to_canonical, curve, field, out, a);
  }

  Py_ssize_t first_not_below_modulus(Name curve, Name field, nb::handle a) const {
    const FieldKernels& k = fields(curve, field);
    const Limbs in(a, "a", {any_length, k.limbs}, false);
    return index(run("first_not_below_modulus", k.first_not_below_modulus, in.data(), in.length()));
  }

  void pointwise(Name curve, Name field, Name op, nb::handle out, nb::handle a, nb::handle b) const {
    const FieldKernels& k = fields(curve, field);
    const Op operation = parse_op(op);
    const Limbs x(a, "a", {any_length, k.limbs}, false);
    const Limbs y(b, "b", {any_length, k.limbs}, false);
    if (rows(y) != rows(x) && rows(y) != 1) {
      refuse("b", "1 or " + std::to_string(rows(x)) + " rows", std::to_string(rows(y)));
    }
    const Limbs o(out, "out", {rows(x), k.limbs}, true);
    const usize stride = rows(y) == rows(x) ? 1 : 0;
    run("pointwise", k.pointwise, operation, o.data(), x.data(), y.data(), stride, x.length());
  }

  void mul_sub(Name curve, nb::handle out, nb::handle a, nb::handle b, nb::handle c) const {
    const CurveKernels& k = kernels(curve);
    const Limbs x(a, "a", {any_length, k.fr.limbs}, false);
    const Limbs y(b, "b", {rows(x), k.fr.limbs}, false);
    const Limbs z(c, "c", {rows(x), k.fr.limbs}, false);
    const Limbs o(out, "out", {rows(x), k.fr.limbs}, true);
    run("mul_sub", k.mul_sub, o.data(), x.data(), y.data(), z.data(), x.length());
  }

  void batch_inverse(Name curve, Name field, nb::handle a) const {
    const FieldKernels& k = fields(curve, field);
    const Limbs x(a, "a", {any_length, k.limbs}, true);
    run("batch_inverse", k.batch_inverse, x.data(), x.length());
  }

  void powers(Name curve, nb::handle out, nb::handle first, nb::handle ratio) const {
    const FieldKernels& k = kernels(curve).fr;
    const Limbs o(out, "out", {any_length, k.limbs}, true);
    const Limbs f(first, "first", {1, k.limbs}, false);
    const Limbs r(ratio, "ratio", {1, k.limbs}, false);
    run("powers", k.powers, o.data(), f.data(), r.data(), o.length());
  }

  void ntt(Name curve, nb::handle data, nb::handle root, nb::handle shift, bool inverse) const {
    const CurveKernels& k = kernels(curve);
    const Limbs d(data, "data", {any_length, k.fr.limbs}, true);
    const int log_n = log_size(k, d);
    const Limbs w(root, "root", {1, k.fr.limbs}, false);
    std::optional<Limbs> s;
    if (!shift.is_none()) s.emplace(shift, "shift", Shape{1, k.fr.limbs}, false);
    run("ntt", k.ntt, d.data(), log_n, w.data(), s ? s->data() : nullptr, inverse);
  }

  void coset_evaluations(Name curve, nb::handle data, nb::handle root, nb::handle shift) const {
    const CurveKernels& k = kernels(curve);
    const Limbs d(data, "data", {any_length, k.fr.limbs}, true);
    const int log_n = log_size(k, d);
    const Limbs w(root, "root", {1, k.fr.limbs}, false);
    const Limbs s(shift, "shift", {1, k.fr.limbs}, false);
    run("coset_evaluations", k.coset_evaluations, d.data(), log_n, w.data(), s.data());
  }

  void spmv(Name curve, nb::handle out, nb::handle row_start, nb::handle column, nb::handle value,
            nb::handle coefficients, nb::handle w, Name w_form) const {
    const CurveKernels& k = kernels(curve);
    const Form form = parse_form(w_form);
    const Matrix m(k, row_start, column, value, coefficients);
    const Limbs x(w, "w", {any_length, k.fr.limbs}, false);
    const Limbs o(out, "out", {m.n_rows(), k.fr.limbs}, true);
    run("spmv", k.spmv, o.data(), m.view(x.length()), x.data(), form);
  }

  void spmv_transposed(Name curve, nb::handle out, nb::handle row_start, nb::handle column, nb::handle value,
                       nb::handle coefficients, nb::handle v) const {
    const CurveKernels& k = kernels(curve);
    const Matrix m(k, row_start, column, value, coefficients);
    const Limbs x(v, "v", {m.n_rows(), k.fr.limbs}, false);
    const Limbs o(out, "out", {any_length, k.fr.limbs}, true);
    run("spmv_transposed", k.spmv_transposed, o.data(), m.view(o.length()), x.data());
  }

  nb::list msm(Name curve, nb::list tables, nb::handle scalars, bool montgomery) const {
    const CurveKernels& k = kernels(curve);
    const Limbs s(scalars, "scalars", {any_length, k.fr.limbs}, false);
    nb::list results;
    std::deque<Limbs> held;
    std::vector<MsmJob> jobs;
    for (nb::handle item : tables) {
      const nb::tuple pair = nb::cast<nb::tuple>(item);
      if (pair.size() != 2) refuse("tables", "pairs (group, points)", std::to_string(pair.size()) + " items");
      const Group group = parse_group(nb::cast<int>(pair[0]));
      const Py_ssize_t limbs = point_limbs(k, group);
      const u64* points = held.emplace_back(pair[1], "points", Shape{rows(s), limbs}, false, Align::Any).data();
      const nb::object result = new_array(1, limbs);
      results.append(result);
      jobs.push_back({group, points, held.emplace_back(result, "result", Shape{1, limbs}, true).data()});
    }
    run("msm", k.msm, jobs.data(), jobs.size(), s.data(), s.length(), montgomery);
    return results;
  }

  void fixed_base(Name curve, int group, nb::handle out, nb::handle base, nb::handle scalars) const {
    const CurveKernels& k = kernels(curve);
    const Group g = parse_group(group);
    const Limbs s(scalars, "scalars", {any_length, k.fr.limbs}, false);
    const Limbs b(base, "base", {1, point_limbs(k, g)}, false);
    const Limbs o(out, "out", {rows(s), point_limbs(k, g)}, true);
    run("fixed_base", k.fixed_base, g, o.data(), b.data(), s.data(), s.length());
  }

  Py_ssize_t first_bad_point(Name curve, int group, nb::handle points, bool subgroup) const {
    const CurveKernels& k = kernels(curve);
    const Group g = parse_group(group);
    const Limbs p(points, "points", {any_length, point_limbs(k, g)}, false, Align::Any);
    return index(run("first_bad_point", k.first_bad_point, g, p.data(), p.length(), subgroup));
  }

  bool pairing_product_is_one(Name curve, nb::handle p, nb::handle q) const {
    const CurveKernels& k = kernels(curve);
    const Limbs a(p, "p", {any_length, point_limbs(k, Group::G1)}, false);
    const Limbs b(q, "q", {rows(a), point_limbs(k, Group::G2)}, false);
    return run("pairing_product_is_one", k.pairing_product_is_one, a.data(), b.data(), a.length());
  }

  nb::object pairing(Name curve, nb::handle p, nb::handle q) const {
    const CurveKernels& k = kernels(curve);
    const Limbs a(p, "p", {1, point_limbs(k, Group::G1)}, false);
    const Limbs b(q, "q", {1, point_limbs(k, Group::G2)}, false);
    nb::object result = new_array(12, k.fp.limbs);
    const Limbs o(result, "result", {12, k.fp.limbs}, true);
    run("pairing", k.pairing, o.data(), a.data(), b.data());
    return result;
  }

 private:
  // Calls a kernel without the GIL, if the instruction set has it.
  template <class Result, class... Params, class... Args>
  Result run(const char* name, Result (*kernel)(Params...), Args... args) const {
    if (kernel == nullptr) {
      throw std::runtime_error("this build has no kernel '" + std::string(name) + "' for the instruction set '" + isa_ +
                               "'");
    }
    return interruptible(threads_, [&](const Exec& exec) { return kernel(args..., exec); });
  }

  const CurveKernels& kernels(Name curve) const {
    const CurveKernels* found = find_kernels(curve, isa_);
    if (found == nullptr) refuse("curve", "'bn254' or 'bls12_381'", "'" + curve + "'");
    return *found;
  }
  const FieldKernels& fields(Name curve, Name field) const {
    const CurveKernels& k = kernels(curve);
    if (field == "fr") return k.fr;
    if (field == "fp") return k.fp;
    refuse("field", "'fr' or 'fp'", "'" + field + "'");
  }

  using Conversion = void (*FieldKernels::*)(u64*, const u64*, usize, const Exec&);
  void convert(const char* name, Conversion conversion, Name curve, Name field, nb::handle out, nb::handle a) const {
    const FieldKernels& k = fields(curve, field);
    const Limbs in(a, "a", {any_length, k.limbs}, false);
    const Limbs o(out, "out", {rows(in), k.limbs}, true);
    run(name, k.*conversion, o.data(), in.data(), in.length());
  }

  unsigned threads_;
  std::string isa_;
};

}  // namespace

void bind_kernels(nb::module_& m) {
  using nb::arg;
  using E = Executor;
  nb::class_<E>(m, "Executor", "Where kernels run: a number of threads and an instruction set.")
      .def(nb::init<int, Name>(), arg("threads"), arg("isa") = "auto")
      .def_prop_ro("threads", &E::threads)
      .def_prop_ro("isa", &E::isa)
      .def("from_canonical", &E::from_canonical, arg("curve"), arg("field"), arg("out"), arg("a"))
      .def("to_canonical", &E::to_canonical, arg("curve"), arg("field"), arg("out"), arg("a"))
      .def("first_not_below_modulus", &E::first_not_below_modulus, arg("curve"), arg("field"), arg("a"))
      .def("pointwise", &E::pointwise, arg("curve"), arg("field"), arg("op"), arg("out"), arg("a"), arg("b"))
      .def("mul_sub", &E::mul_sub, arg("curve"), arg("out"), arg("a"), arg("b"), arg("c"))
      .def("batch_inverse", &E::batch_inverse, arg("curve"), arg("field"), arg("a"))
      .def("powers", &E::powers, arg("curve"), arg("out"), arg("first"), arg("ratio"))
      .def("ntt", &E::ntt, arg("curve"), arg("data"), arg("root"), arg("shift").none(), arg("inverse"))
      .def("coset_evaluations", &E::coset_evaluations, arg("curve"), arg("data"), arg("root"), arg("shift"))
      .def("spmv", &E::spmv, arg("curve"), arg("out"), arg("row_start"), arg("column"), arg("value"),
           arg("coefficients"), arg("w"), arg("w_form"))
      .def("spmv_transposed", &E::spmv_transposed, arg("curve"), arg("out"), arg("row_start"), arg("column"),
           arg("value"), arg("coefficients"), arg("v"))
      .def("msm", &E::msm, arg("curve"), arg("tables"), arg("scalars"), arg("montgomery"))
      .def("fixed_base", &E::fixed_base, arg("curve"), arg("group"), arg("out"), arg("base"), arg("scalars"))
      .def("first_bad_point", &E::first_bad_point, arg("curve"), arg("group"), arg("points"), arg("subgroup"))
      .def("pairing_product_is_one", &E::pairing_product_is_one, arg("curve"), arg("p"), arg("q"))
      .def("pairing", &E::pairing, arg("curve"), arg("p"), arg("q"));
}

}  // namespace snarkline
