// Element-wise products eight at a time by AVX-512 IFMA. Empty unless SNL_ISA_ifma; include it after all standard
// headers. Each function does whole eights of [begin, end) and returns where it ended; outputs may be inputs.
//
// Products in the lanes divide by 2^(52 W), those of `Field` by 2^(64 N): one factor is taken times the ratio 2^slack,
// by shifting its limbs, so that arrays need no conversion. That factor is below 2^slack p, and the product below 1.5p.
#pragma once

#include "ifma.h"

#if SNL_ISA_ifma
#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// out[i] = a[i] * c
template <class F>
usize multiply_eights(u64* out, const u64* a, const F& c, usize begin, usize end) {
  using V = Field8<F>;
  const V wide = V::wide(c);
  for (; end - begin >= 8; begin += 8) V::mul(V::load(a + begin * F::N), wide).store(out + begin * F::N);
  return begin;
}

// out[i] = a[i] * b[i]
template <class F>
usize multiply_eights(u64* out, const u64* a, const u64* b, usize begin, usize end) {
  using V = Field8<F>;
  for (; end - begin >= 8; begin += 8) {
    V::mul(V::load(a + begin * F::N), V::template load<V::slack>(b + begin * F::N)).store(out + begin * F::N);
  }
  return begin;
}

// out[i] = a[i] * b[i] - c[i]
template <class F>
usize multiply_subtract_eights(u64* out, const u64* a, const u64* b, const u64* c, usize begin, usize end) {
  using V = Field8<F>;
  for (; end - begin >= 8; begin += 8) {
    const V product = V::mul(V::load(a + begin * F::N), V::template load<V::slack>(b + begin * F::N));
    V::template sub_reduce<1>(product, V::load(c + begin * F::N)).store(out + begin * F::N);
  }
  return begin;
}

}  // namespace SNL_ISA
}  // namespace snarkline
#include "ifma_end.h"
#endif
