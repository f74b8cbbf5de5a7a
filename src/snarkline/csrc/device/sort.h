// The sort of digits by bucket. Sums are exact, so the order within a bucket is left open, and so is that in which
// blocks and warps reserve their places: nothing here is stable, and one pass over a part of the bits is a count and a
// move.
//
// The buckets of a window are cut into 2^high_bits segments of neighbouring buckets. Entries are first parted by
// segment
// (`partition_digits`), as the low bits of the bucket and the value; then each segment is sorted by one block in shared
// memory (`sort_segments`). Segments too large for that, of scalars that are alike, are taken in parts by many blocks.
#pragma once

#include "scan.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using u16 = unsigned short;

// A window of digits: bits [start, start + bits) of the scalar; its buckets begin at `base`.
struct Window {
  u32 start, bits, base, unused;
};

// A digit is written as 2 (|digit| - 1), plus 1 where the point is to be negated; 0 has the top bit. Scalars are listed
// with the wide ones first, then the narrow ones, which have digits in the first `covering` windows, then those that
// are one. The digits of a window are those of the scalars that can have some there, in this order; a window is behind
// the one before.
struct Columns {
  u32 wide, narrow, ones, covering;

  SNL_DEVICE u32 length(u32 w) const { return wide + (w < covering ? narrow : 0) + (w == 0 ? ones : 0); }
  SNL_DEVICE u32 begin(u32 w) const { return w * wide + (w < covering ? w : covering) * narrow + (w == 0 ? 0 : ones); }
};

constexpr u32 no_digit = 1u << 31;

constexpr u32 sort_threads = 512;
constexpr u32 partition_threads = 1024, partition_items = 11, partition_tile = partition_threads * partition_items;
constexpr u32 segment_room = 17 << 10;  // the most entries that one block sorts
constexpr u32 part_size = 8 << 10;      // of a larger segment
constexpr u32 batch = 8;                // loads of a thread in flight

// Adds one to bins[bin] for each lane of a warp; returns what was there before, in some order of the lanes. If all have
// the same bin they add together.
SNL_DEVICE u32 take_place(u32* bins, u32 bin) {
  const u32 common = __shfl_sync(all_lanes, bin, 0);
  if (__ballot_sync(all_lanes, bin != common) != 0) return atomicAdd(&bins[bin], 1u);
  u32 before = 0;
  if (lane_id() == 0) before = atomicAdd(&bins[common], warp_size);
  return __shfl_sync(all_lanes, before, 0) + lane_id();
}

// Calls took(k, place) for the items k of the threads of a warp, of bin(k). In scalars that are alike all lanes have
// the same bin, and one by one they would wait for each other; the first item tells. (Where nobody asks what was there
// before, the instruction that adds one takes care of that.)
template <u32 items, class Bin, class Took>
SNL_DEVICE void take_places(u32* bins, const Bin& bin, const Took& took) {
  const u32 common = __shfl_sync(all_lanes, bin(0), 0);
  if (__ballot_sync(all_lanes, bin(0) != common) != 0) {
    u32 before[items];
    SNL_UNROLL for (u32 k = 0; k < items; k++) before[k] = atomicAdd(&bins[bin(k)], 1u);
    SNL_UNROLL for (u32 k = 0; k < items; k++) took(k, before[k]);
  } else {
    SNL_UNROLL for (u32 k = 0; k < items; k++) took(k, take_place(bins, bin(k)));
  }
}

// Of n_bins + 1 bins, of which the last is for items that do not exist: replaces each by the sum of those before it,
// and calls visit(bin, that sum, what was in it) for all but the last. Returns the last sum. Between barriers of the
// block.
template <u32 threads = sort_threads, class Visit>
SNL_DEVICE u32 scan_bins(u32* bins, u32 n_bins, const Visit& visit) {
  const u32 each = (n_bins + threads - 1) / threads, begin = threadIdx.x * each;
  const u32 end = begin + each < n_bins ? begin + each : n_bins;
  u32 sum = 0, total;
  for (u32 b = begin; b < end; b++) sum += bins[b];
  u32 before = before_in_block<threads / warp_size>(sum, total);
  for (u32 b = begin; b < end; b++) {
    const u32 count = bins[b];
    bins[b] = before;
    visit(b, before, count);
    before += count;
  }
  if (threadIdx.x == 0) bins[n_bins] = total;
  return total;
}

