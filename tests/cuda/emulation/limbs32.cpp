// Products and squares on 32-bit limbs (csrc/common/limbs32.h) of arrays of elements, for test_limbs32.py.
#define SNL_EMULATE_LIMBS32 1
#include "curves.h"

using namespace snarkline;

// results: of each pair product, square of a, and both before their final subtraction, one array behind the other.
template <class F>
void multiply(const F* a, const F* b, usize n, F* results) {
  for (usize i = 0; i < n; i++) {
    results[i] = limbs32::mul(a[i], b[i]);
    results[n + i] = limbs32::sqr(a[i]);
    results[2 * n + i] = limbs32::mul_lazy(a[i], b[i]);
    results[3 * n + i] = F{limbs32::join(limbs32::square_lazy<F>(limbs32::split(a[i].v)))};
  }
}

extern "C" {
void bn254_fp(const Bn254::Fp* a, const Bn254::Fp* b, usize n, Bn254::Fp* results) { multiply(a, b, n, results); }
void bls12_381_fp(const Bls12_381::Fp* a, const Bls12_381::Fp* b, usize n, Bls12_381::Fp* results) {
  multiply(a, b, n, results);
}
}
