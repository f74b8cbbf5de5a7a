// What the core knows about its curves and about this processor.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../common/curves.h"
#include "../host/isa.h"
#include "array.h"
#include "bind.h"

namespace nb = nanobind;

namespace snarkline {
namespace {

template <int N>
nb::object to_int(const Int<N>& a) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (int i = 16 * N; i-- > 0;) hex += digits[(a.limb[i / 16] >> (4 * (i % 16))) & 15];
  return nb::steal(PyLong_FromString(hex.c_str(), nullptr, 16));
}

template <class F>
nb::object to_int(const F& a) {
  return to_int(a.to_canonical());
}

template <class F>
nb::tuple to_pair(const Fp2<F>& a) {
  return nb::make_tuple(to_int(a.c0), to_int(a.c1));
}

template <class C>
nb::dict facts() {
  using D = Derived<C>;
  nb::dict d;
  d["name"] = C::name;
  d["r"] = to_int(C::Fr::modulus);
  d["q"] = to_int(C::Fp::modulus);
  d["b"] = C::b;
  d["b2"] = to_pair(D::b2);
  d["g1"] = nb::make_tuple(to_int(D::g1.x), to_int(D::g1.y));
  d["g2"] = nb::make_tuple(to_pair(D::g2.x), to_pair(D::g2.y));
  d["generator"] = C::FrParams::generator;
  d["two_adicity"] = Domain<typename C::Fr>::two_adicity;
  d["fp_limbs"] = C::Fp::N;
  d["fr_limbs"] = C::Fr::N;
  return d;
}

nb::dict curve_facts(const std::string& curve) {
  if (curve == Bn254::name) return facts<Bn254>();
  if (curve == Bls12_381::name) return facts<Bls12_381>();
  refuse("curve", "'bn254' or 'bls12_381'", "'" + curve + "'");
}

}  // namespace

void bind_facts(nb::module_& m) {
  m.def("curve_facts", curve_facts, nb::arg("curve"), "A curve's facts, as the arguments of curves.curve.Curve.");
  m.def(
      "instruction_sets", [] { return instruction_sets(); },
      "The sets that this build has and this processor can run, slowest first: portable, adx, ifma.");
}

}  // namespace snarkline
