// The group that a module is compiled for: SNL_GROUP 1 (over Fp) or 2 (over Fp2).
#pragma once

#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {

using Fp = SNL_CURVE::Fp;
#if SNL_GROUP == 1
using F = Fp;
#else
using F = Fp2<Fp>;
#endif
using AffinePoint = Affine<F>;
using Sum = Xyzz<F>;

// An inversion in Fp2 is one in Fp: 1/d = conjugate(d) / norm(d).
SNL_DEVICE Fp norm(const Fp& d) { return d; }
SNL_DEVICE Fp inverse_from_norm(const Fp&, const Fp& inverse_norm) { return inverse_norm; }
SNL_DEVICE Fp norm(const Fp2<Fp>& d) { return d.c0.sqr() + d.c1.sqr(); }
SNL_DEVICE Fp2<Fp> inverse_from_norm(const Fp2<Fp>& d, const Fp& inverse_norm) {
  return Fp2<Fp>{d.c0 * inverse_norm, -(d.c1 * inverse_norm)};
}

// Sums are long and rarely the whole of a kernel's work: called, not inlined.
SNL_CALL void add_sum(Sum& a, const Sum& b) { a.add(b); }
SNL_CALL void add_point(Sum& a, const AffinePoint& b) { a.add(b); }

}  // namespace SNL_ISA
}  // namespace snarkline
