// Exclusive prefix sums of 32-bit values in one launch: each block sums a tile, tells the sum, and looks back over what
// the blocks before it have told (Merrill, Garland: Single-pass Parallel Prefix Scan with Decoupled Look-back, NVIDIA
// technical report NVR-2016-002). Blocks start in the order of their numbers, so those that are waited for run.
#pragma once

#include "warp.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 scan_threads = 256, scan_warps = scan_threads / warp_size, scan_items = 16;
constexpr u32 scan_tile = scan_threads * scan_items;

// What a block tells, in one word: a value, the number of the run (so that the words of the run before count for
// nothing), and whether the value is the sum of the tile or of all tiles up to it. Words of run 0 are zero.
constexpr u64 up_to_here = u64{1} << 63;
SNL_DEVICE u64 told(u32 value, u32 run, bool all) {
  return value | static_cast<u64>(run) << 32 | (all ? up_to_here : 0);
}

SNL_DEVICE u64 await_told(const u64* status, u32 run) {
  u64 word;
  do {
    word = *const_cast<const volatile u64*>(status);
  } while ((word & ~up_to_here) >> 32 != run);
  return word;
}

SNL_DEVICE u32 sum_of_warp(u32 x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(all_lanes, x, d);
  return x;
}

// The sum of x over the threads of the block before this one, and over all in `total`. All of `warps` warps call it.
template <u32 warps>
SNL_DEVICE u32 before_in_block(u32 x, u32& total) {
  __shared__ u32 sums[warps];
  u32 up_to = x;
  SNL_UNROLL for (u32 d = 1; d < warp_size; d *= 2) {
    const u32 other = __shfl_up_sync(all_lanes, up_to, d);
    if (lane_id() >= d) up_to += other;
  }
  __syncthreads();  // the sums of the call before have been read
  if (lane_id() == warp_size - 1) sums[threadIdx.x / warp_size] = up_to;
  __syncthreads();
  u32 before = up_to - x;
  total = 0;
  SNL_UNROLL for (u32 w = 0; w < warps; w++) {
    if (w < threadIdx.x / warp_size) before += sums[w];
    total += sums[w];
  }
  return before;
}

// The sum of all tiles before this block's, by one warp, which tells the sum with this tile's `total`.
SNL_DEVICE u32 look_back(u64* status, u32 run, u32 total) {
  volatile u64* mine = status + blockIdx.x;
  if (blockIdx.x != 0 && lane_id() == 0) *mine = told(total, run, false);
  u32 before = 0;
  bool complete = blockIdx.x == 0;
  for (u32 end = blockIdx.x; !complete; end -= warp_size) {  // 32 tiles below `end` at a time, the nearest first
    const bool exists = lane_id() < end;
    const u64 word = exists ? await_told(status + end - 1 - lane_id(), run) : up_to_here;
    const u32 all = __ballot_sync(all_lanes, (word & up_to_here) != 0);
    // From the nearest tile that knows its sum up to it, nothing further is needed.
    const bool counts = (all & lanes_below()) == 0;
    before += sum_of_warp(counts ? static_cast<u32>(word) : 0);
    complete = all != 0;
  }
  if (lane_id() == 0) *mine = told(before + total, run, true);
  return before;
}

// out[i] = source(0) + ... + source(i - 1), for i < n. A grid of one block a tile. `status` has a word for each tile,
// of earlier runs or zero; `run` is from 1 to 2^31 - 1. `out` may be what `source` reads.
template <class Source>
SNL_DEVICE void scan(const Source& source, u32 n, u64* status, u32 run, u32* out) {
  __shared__ u32 sums[scan_warps], before_tile;
  const u32 warp = threadIdx.x / warp_size;
  const u32 first = blockIdx.x * scan_tile + warp * (scan_items * warp_size) + lane_id();
  u32 value[scan_items], sum = 0;
  SNL_UNROLL for (u32 k = 0; k < scan_items; k++) {
    const u32 i = first + k * warp_size;
    value[k] = i < n ? source(i) : 0;
  }
  SNL_UNROLL for (u32 k = 0; k < scan_items; k++) {
    u32 up_to = value[k];
    SNL_UNROLL for (u32 d = 1; d < warp_size; d *= 2) {
      const u32 other = __shfl_up_sync(all_lanes, up_to, d);
      if (lane_id() >= d) up_to += other;
    }
    value[k] = sum + up_to - value[k];
    sum += __shfl_sync(all_lanes, up_to, warp_size - 1);
  }
  if (lane_id() == 0) sums[warp] = sum;
  __syncthreads();
  u32 before = 0, total = 0;
  SNL_UNROLL for (u32 w = 0; w < scan_warps; w++) {
    if (w < warp) before += sums[w];
    total += sums[w];
  }
  if (warp == 0) {
    const u32 all = look_back(status, run, total);
    if (lane_id() == 0) before_tile = all;
  }
  __syncthreads();
  before += before_tile;
  SNL_UNROLL for (u32 k = 0; k < scan_items; k++) {
    const u32 i = first + k * warp_size;
    if (i < n) out[i] = before + value[k];
  }
}

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