SNL_DEVICE void clear(u32* words, u32 n) {
  for (u32 i = threadIdx.x; i < n; i += blockDim.x) words[i] = 0;
}

// Entries as they are parted by segment.
struct Entries {
  const u16* lows;  // the low bits of the bucket
  const u32* values;
};

// bins[l] += those with the low bits l of the `size` from `begin` on.
SNL_DEVICE void count_lows(const Entries& in, u32 begin, u32 size, u32* bins, u32 n_bins) {
  SNL_ROLLED for (u32 at = threadIdx.x; at < size; at += batch * sort_threads) {
    const u16* lows = in.lows + begin + at;
    const u32 left = size - at;
    u32 low[batch];
    SNL_UNROLL for (u32 k = 0; k < batch; k++) low[k] = k * sort_threads < left ? lows[k * sort_threads] : n_bins;
    SNL_UNROLL for (u32 k = 0; k < batch; k++) atomicAdd(&bins[low[k]], 1u);
  }
}

// Moves these into `sorted`, from the places in the bins on, and calls also(place, low bits) for each.
template <class Also>
SNL_DEVICE void place_entries(const Entries& in, u32 begin, u32 size, u32* bins, u32 n_bins, u32* sorted,
                              const Also& also) {
  SNL_ROLLED for (u32 at = 0; at < size; at += batch * sort_threads) {
    const u32 i = at + threadIdx.x, left = i < size ? size - i : 0;
    const u16* lows = in.lows + begin + i;
    const u32* values = in.values + begin + i;
    u32 low[batch], value[batch];
    SNL_UNROLL for (u32 k = 0; k < batch; k++) {
      const bool exists = k * sort_threads < left;
      low[k] = exists ? lows[k * sort_threads] : n_bins;
      value[k] = exists ? values[k * sort_threads] : 0;
    }
    take_places<batch>(
        bins, [&](u32 k) { return low[k]; },
        [&](u32 k, u32 place) {
          if (place >= size) return;
          sorted[place] = value[k];
          also(place, low[k]);
        });
  }
}

// The entries and the buckets of a segment. `starts` has one more word than there are segments.
struct Segment {
  u32 begin, size, bucket, n_buckets;

  SNL_DEVICE Segment(const Window* windows, u32 high_bits, const u32* starts, u32 s) {
    const Window window = windows[s >> high_bits];
    const u32 low_bits = window.bits - 1 - high_bits;
    begin = starts[s];
    size = starts[s + 1] - begin;
    n_buckets = 1u << low_bits;
    bucket = window.base + ((s & ((1u << high_bits) - 1)) << low_bits);
  }
};

// A part of a segment that is sorted by many blocks.
struct Part {
  u32 begin, size;

  SNL_DEVICE Part(const Segment& segment, u32 number) {
    const u32 skipped = number * part_size, rest = segment.size - skipped;
    begin = segment.begin + skipped;
    size = rest < part_size ? rest : part_size;
  }
};

SNL_DEVICE void count_part(const Entries& in, const Segment& segment, const Part& part, u32* bins, u32* counts) {
  clear(bins, segment.n_buckets);
  __syncthreads();
  count_lows(in, part.begin, part.size, bins, segment.n_buckets);
  __syncthreads();
  for (u32 b = threadIdx.x; b < segment.n_buckets; b += sort_threads) {
    if (bins[b] != 0) atomicAdd(&counts[segment.bucket + b], bins[b]);
  }
  __syncthreads();
}

}  // namespace

