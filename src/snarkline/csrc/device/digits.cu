// Scalars of a multi-scalar multiplication: signed digits, sorted by bucket, and the lists of additions of each round
// (rounds.cu). One entry is one non-zero digit: its key is the bucket, its value the index of the point and, in bit 31,
// whether the point is to be negated. Zero digits make no entry, so witnesses of bits cost what their ones cost.
#include "lists.h"
#include "scan.h"
#include "sort.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

// A window of digits: bits [start, start + bits) of the scalar; its buckets begin at `base`.
struct Window {
  u32 start, bits, base, unused;
};
constexpr int max_windows = 64;

// A scalar s with |s| <= r/2, plus half of each window but the top one: digit + 2^(bits - 1) is then what the bits of
// the window say, and carries between windows are gone.
struct Recoded {
  u32 word[10];
  bool negative;

  SNL_DEVICE Recoded(const Fr& scalar, bool montgomery, const u32* halves) {
    const Int<4> s = montgomery ? scalar.to_canonical() : scalar.v;
    Int<4> t = Fr::modulus;
    sub_in_place(t, s);
    negative = less(t, s);
    u64 carry = 0;
    SNL_UNROLL for (int i = 0; i < 4; i++) {
      const u64 half = halves[2 * i] | static_cast<u64>(halves[2 * i + 1]) << 32;
      const u64 limb = add_carry(negative ? t.limb[i] : s.limb[i], half, carry);
      word[2 * i] = static_cast<u32>(limb);
      word[2 * i + 1] = static_cast<u32>(limb >> 32);
    }
    word[8] = word[9] = 0;
  }
};

// The bits of the window `w` of a recoded scalar in shared memory, words `stride` apart.
SNL_DEVICE int digit(const u32* words, u32 stride, const Window& w, bool top) {
  const u32 at = w.start / 32;
  const u64 x = words[at * stride] | static_cast<u64>(words[(at + 1) * stride]) << 32;
  const int value = static_cast<int>((x >> (w.start % 32)) & ((1u << w.bits) - 1));
  return top ? value : value - (1 << (w.bits - 1));
}

constexpr u32 digit_threads = 256;
constexpr u32 digit_warps = digit_threads / warp_size;

}  // namespace

// Adds to counts[0] the number of canonical scalars of more than 32 bits, to counts[1] of those of 2 to 32 bits, and to
// counts[2] of those that are one; |s| is taken as the smaller of s and r - s.
SNL_KERNEL(256, 4) count_lengths(const Fr* scalars, u32 n, u32* counts) {
  u32 wide = 0, narrow = 0, ones = 0;
  for (u64 i = global_index(); i < n; i += grid_size()) {
    const Int<4> s = load_constant(scalars + i).v;
    Int<4> t = Fr::modulus;
    sub_in_place(t, s);
    const Int<4> least = less(t, s) ? t : s;
    const bool long_one = (least.limb[1] | least.limb[2] | least.limb[3] | least.limb[0] >> 32) != 0;
    wide += long_one;
    narrow += !long_one && least.limb[0] > 1;
    ones += !long_one && least.limb[0] == 1;
  }
  for (int d = 16; d > 0; d /= 2) {
    wide += __shfl_xor_sync(all_lanes, wide, d);
    narrow += __shfl_xor_sync(all_lanes, narrow, d);
    ones += __shfl_xor_sync(all_lanes, ones, d);
  }
  if (lane_id() != 0) return;
  if (wide != 0) atomicAdd(counts, wide);
  if (narrow != 0) atomicAdd(counts + 1, narrow);
  if (ones != 0) atomicAdd(counts + 2, ones);
}

