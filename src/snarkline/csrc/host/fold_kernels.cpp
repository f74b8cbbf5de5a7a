// Sums of windows (fold.h): additions in XYZZ coordinates, doublings in Jacobian ones, which cost 7 products, not 10.
#include <cstring>

#include "../common/curves.h"
#include "fold.h"
#include "inverse.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

// x = X / Z^2, y = Y / Z^3; infinity has Z = 0 and stays infinity.
template <class F>
struct Jacobian {
  F x, y, z;

  // With Z = ZZZ: Z^2 = ZZ^3 and Z^3 = ZZZ^3. 2M + 2S.
  explicit Jacobian(const Xyzz<F>& p) : x(p.x * p.zz.sqr()), y(p.y * p.zzz.sqr()), z(p.zzz) {}

  // dbl-2009-l of the Explicit-Formulas Database: 2M + 5S.
  void double_in_place() {
    const F a = x.sqr(), b = y.sqr(), c = b.sqr();
    const F d = ((x + b).sqr() - a - c).dbl(), e = a.dbl() + a;
    z = (y * z).dbl();
    x = e.sqr() - d.dbl();
    y = e * (d - x) - c.dbl().dbl().dbl();
  }
  Xyzz<F> to_xyzz() const {
    const F zz = z.sqr();
    return Xyzz<F>{x, y, zz, zz * z};
  }
};

template <class F>
F invert(const F& a) {
  return DivisionSteps<F>::invert(a);
}
template <class F>
Fp2<F> invert(const Fp2<F>& a) {
  const F inverse_norm = invert(a.c0.sqr() + a.c1.sqr());
  return Fp2<F>{a.c0 * inverse_norm, -(a.c1 * inverse_norm)};
}

template <class F>
Xyzz<F> double_repeatedly(const Xyzz<F>& p, u32 times) {
  if (times == 0) return p;
  Jacobian<F> j(p);
  for (u32 i = 0; i < times; i++) j.double_in_place();
  return j.to_xyzz();
}

template <class F>
void fold(u64* out, const u64* sums, const u32* starts, usize n) {
  Xyzz<F> total = Xyzz<F>::infinity();
  u32 at = n == 0 ? 0 : starts[n - 1];
  for (usize i = n; i-- > 0;) {
    total = double_repeatedly(total, at - starts[i]);
    at = starts[i];
    Xyzz<F> sum;
    std::memcpy(&sum, sums + i * (sizeof sum / sizeof *sums), sizeof sum);
    total.add(sum);
  }
  total = double_repeatedly(total, at);
  const Affine<F> point = total.to_affine(invert(total.zzz));
  std::memcpy(out, &point, sizeof point);
}

}  // namespace
}  // namespace SNL_ISA

void SNL_JOIN(fold, SNL_ISA, SNL_CURVE)(Group group, u64* out, const u64* sums, const u32* starts, usize n) {
  group == Group::G1 ? fold<SNL_CURVE::Fp>(out, sums, starts, n) : fold<Derived<SNL_CURVE>::Fp2>(out, sums, starts, n);
}

}  // namespace snarkline
