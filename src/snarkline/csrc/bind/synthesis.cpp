// Face of host/synthesis.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "../host/isa.h"
#include "../host/synthesis.h"
#include "array.h"
#include "bind.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

constexpr Py_ssize_t fr_limbs = 4;

const SynthesisKernels& kernels(const std::string& curve) {
  const SynthesisKernels* found = find_synthesis_kernels(curve.c_str(), instruction_sets().back().c_str());
  if (found == nullptr) refuse("curve", "'bn254' or 'bls12_381'", "'" + curve + "'");
  return *found;
}

// Owns what a synthesis left behind until `close`.
class Classic {
 public:
  explicit Classic(std::unique_ptr<Assignment> assignment) : assignment_(std::move(assignment)) {}
  nb::object view(const std::vector<u64>& limbs) const {
    return nb::cast(nb::ndarray<nb::numpy, const uint64_t, nb::ndim<2>>(
        limbs.data(), {limbs.size() / fr_limbs, static_cast<usize>(fr_limbs)}, nb::find(this)));
  }
  const Assignment& get() const {
    if (assignment_ == nullptr) throw nb::value_error("the assignment is closed");
    return *assignment_;
  }
  void close() { assignment_.reset(); }

 private:
  std::unique_ptr<Assignment> assignment_;
};

Classic synthesize(const std::string& curve, nb::handle bits, bool add_to_lc, bool recycle, bool prefetch) {
  const SynthesisKernels& k = kernels(curve);
  const Array<u8> message(bits, "bits", {any_length}, false);
  if (message.length() % 512 != 0) refuse("bits", "a multiple of 512", std::to_string(message.length()));
  const WithoutGil no_gil;
  return Classic(k.sha256_chain(message.data(), message.length() / 512, {add_to_lc, recycle, prefetch}));
}

class Rows {
 public:
  Rows(nb::handle row_start, nb::handle column)
      : row_start_(row_start, "row_start", {any_length}, false), column_(column, "column", {any_length}, false) {
    if (row_start_.length() == 0 || row_start_.data()[row_start_.length() - 1] != column_.length()) {
      refuse("row_start", "rows + 1 items that end with the number of entries", "others");
    }
  }
  FlatRows rows() const { return {row_start_.length() - 1, column_.length(), row_start_.data(), column_.data()}; }
  Py_ssize_t n_rows() const { return static_cast<Py_ssize_t>(row_start_.length()) - 1; }
  Py_ssize_t n_entries() const { return static_cast<Py_ssize_t>(column_.length()); }

 private:
  Array<u64> row_start_;
  Array<u32> column_;
};

void flat_published(const std::string& curve, unsigned threads, nb::handle out, nb::handle row_start, nb::handle column,
                    nb::handle values, nb::handle w) {
  const SynthesisKernels& k = kernels(curve);
  const Rows rows(row_start, column);
  const Array<u64> v(values, "values", {rows.n_entries(), fr_limbs}, false), x(w, "w", {any_length, fr_limbs}, false);
  const Array<u64> o(out, "out", {rows.n_rows(), fr_limbs}, true);
  interruptible(threads, [&](const Exec& exec) { k.flat_published(o.data(), rows.rows(), v.data(), x.data(), exec); });
}

void flat_classes(const std::string& curve, unsigned threads, nb::handle out, nb::handle row_start, nb::handle column,
                  nb::handle classes, nb::handle integers, nb::handle w) {
  const SynthesisKernels& k = kernels(curve);
  const Rows rows(row_start, column);
  const Array<u8> c(classes, "classes", {rows.n_entries()}, false), x(w, "w", {any_length}, false);
  const Array<u64> v(integers, "integers", {any_length, fr_limbs}, false);
  const Array<u64> o(out, "out", {rows.n_rows(), fr_limbs}, true);
  interruptible(threads,
                [&](const Exec& exec) { k.flat_classes(o.data(), rows.rows(), c.data(), v.data(), x.data(), exec); });
}

}  // namespace

void bind_synthesis(nb::module_& m) {
  using nb::arg;
  nb::class_<Classic>(m, "ClassicAssignment")
      .def_prop_ro("a", [](const Classic& c) { return c.view(c.get().a); })
      .def_prop_ro("b", [](const Classic& c) { return c.view(c.get().b); })
      .def_prop_ro("c", [](const Classic& c) { return c.view(c.get().c); })
      .def_prop_ro("inputs", [](const Classic& c) { return c.view(c.get().inputs); })
      .def_prop_ro("aux", [](const Classic& c) { return c.view(c.get().aux); })
      .def_prop_ro("allocations", [](const Classic& c) { return c.get().count.allocations; })
      .def_prop_ro("bytes_freed", [](const Classic& c) { return c.get().count.bytes_freed; })
      .def("close", &Classic::close, nb::call_guard<WithoutGil>());
  m.def("synthesize_sha256_chain", synthesize, arg("curve"), arg("bits"), arg("add_to_lc"), arg("recycle"),
        arg("prefetch"));
  m.def("flat_published", flat_published, arg("curve"), arg("threads"), arg("out"), arg("row_start"), arg("column"),
        arg("values"), arg("w"));
  m.def("flat_classes", flat_classes, arg("curve"), arg("threads"), arg("out"), arg("row_start"), arg("column"),
        arg("classes"), arg("integers"), arg("w"));
}

}  // namespace snarkline
