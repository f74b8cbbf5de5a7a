// The end of a sum that a device computed: a chain of doublings, in which a device would use one thread of thousands.
#include <nanobind/stl/string.h>

#include <cstring>

#include "../common/curves.h"
#include "array.h"
#include "bind.h"
#include "gil.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

using Limbs = Array<u64>;
using Words = Array<u32>;

// sum of 2^starts[i] * sums[i], starts ascending
template <class F>
void fold(u64* out, const u64* sums, const u32* starts, usize n) {
  Xyzz<F> total = Xyzz<F>::infinity();
  u32 at = n == 0 ? 0 : starts[n - 1];
  for (usize i = n; i-- > 0;) {
    for (; at > starts[i]; at--) total = total.dbl();
    Xyzz<F> sum;
    std::memcpy(&sum, sums + i * (sizeof sum / sizeof *sums), sizeof sum);
    total.add(sum);
  }
  for (; at > 0; at--) total = total.dbl();
  const Affine<F> point = total.to_affine();
  std::memcpy(out, &point, sizeof point);
}

template <class F>
void fold_over(nb::handle out, nb::handle sums, nb::handle starts) {
  constexpr Py_ssize_t limbs = sizeof(Affine<F>) / sizeof(u64);
  const Limbs s(sums, "sums", {any_length, 2 * limbs}, false);
  const Words w(starts, "starts", {static_cast<Py_ssize_t>(s.length())}, false);
  const Limbs o(out, "out", {1, limbs}, true);
  u32 last = 0;
  for (usize i = 0; i < w.length(); last = w.data()[i++]) {
    if (w.data()[i] < last || w.data()[i] > 256) refuse("starts", "ascending, to 256", std::to_string(w.data()[i]));
  }
  const WithoutGil no_gil;
  fold<F>(o.data(), s.data(), w.data(), s.length());
}

template <class C>
void fold_in(int group, nb::handle out, nb::handle sums, nb::handle starts) {
  if (group != 0 && group != 1) refuse("group", "0 for G1 or 1 for G2", std::to_string(group));
  using Fp = typename C::Fp;
  group == 0 ? fold_over<Fp>(out, sums, starts) : fold_over<Fp2<Fp>>(out, sums, starts);
}

void fold_windows(const std::string& curve, int group, nb::handle out, nb::handle sums, nb::handle starts) {
  if (curve == Bn254::name) return fold_in<Bn254>(group, out, sums, starts);
  if (curve == Bls12_381::name) return fold_in<Bls12_381>(group, out, sums, starts);
  refuse("curve", "'bn254' or 'bls12_381'", "'" + curve + "'");
}

}  // namespace

void bind_fold(nb::module_& m) {
  using nb::arg;
  m.def("fold_windows", fold_windows, arg("curve"), arg("group"), arg("out"), arg("sums"), arg("starts"));
}

}  // namespace snarkline
