// Number-theoretic transforms over Fr.
#include <algorithm>
#include <vector>

#include "../common/curves.h"
#include "kernels.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr usize grain = 4096;

Fr power(Fr base, usize e) {
  Fr acc = Fr::one();
  for (; e; e >>= 1, base = base.sqr()) {
    if (e & 1) acc *= base;
  }
  return acc;
}

// root^0 ... root^(n - 1)
std::vector<Fr> powers(const Fr& root, usize n, const Exec& exec) {
  std::vector<Fr> table(n);
  parallel_ranges(exec, n, grain, [&](usize begin, usize end) {
    Fr w = power(root, begin);
    for (usize i = begin; i < end; i++, w *= root) table[i] = w;
  });
  return table;
}

// Natural order in, bit-reversed out (Gentleman and Sande).
void decimate_in_frequency(Fr* a, int log_n, const Fr* twiddles, const Exec& exec) {
  const usize half_n = (usize{1} << log_n) / 2;
  for (int s = log_n; s-- > 0;) {
    const usize half = usize{1} << s, stride = half_n >> s;
    parallel_ranges(exec, half_n, grain, [&](usize begin, usize end) {
      for (usize i = begin; i < end; i++) {
        const usize j = i & (half - 1), low = ((i >> s) << (s + 1)) + j;
        const Fr u = a[low], v = a[low + half];
        a[low] = u + v;
        a[low + half] = (u - v) * twiddles[j * stride];
      }
    });
  }
}

// Bit-reversed order in, natural out (Cooley and Tukey).
void decimate_in_time(Fr* a, int log_n, const Fr* twiddles, const Exec& exec) {
  const usize half_n = (usize{1} << log_n) / 2;
  for (int s = 0; s < log_n; s++) {
    const usize half = usize{1} << s, stride = half_n >> s;
    parallel_ranges(exec, half_n, grain, [&](usize begin, usize end) {
      for (usize i = begin; i < end; i++) {
        const usize j = i & (half - 1), low = ((i >> s) << (s + 1)) + j;
        const Fr u = a[low], v = a[low + half] * twiddles[j * stride];
        a[low] = u + v;
        a[low + half] = u - v;
      }
    });
  }
}

usize reverse_bits(usize i, int bits) {
  usize r = 0;
  for (int b = 0; b < bits; b++) r |= ((i >> b) & 1) << (bits - 1 - b);
  return r;
}

void reorder(Fr* a, int log_n, const Exec& exec) {
  parallel_ranges(exec, usize{1} << log_n, grain, [&](usize begin, usize end) {
    for (usize i = begin; i < end; i++) {
      const usize j = reverse_bits(i, log_n);
      if (i < j) std::swap(a[i], a[j]);
    }
  });
}

// a[i] *= first * ratio^i, for a in bit-reversed or natural order
void scale(Fr* a, int log_n, const Fr& first, const Fr& ratio, bool reversed, const Exec& exec) {
  const usize n = usize{1} << log_n;
  const auto table = powers(ratio, n, exec);
  parallel_ranges(exec, n, grain, [&](usize begin, usize end) {
    for (usize i = begin; i < end; i++) a[i] *= first * table[reversed ? reverse_bits(i, log_n) : i];
  });
}

void ntt(u64* data, int log_n, const u64* root, const u64* shift, bool inverse, const Exec& exec) {
  SNL_SPAN("ntt");
  Fr* a = reinterpret_cast<Fr*>(data);
  const Fr w = *reinterpret_cast<const Fr*>(root);
  const usize n = usize{1} << log_n;
  const auto twiddles = powers(inverse ? w.inverse() : w, std::max<usize>(n / 2, 1), exec);
  if (!inverse && shift) scale(a, log_n, Fr::one(), *reinterpret_cast<const Fr*>(shift), false, exec);
  decimate_in_frequency(a, log_n, twiddles.data(), exec);
  reorder(a, log_n, exec);
  if (inverse) {
    const Fr ratio = shift ? reinterpret_cast<const Fr*>(shift)->inverse() : Fr::one();
    scale(a, log_n, Fr::from_u64(n).inverse(), ratio, false, exec);
  }
}

void coset_evaluations(u64* data, int log_n, const u64* root, const u64* shift, const Exec& exec) {
  SNL_SPAN("coset_evaluations");
  Fr* a = reinterpret_cast<Fr*>(data);
  const Fr w = *reinterpret_cast<const Fr*>(root);
  const usize n = usize{1} << log_n;
  decimate_in_frequency(a, log_n, powers(w.inverse(), std::max<usize>(n / 2, 1), exec).data(), exec);
  scale(a, log_n, Fr::from_u64(n).inverse(), *reinterpret_cast<const Fr*>(shift), true, exec);
  decimate_in_time(a, log_n, powers(w, std::max<usize>(n / 2, 1), exec).data(), exec);
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(ntt)(CurveKernels& k) {
  k.ntt = ntt;
  k.coset_evaluations = coset_evaluations;
}

}  // namespace snarkline
