// fold_windows (native/_core.pyi), with its arguments checked.
#include "../host/fold.h"

#include <nanobind/stl/string.h>

#include "../common/curves.h"
#include "array.h"
#include "bind.h"
#include "gil.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

using Limbs = Array<u64>;
using Words = Array<u32>;

void fold_windows(const std::string& curve, int group, nb::handle out, nb::handle sums, nb::handle starts) {
  const Fold fold = find_fold(curve);
  if (fold == nullptr) refuse("curve", "'bn254' or 'bls12_381'", "'" + curve + "'");
  if (group != 0 && group != 1) refuse("group", "0 for G1 or 1 for G2", std::to_string(group));
  const Py_ssize_t limbs = 2 * (curve == Bn254::name ? Bn254::Fp::N : Bls12_381::Fp::N) * (group + 1);
  const Limbs s(sums, "sums", {any_length, 2 * limbs}, false);
  const Words w(starts, "starts", {static_cast<Py_ssize_t>(s.length())}, false);
  const Limbs o(out, "out", {1, limbs}, true);
  u32 last = 0;
  for (usize i = 0; i < w.length(); last = w.data()[i++]) {
    if (w.data()[i] < last || w.data()[i] > 256) refuse("starts", "ascending, to 256", std::to_string(w.data()[i]));
  }
  const WithoutGil no_gil;
  fold(static_cast<Group>(group), o.data(), s.data(), w.data(), s.length());
}

}  // namespace

void bind_fold(nb::module_& m) {
  using nb::arg;
  m.def("fold_windows", fold_windows, arg("curve"), arg("group"), arg("out"), arg("sums"), arg("starts"));
}

}  // namespace snarkline