// From the sizes of the segments to where they begin, in `starts` and again in `cursors`, which held the sizes; and the
// parts (segment, number) of those that are too large for one block, n_parts of them. One block.
SNL_KERNEL(1024, 1)
plan_segments(u32* cursors, u32 n, u32* starts, uint2* parts, u32* n_parts, u32* n_entries, u32* last_start) {
  constexpr u32 threads = 1024, items = 4;
  u32 all = 0, all_parts = 0;
  SNL_ROLLED for (u32 at = 0; at < n; at += threads * items) {
    const u32 first = at + threadIdx.x * items;
    u32 size[items], sum = 0, sum_parts = 0;
    SNL_UNROLL for (u32 k = 0; k < items; k++) {
      size[k] = first + k < n ? cursors[first + k] : 0;
      sum += size[k];
      if (size[k] > segment_room) sum_parts += (size[k] + part_size - 1) / part_size;
    }
    u32 total, total_parts;
    u32 before = all + before_in_block<threads / warp_size>(sum, total);
    u32 part = all_parts + before_in_block<threads / warp_size>(sum_parts, total_parts);
    SNL_UNROLL for (u32 k = 0; k < items; k++) {
      if (first + k >= n) break;
      starts[first + k] = cursors[first + k] = before;
      before += size[k];
    }
    SNL_UNROLL for (u32 k = 0; k < items; k++) {  // those of one segment by a warp
      const u32 n_here = size[k] > segment_room ? (size[k] + part_size - 1) / part_size : 0;
      for (u32 lanes = __ballot_sync(all_lanes, n_here != 0); lanes != 0; lanes &= lanes - 1) {
        const int from = __ffs(lanes) - 1;
        const u32 count = __shfl_sync(all_lanes, n_here, from), begin = __shfl_sync(all_lanes, part, from);
        const u32 segment = __shfl_sync(all_lanes, first + k, from);
        for (u32 i = lane_id(); i < count; i += warp_size) parts[begin + i] = uint2{segment, i};
      }
      part += n_here;
    }
    all += total;
    all_parts += total_parts;
  }
  if (threadIdx.x != 0) return;
  starts[n] = *last_start = *n_entries = all;
  *n_parts = all_parts;
}

// Entries by segment, from where the segment's cursor is on: a block a tile (x) of a window (y). The items
// of a tile are first brought into order in shared memory, so that neighbouring threads write to neighbouring
// addresses. indices: of the scalars in the list, null where these are all and in order.
SNL_KERNEL(1024, 2)
partition_digits(const u32* digits, const u32* indices, u32 wide, u32 narrow, u32 ones, u32 covering,
                 const Window* windows, u32 high_bits, u32* cursors, u16* lows, u32* values) {
  SNL_DYNAMIC_SHARED(u32, memory);
  const Columns columns{wide, narrow, ones, covering};
  const u32 w = blockIdx.y, length = columns.length(w), begin = blockIdx.x * partition_tile;
  if (begin >= length) return;
  const u32 n_bins = 1u << high_bits, low_bits = windows[w].bits - 1 - high_bits, low_mask = (1u << low_bits) - 1;
  u32 *tile_digits = memory, *tile_values = memory + partition_tile;
  u32 *bins = memory + 2 * partition_tile, *targets = bins + n_bins + 1;
  clear(bins, n_bins + 1);
  const u32* column = digits + columns.begin(w);
  u32 digit[partition_items], rank[(partition_items + 1) / 2] = {};
  SNL_UNROLL for (u32 k = 0; k < partition_items; k++) {
    const u32 i = begin + k * partition_threads + threadIdx.x;
    digit[k] = i < length ? column[i] : no_digit;
  }
  __syncthreads();
  const auto bin = [&](u32 k) {
    const u32 b = digit[k] >> (low_bits + 1);
    return b < n_bins ? b : n_bins;
  };
  take_places<partition_items>(bins, bin, [&](u32 k, u32 r) { rank[k / 2] |= r << (k % 2 * 16); });
  __syncthreads();
  const u32 size = scan_bins<partition_threads>(bins, n_bins, [&](u32 b, u32 before, u32 count) {
    if (count != 0) targets[b] = atomicAdd(&cursors[(w << high_bits) + b], count) - before;
  });
  __syncthreads();
  SNL_UNROLL for (u32 k = 0; k < partition_items; k++) {
    const u32 i = begin + k * partition_threads + threadIdx.x;
    const u32 place = bins[bin(k)] + (rank[k / 2] >> (k % 2 * 16) & 0xffff);
    const u32 index = indices == nullptr ? i : i < length ? indices[i] : 0;
    tile_digits[place] = digit[k];
    tile_values[place] = index | digit[k] << 31;
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < size; i += partition_threads) {
    const u32 d = tile_digits[i], place = targets[d >> (low_bits + 1)] + i;
    lows[place] = static_cast<u16>(d >> 1 & low_mask);
    values[place] = tile_values[i];
  }
}

