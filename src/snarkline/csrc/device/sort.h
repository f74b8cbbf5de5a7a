// A radix sort of (key, value) pairs of 32 bits, by 8 bits or fewer at a time, least significant first; stable. A round
// is `sort_count`, an exclusive prefix sum of its counts, and `sort_scatter`. How many pairs there are the kernels read
// from the device's memory: grids are for as many as there can be.
#pragma once

#include "warp.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 sort_threads = 512, sort_warps = sort_threads / warp_size, sort_items = 16;
constexpr u32 sort_tile = sort_threads * sort_items;
constexpr u32 max_bins = 256;
static_assert(sort_items * warp_size < 1 << 16);  // ranks within a warp are kept in 16 bits

using u16 = unsigned short;

// The dynamic shared memory of `sort_scatter`, 82 KiB.
struct SortTile {
  u32 keys[sort_tile], values[sort_tile];
  u32 starts[max_bins], targets[max_bins];
  u16 ranks[sort_warps][max_bins];
};

}  // namespace

// counts[bin * tiles + tile] = how many keys of the tile have that digit
SNL_KERNEL(512, 2) sort_count(const u32* keys, const u32* n_keys, int shift, int bits, u32* counts) {
  __shared__ u32 bins[max_bins];
  const u32 n = *n_keys, n_bins = 1u << bits, begin = blockIdx.x * sort_tile;
  for (u32 b = threadIdx.x; b < n_bins; b += sort_threads) bins[b] = 0;
  __syncthreads();
  u32 key[sort_items];
  SNL_UNROLL for (u32 k = 0; k < sort_items; k++) {
    const u32 i = begin + k * sort_threads + threadIdx.x;
    key[k] = i < n ? keys[i] : 0;
  }
  SNL_UNROLL for (u32 k = 0; k < sort_items; k++) {
    if (begin + k * sort_threads + threadIdx.x < n) atomicAdd(&bins[(key[k] >> shift) & (n_bins - 1)], 1u);
  }
  __syncthreads();
  for (u32 b = threadIdx.x; b < n_bins; b += sort_threads) counts[b * gridDim.x + blockIdx.x] = bins[b];
}

// Moves a tile to its places; `offsets` is the exclusive prefix sum of the counts. Within the tile the items are first
// brought into order in shared memory, so that neighbouring threads write to neighbouring addresses.
SNL_KERNEL(512, 2)
sort_scatter(const u32* keys, const u32* values, const u32* n_keys, int shift, int bits, const u32* offsets,
             u32* keys_out, u32* values_out) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  SortTile& tile = *reinterpret_cast<SortTile*>(memory);
  const u32 n = *n_keys;
  if (blockIdx.x * sort_tile >= n) return;
  const u32 n_bins = 1u << bits, mask_bits = n_bins - 1, warp = threadIdx.x / warp_size;
  const u32 begin = blockIdx.x * sort_tile, first = begin + warp * (sort_items * warp_size) + lane_id();
  u16* mine = tile.ranks[warp];
  for (u32 b = lane_id(); b < max_bins; b += warp_size) mine[b] = 0;
  __syncwarp();

  // All loads first: a barrier would hold each of them back until the one before has come.
  const u32 target = threadIdx.x < n_bins ? offsets[threadIdx.x * gridDim.x + blockIdx.x] : 0;
  u32 key[sort_items], rank[sort_items / 2];
  SNL_UNROLL for (u32 k = 0; k < sort_items; k++) {
    const u32 i = first + k * warp_size;
    key[k] = i < n ? keys[i] : 0;
  }
  // Rank within the warp's items: how many before it have the same digit.
  SNL_UNROLL for (u32 k = 0; k < sort_items; k++) {
    const bool valid = first + k * warp_size < n;
    const u32 bin = (key[k] >> shift) & mask_bits;
    u32 peers = __ballot_sync(all_lanes, valid);  // the lanes with the same digit, by its bits
    SNL_UNROLL for (int b = 0; b < 8; b++) {
      const u32 vote = __ballot_sync(all_lanes, (bin >> b) & 1);
      peers &= ((bin >> b) & 1) != 0 ? vote : ~vote;
    }
    const u32 before = mine[bin], r = before + __popc(peers & lanes_below());
    rank[k / 2] = k % 2 == 0 ? r : rank[k / 2] | r << 16;
    __syncwarp();
    if (valid && (peers & lanes_below()) == 0) mine[bin] = static_cast<u16>(before + __popc(peers));
    __syncwarp();
  }
  __syncthreads();
  // Over the warps, then over the bins.
  u32 total = 0;
  const bool has_bin = threadIdx.x < max_bins;
  if (has_bin) {
    for (u32 w = 0; w < sort_warps; w++) {
      const u16 c = tile.ranks[w][threadIdx.x];
      tile.ranks[w][threadIdx.x] = static_cast<u16>(total);
      total += c;
    }
    tile.starts[threadIdx.x] = total;
  }
  __syncthreads();
  for (u32 d = 1; d < max_bins; d *= 2) {
    const u32 before = has_bin && threadIdx.x >= d ? tile.starts[threadIdx.x - d] : 0;
    __syncthreads();
    if (has_bin) tile.starts[threadIdx.x] += before;
    __syncthreads();
  }
  if (has_bin) {
    const u32 start = tile.starts[threadIdx.x] - total;
    tile.starts[threadIdx.x] = start;
    tile.targets[threadIdx.x] = target - start;
  }
  __syncthreads();
  constexpr u32 batch = sort_items / 2;  // as many values in flight as there are registers for
  SNL_UNROLL for (u32 half = 0; half < sort_items; half += batch) {
    u32 value[batch];
    SNL_UNROLL for (u32 k = 0; k < batch; k++) {
      const u32 i = first + (half + k) * warp_size;
      value[k] = i < n ? values[i] : 0;
    }
    SNL_UNROLL for (u32 k = 0; k < batch; k++) {
      const u32 at = half + k;
      if (first + at * warp_size < n) {
        const u32 bin = (key[at] >> shift) & mask_bits, r = rank[at / 2] >> (at % 2 * 16) & 0xffff;
        const u32 place = tile.starts[bin] + mine[bin] + r;
        tile.keys[place] = key[at];
        tile.values[place] = value[k];
      }
    }
  }
  __syncthreads();
  const u32 size = n - begin < sort_tile ? n - begin : sort_tile;
  for (u32 i = threadIdx.x; i < size; i += sort_threads) {
    const u32 k = tile.keys[i], place = tile.targets[(k >> shift) & mask_bits] + i;
    keys_out[place] = k;
    values_out[place] = tile.values[i];
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
