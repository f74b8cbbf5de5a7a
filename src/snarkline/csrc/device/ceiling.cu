// What the chip can do at most, for `snarkline bench gpu`: products in registers, with nothing to load or wait for.
#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

// Chains that do not depend on each other, so that the latency of one hides behind the others.
constexpr u32 chains = 2;

// In loops without branches the assembler may split wide multiply-adds into halves, at twice their price. A product in
// a conditional block of its own keeps them whole, which is also how they stand in the kernels. `all` is the number of
// chains.
template <class F>
SNL_DEVICE void multiply_chains(F* out, const F* in, u32 rounds, u32 all) {
  const F factor = load_constant(in + chains);
  F x[chains];
  SNL_UNROLL for (u32 k = 0; k < chains; k++) x[k] = load_constant(in + k);
  SNL_ROLLED for (u32 r = 0; r < rounds; r++) {
    SNL_UNROLL for (u32 k = 0; k < chains; k++) {
      if (k < all) x[k] = x[k] * factor;
    }
  }
  F sum = x[0];
  SNL_UNROLL for (u32 k = 1; k < chains; k++) sum = sum + x[k];
  store(out + global_index(), sum);
}

}  // namespace

// Each thread makes `rounds` times 2 products; `in` holds three elements. One result a thread keeps them from
// vanishing.
SNL_KERNEL(128, 4) multiply_fr(SNL_CURVE::Fr* out, const SNL_CURVE::Fr* in, u32 rounds, u32 all) {
  multiply_chains(out, in, rounds, all);
}
SNL_KERNEL(128, 4) multiply_fp(SNL_CURVE::Fp* out, const SNL_CURVE::Fp* in, u32 rounds, u32 all) {
  multiply_chains(out, in, rounds, all);
}

// `rounds` times 64 multiply-adds of 32 x 32 + 64 bits a thread, in 8 chains: the unit that bounds all products. One
// factor changes all the time, so that no product can be taken out of the loop.
SNL_KERNEL(128, 4) multiply_add(u64* out, const u32* in, u32 rounds) {
  constexpr int n = 8;
  u64 sum[n];
  u32 a[n], b = in[1];
  SNL_UNROLL for (int k = 0; k < n; k++) {
    a[k] = in[0] + threadIdx.x + static_cast<u32>(k);
    sum[k] = a[k];
  }
  SNL_ROLLED for (u32 r = 0; r < rounds; r++) {
    SNL_UNROLL for (int i = 0; i < 64 / n; i++) {
      SNL_UNROLL for (int k = 0; k < n; k++) {
        asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(sum[k]) : "r"(a[k]), "r"(b));
      }
      b += a[0];
    }
  }
  u64 total = 0;
  SNL_UNROLL for (int k = 0; k < n; k++) total += sum[k];
  out[global_index()] = total;
}

}  // namespace SNL_ISA
}  // namespace snarkline
