// Multi-scalar multiplication: sum scalars[i] * points[i].
#include "../common/curves.h"
#include "../common/point.h"
#include "kernels.h"

#include <algorithm>
#include <vector>

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;
using Scalar = Int<4>;

// The signed digit of window `w` (width c), in [-2^(c-1), 2^(c-1)], of a scalar to which 2^(c-1) was added in every
// window.
inline int digit(const Scalar& biased, int w, int c) {
  const int bit = w * c, limb = bit / 64, shift = bit % 64;
  u64 v = biased.limb[limb] >> shift;
  if (shift + c > 64 && limb + 1 < 4) v |= biased.limb[limb + 1] << (64 - shift);
  return (int)(v & ((u64{1} << c) - 1)) - (1 << (c - 1));
}

// sum over buckets of (index + 1) * bucket
template <class F>
Xyzz<F> weighted_sum(const std::vector<Xyzz<F>>& buckets) {
  Xyzz<F> running = Xyzz<F>::infinity(), sum = Xyzz<F>::infinity();
  for (usize i = buckets.size(); i-- > 0;) {
    running.add(buckets[i]);
    sum.add(running);
  }
  return sum;
}

template <class F>
void msm(const Affine<F>* points, Affine<F>* result, const std::vector<Scalar>& biased, int c, const Exec& exec) {
  const int windows = 256 / c;
  const usize n = biased.size();
  std::vector<Xyzz<F>> sums(windows, Xyzz<F>::infinity());
  parallel(exec, windows, [&](usize w) {
    std::vector<Xyzz<F>> buckets(usize{1} << (c - 1), Xyzz<F>::infinity());
    for (usize i = 0; i < n; i++) {
      const int d = digit(biased[i], (int)w, c);
      if (d > 0) buckets[d - 1].add(points[i]);
      if (d < 0) buckets[-d - 1].add(-points[i]);
    }
    sums[w] = weighted_sum(buckets);
  });
  Xyzz<F> acc = Xyzz<F>::infinity();
  for (int w = windows; w-- > 0;) {
    for (int i = 0; i < c; i++) acc = acc.dbl();
    acc.add(sums[w]);
  }
  *result = acc.to_affine();
}

// The cheapest width among the divisors of 256, by n + 2^c additions for each window. (Not 2: r + 0xaaa... overflows.)
int window_width(usize n) {
  int best = 4;
  for (int c : {4, 8, 16}) {
    if ((256 / c) * (n + (usize{1} << c)) < (256 / best) * (n + (usize{1} << best))) best = c;
  }
  return best;
}

void msm(const MsmJob* jobs, usize n_jobs, const u64* scalars, usize n, bool montgomery, const Exec& exec) {
  const int c = window_width(n);
  Scalar bias{};
  for (int bit = c - 1; bit < 256; bit += c) bias.limb[bit / 64] |= u64{1} << (bit % 64);
  std::vector<Scalar> biased(n);
  for (usize i = 0; i < n; i++) {
    const Fr s = reinterpret_cast<const Fr*>(scalars)[i];
    biased[i] = montgomery ? s.to_canonical() : s.v;
    add_in_place(biased[i], bias);
  }
  for (usize j = 0; j < n_jobs; j++) {
    if (jobs[j].group == Group::G1) {
      using F = SNL_CURVE::Fp;
      msm(reinterpret_cast<const Affine<F>*>(jobs[j].points), reinterpret_cast<Affine<F>*>(jobs[j].result), biased, c, exec);
    } else {
      using F = Fp2<SNL_CURVE::Fp>;
      msm(reinterpret_cast<const Affine<F>*>(jobs[j].points), reinterpret_cast<Affine<F>*>(jobs[j].result), biased, c, exec);
    }
  }
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(msm)(CurveKernels& k) { k.msm = msm; }

}  // namespace snarkline
