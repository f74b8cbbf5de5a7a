// Bindings of host/decode.h. Sizes of the arrays handed in are checked here, contents in the kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "../host/decode.h"
#include "array.h"
#include "bind.h"
#include "interruptible.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

// A fault as Python sees it: what is wrong in one word, empty for nothing.
const char* name_of(Fault fault) {
  constexpr const char* names[] = {"", "matrix", "row", "column", "truncated", "trailing"};
  return names[static_cast<int>(fault)];
}

// The arrays (row_start, column, value) of one matrix.
class Csr {
 public:
  explicit Csr(const nb::tuple& arrays)
      : row_start_(arrays[0], "row_start", {any_length}, true),
        column_(arrays[1], "column", {any_length}, true),
        value_(arrays[2], "value", {static_cast<Py_ssize_t>(column_.length())}, true) {
    if (row_start_.length() == 0) refuse("row_start", "rows + 1 items", "none");
  }
  usize rows() const { return row_start_.length() - 1; }
  CsrOut out() const { return {row_start_.data(), column_.data(), value_.data(), rows(), column_.length()}; }

 private:
  Array<u64> row_start_;
  Array<u32> column_, value_;
};

nb::object to_array(std::vector<Element>&& values) {
  auto kept = std::make_unique<std::vector<Element>>(std::move(values));
  void* data = kept->data();
  const usize n = kept->size();
  nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<std::vector<Element>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, uint64_t, nb::ndim<2>>(data, {n, 4}, owner));
}

usize n_records(const Array<u8>& records) {
  if (records.length() % coefficient_bytes != 0) {
    refuse("records", "a multiple of " + std::to_string(coefficient_bytes) + " bytes",
           std::to_string(records.length()));
  }
  return records.length() / coefficient_bytes;
}

nb::tuple scan_coefficients_(unsigned threads, nb::handle data, u64 max_rows, u64 n_columns) {
  const Array<u8> records(data, "records", {any_length}, false);
  const usize n = n_records(records);
  const CoefficientScan s = interruptible(
      threads, [&](const Exec& exec) { return scan_coefficients(records.data(), n, max_rows, n_columns, exec); });
  return nb::make_tuple(s.entries[0], s.entries[1], s.rows, s.sorted, name_of(s.fault), s.index, s.found);
}

nb::object gather_coefficients_(unsigned threads, nb::handle data, bool sorted, u64 n_columns, const nb::tuple& a,
                                const nb::tuple& b) {
  const Array<u8> records(data, "records", {any_length}, false);
  const usize n = n_records(records);
  const Csr first(a), second(b);
  const CsrOut out[2] = {first.out(), second.out()};
  return to_array(interruptible(
      threads, [&](const Exec& exec) { return gather_coefficients(records.data(), n, sorted, n_columns, out, exec); }));
}

nb::tuple fault_of(const ConstraintScan& s) {
  return nb::make_tuple(name_of(s.fault), s.row, s.combination, s.offset, s.found);
}

nb::tuple scan_constraints_(nb::handle data, nb::handle a, nb::handle b, nb::handle c) {
  const Array<u8> bytes(data, "data", {any_length}, false);
  const Array<u64> first(a, "a", {any_length}, true);
  const auto n = static_cast<Py_ssize_t>(first.length());
  const Array<u64> second(b, "b", {n}, true), third(c, "c", {n}, true);
  if (n == 0) refuse("a", "rows + 1 items", "none");
  u64* const row_start[3] = {first.data(), second.data(), third.data()};
  return fault_of(interruptible(
      1, [&](const Exec&) { return scan_constraints(bytes.data(), bytes.length(), first.length() - 1, row_start); }));
}

nb::tuple gather_constraints_(unsigned threads, nb::handle data, u64 n_columns, const nb::tuple& a, const nb::tuple& b,
                              const nb::tuple& c) {
  const Array<u8> bytes(data, "data", {any_length}, false);
  const Csr first(a), second(b), third(c);
  const CsrOut out[3] = {first.out(), second.out(), third.out()};
  if (first.rows() != second.rows() || first.rows() != third.rows()) {
    refuse("row_start", "one number of rows", "several");
  }
  ConstraintScan scan;
  std::vector<Element> values = interruptible(threads, [&](const Exec& exec) {
    return gather_constraints(bytes.data(), bytes.length(), n_columns, out, scan, exec);
  });
  return nb::make_tuple(to_array(std::move(values)), fault_of(scan));
}

}  // namespace

void bind_decode(nb::module_& m) {
  m.def("scan_coefficients", &scan_coefficients_);
  m.def("gather_coefficients", &gather_coefficients_);
  m.def("scan_constraints", &scan_constraints_);
  m.def("gather_constraints", &gather_constraints_);
}

}  // namespace snarkline