// Appends the entries of n scalars: *n_entries must be 0 before. Order within the output is not fixed.
SNL_KERNEL(256, 2)
make_entries(const Fr* scalars, u32 n, int montgomery, const Window* windows, int n_windows, const u32* halves,
             u32* keys, u32* values, u32* n_entries) {
  __shared__ u32 words[10 * digit_threads];
  __shared__ u32 counts[max_windows * digit_warps];
  __shared__ u32 block_base;
  const u32 i = static_cast<u32>(global_index()), warp = threadIdx.x / warp_size;
  const bool valid = i < n;
  bool negative = false;
  if (valid) {
    const Recoded recoded(load_constant(scalars + i), montgomery != 0, halves);
    negative = recoded.negative;
    SNL_UNROLL for (int k = 0; k < 10; k++) words[k * digit_threads + threadIdx.x] = recoded.word[k];
  }
  const u32* mine = words + threadIdx.x;
  for (int w = 0; w < n_windows; w++) {
    const bool entry = valid && digit(mine, digit_threads, windows[w], w + 1 == n_windows) != 0;
    const u32 mask = __ballot_sync(all_lanes, entry);
    if (lane_id() == 0) counts[w * digit_warps + warp] = __popc(mask);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 sum = 0;
    for (u32 k = 0; k < n_windows * digit_warps; k++) {
      const u32 c = counts[k];
      counts[k] = sum;
      sum += c;
    }
    block_base = sum == 0 ? 0 : atomicAdd(n_entries, sum);
  }
  __syncthreads();
  for (int w = 0; w < n_windows; w++) {
    const Window window = windows[w];
    const int d = valid ? digit(mine, digit_threads, window, w + 1 == n_windows) : 0;
    const u32 mask = __ballot_sync(all_lanes, d != 0);
    if (d == 0) continue;
    const u32 place = block_base + counts[w * digit_warps + warp] + __popc(mask & lanes_below());
    keys[place] = window.base + static_cast<u32>(d < 0 ? -d : d) - 1;
    values[place] = i | static_cast<u32>((d < 0) != negative) << 31;
  }
}

// ---- buckets ----

// start[b], end[b]: the entries of bucket b in the sorted list. Both must be 0 before: empty buckets are not visited.
SNL_KERNEL(256, 4) find_buckets(const u32* keys, const u32* n_entries, u32* start, u32* end) {
  const u64 i = global_index(), n = *n_entries;
  if (i >= n) return;
  const u32 key = keys[i];
  if (i == 0 || keys[i - 1] != key) start[key] = static_cast<u32>(i);
  if (i + 1 == n || keys[i + 1] != key) end[key] = static_cast<u32>(i) + 1;
}

// totals[r] += the additions of round r, for r = 1 to max_rounds - 1. totals[0] is the size of the largest bucket.
SNL_KERNEL(256, 4) count_additions(const u32* start, const u32* end, u32 n_buckets, u32* totals) {
  u32 sums[max_rounds] = {};
  for (u64 b = global_index(); b < n_buckets; b += grid_size()) {
    const u32 m = end[b] - start[b];
    if (m > sums[0]) sums[0] = m;
    SNL_UNROLL for (int r = 1; r < max_rounds; r++) sums[r] += additions(m, r);
  }
  SNL_UNROLL for (int r = 0; r < max_rounds; r++) {
    u32 x = sums[r];
    for (int d = 16; d > 0; d /= 2) {
      const u32 other = __shfl_xor_sync(all_lanes, x, d);
      x = r == 0 ? (other > x ? other : x) : x + other;
    }
    if (lane_id() == 0 && x != 0) {
      if (r == 0) {
        atomicMax(totals, x);
      } else {
        atomicAdd(totals + r, x);
      }
    }
  }
}

// ---- exclusive prefix sums, of an array or of the additions of a round by bucket ----

namespace {

struct FromArray {
  const u32* values;
  SNL_DEVICE u32 operator()(u32 i) const { return values[i]; }
};
struct FromBuckets {
  const u32 *start, *end;
  int round;
  SNL_DEVICE u32 operator()(u32 i) const { return additions(end[i] - start[i], round); }
};

}  // namespace

SNL_KERNEL(256, 4) scan_array(u32* values, u32 n, u64* status, u32 run) {
  scan(FromArray{values}, n, status, run, values);
}
SNL_KERNEL(256, 4)
scan_additions(const u32* start, const u32* end, int round, u32 n, u64* status, u32 run, u32* out) {
  scan(FromBuckets{start, end, round}, n, status, run, out);
}

// The buckets with more than `limit` sums left after the rounds: they are summed in slices by whole blocks. Fills
// heavy[b] with 1 + the number of the bucket in that list, or 0, and appends (bucket, slice) items and the buckets.
// counts: slices, buckets; both 0 before.
SNL_KERNEL(256, 4)
find_heavy(const u32* start, const u32* end, u32 n_buckets, int rounds, u32 limit, u32 slice_size, u32* heavy,
           uint2* slices, uint2* heavy_buckets, u32* counts) {
  const u64 b = global_index();
  if (b >= n_buckets) return;
  const u32 left = left_after(end[b] - start[b], rounds);
  heavy[b] = 0;
  if (left <= limit) return;
  const u32 n = (left + slice_size - 1) / slice_size;
  const u32 first = atomicAdd(&counts[0], n), number = atomicAdd(&counts[1], 1u);
  heavy[b] = number + 1;
  heavy_buckets[number] = uint2{first, n};
  for (u32 s = 0; s < n; s++) slices[first + s] = uint2{static_cast<u32>(b), s};
}

}  // namespace SNL_ISA
}  // namespace snarkline
