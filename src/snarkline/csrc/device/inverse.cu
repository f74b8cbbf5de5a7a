// Inverses of many elements of Fp at the price of three products each (Montgomery's trick): every thread multiplies
// some values up, every block the products of its threads in a tree, and one block the products of the blocks, down to
// 32 that are inverted side by side. Arrays are planes of 16-byte pieces (access.h). Zeros must not occur.
#include "access.h"
#include "division_steps.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fp = SNL_CURVE::Fp;

constexpr u32 block_leaves = 256, top_inversions = 32;
constexpr u32 pieces = sizeof(Fp) / sizeof(Pair);

// A tree of products in shared memory: node i is the product of the nodes 2 i and 2 i + 1, leaves are the nodes from
// `leaves` on, a power of two of at most as many as the block has threads.
struct Tree {
  Pair* memory;  // 2 * leaves elements
  u32 leaves;

  SNL_DEVICE Fp operator[](u32 node) const { return load_planes<Fp>(memory, 2 * leaves, node); }
  SNL_DEVICE void set(u32 node, const Fp& value) const { store_planes(memory, 2 * leaves, node, value); }

  // From the leaves to the level of `width` nodes.
  SNL_DEVICE void multiply_up(u32 width) const {
    __syncthreads();
    SNL_ROLLED for (u32 level = leaves / 2; level >= width; level /= 2) {
      const u32 node = level + threadIdx.x;
      if (threadIdx.x < level) set(node, (*this)[2 * node] * (*this)[2 * node + 1]);
      __syncthreads();
    }
  }
  // From the level of `width` nodes, which are inverses, to the leaves: the inverse of a node is its parent's times its
  // sibling.
  SNL_DEVICE void multiply_down(u32 width) const {
    __syncthreads();
    SNL_ROLLED for (u32 level = 2 * width; level <= leaves; level *= 2) {
      const u32 node = level + threadIdx.x;
      Fp inverse;
      if (threadIdx.x < level) inverse = (*this)[node / 2] * (*this)[node ^ 1];
      __syncthreads();
      if (threadIdx.x < level) set(node, inverse);
      __syncthreads();
    }
  }
};

}  // namespace

// values[t], values[t + threads], ... for thread t: prefixes hold what came before each. trees: of each block the nodes
// but for the first; products: of the blocks.
SNL_KERNEL(256, 2) inverse_up(const Pair* values, u32 n, Pair* prefixes, Pair* trees, Pair* products) {
  __shared__ Pair nodes[2 * block_leaves * pieces];
  const Tree tree{nodes, block_leaves};
  const u64 t = global_index(), threads = grid_size(), last = n - 1;
  Fp product = load_planes<Fp>(values, n, t < n ? t : last);
  Fp next = load_planes<Fp>(values, n, t + threads < n ? t + threads : last);
  SNL_ROLLED for (u64 i = t + threads; i < n; i += threads) {
    const Fp value = next;  // read one ahead: few threads run, so nothing else hides the wait
    next = load_planes<Fp>(values, n, i + threads < n ? i + threads : last);
    store_planes(prefixes, n, i, product);
    product = product * value;
  }
  tree.set(block_leaves + threadIdx.x, t < n ? product : Fp::one());
  tree.multiply_up(1);
  for (u32 node = threadIdx.x; node < 2 * block_leaves; node += block_leaves) {
    if (node == 1) store_planes(products, gridDim.x, blockIdx.x, tree[1]);
    if (node > 1)
      store_planes(trees, 2 * block_leaves * u64{gridDim.x}, 2 * block_leaves * blockIdx.x + node, tree[node]);
  }
}

// The way back: products[b] holds the inverse of the product; values become their inverses.
SNL_KERNEL(256, 2) inverse_down(Pair* values, u32 n, const Pair* prefixes, const Pair* trees, const Pair* products) {
  __shared__ Pair nodes[2 * block_leaves * pieces];
  const Tree tree{nodes, block_leaves};
  for (u32 node = threadIdx.x; node < 2 * block_leaves; node += block_leaves) {
    if (node == 1) tree.set(1, load_planes<Fp>(products, gridDim.x, blockIdx.x));
    if (node > 1)
      tree.set(node, load_planes<Fp>(trees, 2 * block_leaves * u64{gridDim.x}, 2 * block_leaves * blockIdx.x + node));
  }
  tree.multiply_down(1);
  const u64 t = global_index(), threads = grid_size();
  if (t >= n) return;
  Fp inverse = tree[block_leaves + threadIdx.x];
  u64 i = t + (n - t - 1) / threads * threads;
  Fp next = load_planes<Fp>(values, n, i), next_prefix = load_planes<Fp>(prefixes, n, i);
  SNL_ROLLED for (; i > t; i -= threads) {
    const Fp value = next, prefix = next_prefix;
    next = load_planes<Fp>(values, n, i - threads);
    next_prefix = load_planes<Fp>(prefixes, n, i - threads);
    store_planes(values, n, i, inverse * prefix);
    inverse = inverse * value;
  }
  store_planes(values, n, t, inverse);
}

// At most 256 values, by one block; `leaves` is 32 or the next power of two.
SNL_KERNEL(256, 1) inverse_top(Pair* values, u32 n, u32 leaves) {
  SNL_DYNAMIC_SHARED(Pair, nodes);
  const Tree tree{nodes, leaves};
  if (threadIdx.x < leaves) {
    tree.set(leaves + threadIdx.x, threadIdx.x < n ? load_planes<Fp>(values, n, threadIdx.x) : Fp::one());
  }
  tree.multiply_up(top_inversions);
  if (threadIdx.x < top_inversions) tree.set(top_inversions + threadIdx.x, invert(tree[top_inversions + threadIdx.x]));
  tree.multiply_down(top_inversions);
  if (threadIdx.x < n) store_planes(values, n, threadIdx.x, tree[leaves + threadIdx.x]);
}

}  // namespace SNL_ISA
}  // namespace snarkline
