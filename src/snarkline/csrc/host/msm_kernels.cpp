// Multi-scalar multiplication: sum scalars[i] * points[i], by Pippenger's method (buckets) on half-length scalars.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "../common/curves.h"
#include "../common/point.h"
#include "kernels.h"
#include "msm_job.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Curve = SNL_CURVE;
#if SNL_ISA_ifma
using Lanes = Field8<Curve::Fp, Products::Called>;
#else
using Lanes = Field1<Curve::Fp>;
#endif
using Lanes2 = Pair<Lanes>;

// The endomorphism's constant on each group, found once.
const Curve::Fp& beta(Group group) {
  using D = Decomposition<Curve>;
  using Fp = Curve::Fp;
  static const Fp g1 = D::beta(Affine<Fp>{Fp::from_canonical(Curve::g1_x), Fp::from_canonical(Curve::g1_y)});
  static const Fp g2 =
      D::beta(Affine<Fp2<Fp>>{{Fp::from_canonical(Curve::g2_x[0]), Fp::from_canonical(Curve::g2_x[1])},
                              {Fp::from_canonical(Curve::g2_y[0]), Fp::from_canonical(Curve::g2_y[1])}});
  return group == Group::G1 ? g1 : g2;
}

// Windows whose entries and buckets are held at once: as few as keep all threads busy, since each more is memory. A
// task of idle threads at the end of a group is then a few hundredths of the group's time.
usize windows_at_once(const HalfScalarTable& scalars, const Exec& exec) {
  constexpr usize tasks_per_thread = 24;
  const usize entries = 2 * scalars.wide() + scalars.narrow() + 1;
  const usize wanted = tasks_per_thread * std::max(exec.threads, 1u) * msm_task_entries;
  return (wanted + entries - 1) / entries;
}

void msm(const MsmJob* jobs, usize n_jobs, const u64* scalars, usize n, bool montgomery, const Exec& exec) {
  NativeSpan release;
  std::vector<std::unique_ptr<JobSum<Lanes>>> g1(n_jobs);
  std::vector<std::unique_ptr<JobSum<Lanes2>>> g2(n_jobs);
  for (usize j = 0; j < n_jobs; j++) {
    const Curve::Fp& b = beta(jobs[j].group);
    if (jobs[j].group == Group::G1) g1[j] = std::make_unique<JobSum<Lanes>>(jobs[j].points, n, b, exec);
    if (jobs[j].group == Group::G2) g2[j] = std::make_unique<JobSum<Lanes2>>(jobs[j].points, n, b, exec);
  }
  const HalfScalarTable halves = HalfScalarTable::make<Curve>(scalars, n, montgomery, exec);
  const Windows windows = Windows::cheapest(halves);
  const usize at_once = windows_at_once(halves, exec);
  for (usize end = windows.windows.size(); end > 0;) {
    const usize begin = end > at_once ? end - at_once : 0;
    NativeSpan release_entries;
    const WindowGroup group(windows, begin, end);
    const SortedEntries sorted(group, halves, exec);
    for (usize j = 0; j < n_jobs; j++) {
      if (g1[j]) g1[j]->add(group, sorted);
      if (g2[j]) g2[j]->add(group, sorted);
    }
    end = begin;
    release_entries.begin("msm.release");
  }
  for (usize j = 0; j < n_jobs; j++) {
    if (g1[j]) *reinterpret_cast<Affine<Curve::Fp>*>(jobs[j].result) = g1[j]->result();
    if (g2[j]) *reinterpret_cast<Affine<Fp2<Curve::Fp>>*>(jobs[j].result) = g2[j]->result();
  }
  release.begin("msm.release");
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(msm)(CurveKernels& k) { k.msm = msm; }

}  // namespace snarkline
