// Pairings: Miller loops over pieces of the pairs, one final exponentiation.
#include "../common/pairing.h"
#include "kernels.h"
#include "span.h"

#include <algorithm>
#include <vector>

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Curve = SNL_CURVE;
using G1 = Affine<Curve::Fp>;
using G2 = Affine<Derived<Curve>::Fp2>;
using Gt = Fp12<Curve>;

// Pairs whose squarings are shared. One pair alone takes about 0.5 ms.
constexpr usize most_pairs = 16;

Gt miller_product(const u64* p, const u64* q, usize n, const Exec& exec) {
  SNL_SPAN("pairing.miller_loops");
  std::vector<G1> ps;
  std::vector<G2> qs;
  for (usize i = 0; i < n; i++) {
    const G1& a = reinterpret_cast<const G1*>(p)[i];
    const G2& b = reinterpret_cast<const G2*>(q)[i];
    if (a.is_infinity() || b.is_infinity()) continue;  // contributes 1
    ps.push_back(a);
    qs.push_back(b);
  }
  const usize wanted = (ps.size() + exec.threads - 1) / std::max(exec.threads, 1u);
  const usize step = std::clamp(wanted, usize{1}, most_pairs);
  const usize n_tasks = (ps.size() + step - 1) / step;
  std::vector<Gt> parts(n_tasks);
  parallel(exec, n_tasks, [&](usize task) {
    const usize begin = task * step, count = std::min(step, ps.size() - begin);
    std::vector<MillerPoint<Curve>> scratch(count);
    parts[task] = miller_loop<Curve>(&ps[begin], &qs[begin], scratch.data(), count);
  });
  Gt product = Gt::one();
  for (const Gt& part : parts) product = product * part;
  return product;
}

Gt product_of_pairings(const u64* p, const u64* q, usize n, const Exec& exec) {
  const Gt product = miller_product(p, q, n, exec);
  SNL_SPAN("pairing.final_exponentiation");
  return final_exponentiation(product);
}

bool pairing_product_is_one(const u64* p, const u64* q, usize n, const Exec& exec) {
  return product_of_pairings(p, q, n, exec) == Gt::one();
}

void pairing(u64* out, const u64* p, const u64* q, const Exec& exec) {
  *reinterpret_cast<Gt*>(out) = product_of_pairings(p, q, 1, exec);
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(pairing)(CurveKernels& k) {
  k.pairing_product_is_one = pairing_product_is_one;
  k.pairing = pairing;
}

}  // namespace snarkline
