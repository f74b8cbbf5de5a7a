// Points one by one: membership, multiples of one base.
#include "../common/curves.h"
#include "../common/subgroup.h"
#include "batch_affine.h"
#include "fixed_base.h"
#include "kernels.h"
#include "membership.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Curve = SNL_CURVE;
using Fp = Curve::Fp;
using Fp2 = Derived<Curve>::Fp2;

bool is_reduced(const Fp& a) { return less(a.v, Fp::modulus); }
bool is_reduced(const Fp2& a) { return is_reduced(a.c0) && is_reduced(a.c1); }

template <class F>
usize first_bad(const u64* points, const F& b, usize n, bool subgroup, const Exec& exec) {
  SNL_SPAN(subgroup ? "points.subgroup" : "points.on_curve");
  // An equation takes 0.1 to 0.5 us (with IFMA 0.02 to 0.15), a subgroup check 20 to 80 us.
  return first_index(exec, n, subgroup ? 4 : 1024, [=](usize begin, usize end) {
    usize i = begin;
#if SNL_ISA_ifma
    if (!subgroup) i = first_off_curve(points, b, begin, end);
#endif
    for (; i < end; i++) {
      const Affine<F> p = load_affine<F>(points, i);
      if (!is_reduced(p.x) || !is_reduced(p.y) || !is_on_curve(p, b)) return i;
      if (subgroup && !in_subgroup<Curve>(p)) return i;
    }
    return npos;
  });
}

usize first_bad_point(Group group, const u64* points, usize n, bool subgroup, const Exec& exec) {
  return group == Group::G1 ? first_bad<Fp>(points, Derived<Curve>::b, n, subgroup, exec)
                            : first_bad<Fp2>(points, Derived<Curve>::b2, n, subgroup, exec);
}

void fixed_base(Group group, u64* out, const u64* base, const u64* scalars, usize n, const Exec& exec) {
  group == Group::G1 ? fixed_base<Fp>(out, base, scalars, n, exec) : fixed_base<Fp2>(out, base, scalars, n, exec);
}

const u64* generator(Group group) {
  static constexpr auto g1 = Derived<Curve>::g1;
  static constexpr auto g2 = Derived<Curve>::g2;
  return group == Group::G1 ? g1.x.v.limb : g2.x.c0.v.limb;
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(point)(CurveKernels& k) {
  k.fixed_base = fixed_base;
  k.first_bad_point = first_bad_point;
  k.generator = generator;
}

}  // namespace snarkline