// Sorts the segments that one block can, a block each, behind `counting_blocks` that count the buckets of the others'
// parts into `counts`, which is 0 before. start[b]: where the entries of bucket b begin in values_out; it is as the
// next bucket's where there are none.
SNL_KERNEL(512, 3)
sort_segments(const u16* lows, const u32* values, const Window* windows, u32 high_bits, const u32* starts,
              const uint2* parts, const u32* n_parts, u32 counting_blocks, u32* counts, u32* start, u32* values_out) {
  SNL_DYNAMIC_SHARED(u32, memory);
  const Entries in{lows, values};
  u32 *sorted = memory, *bins = memory + segment_room;
  if (blockIdx.x < counting_blocks) {
    SNL_ROLLED for (u32 i = blockIdx.x; i < *n_parts; i += counting_blocks) {
      const Segment segment(windows, high_bits, starts, parts[i].x);
      count_part(in, segment, Part(segment, parts[i].y), bins, counts);
    }
    return;
  }
  const Segment segment(windows, high_bits, starts, blockIdx.x - counting_blocks);
  if (segment.size > segment_room) return;
  clear(bins, segment.n_buckets);
  __syncthreads();
  count_lows(in, segment.begin, segment.size, bins, segment.n_buckets);
  __syncthreads();
  scan_bins(bins, segment.n_buckets,
            [&](u32 b, u32 before, u32) { start[segment.bucket + b] = segment.begin + before; });
  __syncthreads();
  place_entries(in, segment.begin, segment.size, bins, segment.n_buckets, sorted, [](u32, u32) {});
  __syncthreads();
  u32* out = values_out + segment.begin;
  for (u32 i = threadIdx.x; i < segment.size; i += sort_threads) out[i] = sorted[i];
}

// Sorts the parts of the other segments. `counts` are complete; cursors[b] is 0 before.
SNL_KERNEL(512, 3)
sort_parts(const u16* lows, const u32* values, const Window* windows, u32 high_bits, const u32* starts,
           const uint2* parts, const u32* n_parts, const u32* counts, u32* cursors, u32* start, u32* values_out) {
  SNL_DYNAMIC_SHARED(u32, memory);
  const Entries in{lows, values};
  u32* sorted = memory;
  u16* sorted_lows = reinterpret_cast<u16*>(memory + part_size);
  u32* bins = memory + part_size + part_size / 2;
  SNL_ROLLED for (u32 item = blockIdx.x; item < *n_parts; item += gridDim.x) {
    const u32 number = parts[item].y;
    const Segment segment(windows, high_bits, starts, parts[item].x);
    const Part part(segment, number);
    u32* targets = bins + segment.n_buckets + 1;
    clear(bins, segment.n_buckets);
    for (u32 b = threadIdx.x; b < segment.n_buckets; b += sort_threads) targets[b] = counts[segment.bucket + b];
    __syncthreads();
    count_lows(in, part.begin, part.size, bins, segment.n_buckets);
    __syncthreads();
    scan_bins(targets, segment.n_buckets, [&](u32 b, u32 before, u32) {
      if (number == 0) start[segment.bucket + b] = segment.begin + before;
    });
    scan_bins(bins, segment.n_buckets, [&](u32 b, u32 before, u32 count) {
      if (count != 0) targets[b] += segment.begin + atomicAdd(&cursors[segment.bucket + b], count) - before;
    });
    __syncthreads();
    place_entries(in, part.begin, part.size, bins, segment.n_buckets, sorted,
                  [&](u32 place, u32 low) { sorted_lows[place] = static_cast<u16>(low); });
    __syncthreads();
    for (u32 i = threadIdx.x; i < part.size; i += sort_threads) values_out[targets[sorted_lows[i]] + i] = sorted[i];
    __syncthreads();
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
