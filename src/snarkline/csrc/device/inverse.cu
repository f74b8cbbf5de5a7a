// Inverses of many elements of Fp at the price of three products each, by levels of products (Montgomery's trick), and
// one inversion at the top. Arrays are planes of 16-byte pieces (access.h). Zeros must not occur.
#include "access.h"
#include "division_steps.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fp = SNL_CURVE::Fp;

// values[t], values[t + groups], ... multiplied up: products[t] is their product, prefixes hold what came before each.
SNL_DEVICE void multiply_up(const Pair* values, u32 n, u32 groups, Pair* prefixes, Pair* products, u32 t) {
  Fp product = load_planes<Fp>(values, n, t);
  u64 i = u64{t} + groups;
  Fp next = load_planes<Fp>(values, n, i < n ? i : t);  // one ahead: few threads run, so nothing else hides the wait
  SNL_ROLLED for (; i < n; i += groups) {
    const Fp value = next;
    next = load_planes<Fp>(values, n, i + groups < n ? i + groups : t);
    store_planes(prefixes, n, i, product);
    product = product * value;
  }
  store_planes(products, groups, t, product);
}

// The way back: products[t] holds the inverse of the product; values become their inverses.
SNL_DEVICE void multiply_down(Pair* values, u32 n, u32 groups, const Pair* prefixes, const Pair* products, u32 t) {
  Fp inverse = load_planes<Fp>(products, groups, t);
  u64 i = t + static_cast<u64>((n - t - 1) / groups) * groups;
  Fp next = load_planes<Fp>(values, n, i), next_prefix = load_planes<Fp>(prefixes, n, i);
  SNL_ROLLED for (; i > t; i -= groups) {
    const Fp value = next, prefix = next_prefix;
    next = load_planes<Fp>(values, n, i - groups);
    next_prefix = load_planes<Fp>(prefixes, n, i - groups);
    store_planes(values, n, i, inverse * prefix);
    inverse = inverse * value;
  }
  store_planes(values, n, t, inverse);
}

constexpr u32 top_fan = 2, top_inversions = 32;
constexpr int max_levels = 8;

}  // namespace

SNL_KERNEL(128, 4) inverse_up(const Pair* values, u32 n, u32 groups, Pair* prefixes, Pair* products) {
  const u64 t = global_index();
  if (t < groups) multiply_up(values, n, groups, prefixes, products, static_cast<u32>(t));
}

SNL_KERNEL(128, 4) inverse_down(Pair* values, u32 n, u32 groups, const Pair* prefixes, const Pair* products) {
  const u64 t = global_index();
  if (t < groups) multiply_down(values, n, groups, prefixes, products, static_cast<u32>(t));
}

// All levels of at most 2048 values, by one block, down to 32 values that are inverted side by side. Levels of pairs
// make the shortest chain of products. `scratch` has room for 3 n elements.
SNL_KERNEL(512, 1) inverse_top(Pair* values, u32 n, Pair* scratch) {
  constexpr u32 pieces = sizeof(Fp) / sizeof(Pair);
  Pair *level[max_levels], *prefix[max_levels];
  u32 size[max_levels];
  int top = 0;
  level[0] = values;
  size[0] = n;
  while (size[top] > top_inversions) {
    prefix[top] = scratch;
    scratch += pieces * size[top];
    size[top + 1] = (size[top] + top_fan - 1) / top_fan;
    level[top + 1] = scratch;
    scratch += pieces * size[top + 1];
    top++;
  }
  for (int l = 0; l < top; l++) {
    for (u32 t = threadIdx.x; t < size[l + 1]; t += blockDim.x) {
      multiply_up(level[l], size[l], size[l + 1], prefix[l], level[l + 1], t);
    }
    __syncthreads();
  }
  if (threadIdx.x < size[top]) {
    store_planes(level[top], size[top], threadIdx.x, invert(load_planes<Fp>(level[top], size[top], threadIdx.x)));
  }
  __syncthreads();
  for (int l = top; l-- > 0;) {
    for (u32 t = threadIdx.x; t < size[l + 1]; t += blockDim.x) {
      multiply_down(level[l], size[l], size[l + 1], prefix[l], level[l + 1], t);
    }
    __syncthreads();
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
