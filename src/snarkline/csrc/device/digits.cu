// Scalars of a multi-scalar multiplication: signed digits, sorted by bucket (sort.h), and the lists of additions of
// each round (rounds.cu). One entry is one non-zero digit: it belongs to a bucket, and its value is the index of the
// point and, in bit 31, whether the point is to be negated. Zero digits make no entry, and short scalars have digits in
// the lowest windows only, so witnesses of bits cost what their ones cost.
#include "lists.h"
#include "scan.h"
#include "sort.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

// |s|, the smaller of s and r - s.
SNL_DEVICE Int<4> magnitude(const Int<4>& s, bool& negative) {
  Int<4> t = Fr::modulus;
  sub_in_place(t, s);
  negative = less(t, s);
  return negative ? t : s;
}

// Of |s|: more than 32 bits, 2 to 32, 1, none.
enum Length : u32 { wide_scalar, narrow_scalar, one_scalar, zero_scalar, lengths = zero_scalar };

SNL_DEVICE u32 length_of(const Int<4>& s) {
  if ((s.limb[1] | s.limb[2] | s.limb[3] | s.limb[0] >> 32) != 0) return wide_scalar;
  return s.limb[0] > 1 ? narrow_scalar : s.limb[0] == 1 ? one_scalar : zero_scalar;
}

constexpr u32 digit_threads = 512, digit_warps = digit_threads / warp_size;

// |s|, at most r / 2, plus half of each window but the top one: digit + 2^(bits - 1) is then what the bits of the
// window say, and carries between windows are gone. 8 words and two of zero, digit_threads apart.
SNL_DEVICE void recode(const Int<4>& s, const u32* halves, u32* words) {
  u64 carry = 0;
  SNL_UNROLL for (int i = 0; i < 4; i++) {
    const u64 half = halves[2 * i] | static_cast<u64>(halves[2 * i + 1]) << 32;
    const u64 limb = add_carry(s.limb[i], half, carry);
    words[2 * i * digit_threads] = static_cast<u32>(limb);
    words[(2 * i + 1) * digit_threads] = static_cast<u32>(limb >> 32);
  }
  words[8 * digit_threads] = words[9 * digit_threads] = 0;
}

// How a window is cut from the words of a scalar.
struct alignas(16) Cut {
  u32 word, shift, mask, half, low_bits, length;

  SNL_DEVICE Cut() = default;
  SNL_DEVICE Cut(const Window& w, bool top, u32 high_bits, u32 length)
      : word(w.start / 32 * digit_threads),
        shift(w.start % 32),
        mask((1u << w.bits) - 1),
        half(top ? 0 : 1u << (w.bits - 1)),
        low_bits(w.bits - 1 - high_bits),
        length(length) {}

  SNL_DEVICE int digit(const u32* words) const {
    const u64 x = words[word] | static_cast<u64>(words[word + digit_threads]) << 32;
    return static_cast<int>((static_cast<u32>(x >> shift) & mask) - half);
  }
};
constexpr u32 max_windows = 64;

// Places in the list of scalars (Columns) for those of a block; *places are three counters of the places taken. Zeros
// have none.
SNL_DEVICE u32 place_in_list(u32 length, const Columns& columns, u32* places) {
  __shared__ u32 taken[lengths][digit_warps], first[lengths];
  const u32 warp = threadIdx.x / warp_size;
  u32 before = 0;
  SNL_UNROLL for (u32 c = 0; c < lengths; c++) {
    const u32 lanes = __ballot_sync(all_lanes, length == c);
    if (length == c) before = __popc(lanes & lanes_below());
    if (lane_id() == 0) taken[c][warp] = __popc(lanes);
  }
  __syncthreads();
  if (threadIdx.x < lengths) {
    u32 sum = 0;
    for (u32 w = 0; w < digit_warps; w++) {
      const u32 count = taken[threadIdx.x][w];
      taken[threadIdx.x][w] = sum;
      sum += count;
    }
    const u32 list = threadIdx.x == 0 ? 0 : columns.wide + (threadIdx.x == 1 ? 0 : columns.narrow);
    first[threadIdx.x] = list + (sum == 0 ? 0 : atomicAdd(&places[threadIdx.x], sum));
  }
  __syncthreads();
  const u32 place = length == zero_scalar ? 0 : first[length] + taken[length][warp] + before;
  __syncthreads();
  return place;
}

}  // namespace

// counts[l] += the canonical scalars of the length l.
SNL_KERNEL(256, 4) count_lengths(const Fr* scalars, u32 n, u32* counts) {
  u32 found[lengths] = {};
  for (u64 i = global_index(); i < n; i += grid_size()) {
    bool negative;
    const u32 length = length_of(magnitude(load_constant(scalars + i).v, negative));
    SNL_UNROLL for (u32 c = 0; c < lengths; c++) found[c] += length == c;
  }
  SNL_UNROLL for (u32 c = 0; c < lengths; c++) {
    u32 sum = found[c];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
    if (lane_id() == 0 && sum != 0) atomicAdd(counts + c, sum);
  }
}

// The digits of n scalars by window (Columns), `indices` of the scalars in the order in which they are listed, and how
// many digits fall into each segment, which must be 0 before. Without `indices` all scalars count as wide and are
// listed in their order.
SNL_KERNEL(512, 3)
make_digits(const Fr* scalars, u32 n, int montgomery, const Window* windows, u32 n_windows, const u32* halves, u32 wide,
            u32 narrow, u32 ones, u32 covering, u32 high_bits, u32* digits, u32* indices, u32* places, u32* sizes) {
  SNL_DYNAMIC_SHARED(u32, memory);
  __shared__ Cut cuts[max_windows];
  u32 *mine = memory + threadIdx.x, *counts = memory + 10 * digit_threads;
  const Columns columns{wide, narrow, ones, covering};
  const u32 n_segments = n_windows << high_bits, t = threadIdx.x;
  if (t < n_windows) cuts[t] = Cut(windows[t], t + 1 == n_windows, high_bits, columns.length(t));
  clear(counts, n_segments);
  __syncthreads();
  SNL_ROLLED for (u64 begin = blockIdx.x * digit_threads; begin < n; begin += grid_size()) {
    const u32 i = static_cast<u32>(begin) + threadIdx.x;
    u32 length = zero_scalar, place = i;
    bool negative = false;
    if (i < n) {
      const Fr scalar = load_constant(scalars + i);
      const Int<4> s = magnitude(montgomery != 0 ? scalar.to_canonical() : scalar.v, negative);
      length = indices == nullptr ? u32{wide_scalar} : length_of(s);
      recode(s, halves, mine);
    }
    if (indices != nullptr) {
      place = place_in_list(length, columns, places);
      if (length != zero_scalar) indices[place] = i;
    }
    const u32 limit = length == wide_scalar ? n_windows : length == narrow_scalar ? covering : length == one_scalar;
    const u32 any_wide = __ballot_sync(all_lanes, length == wide_scalar);
    const u32 any_narrow = __ballot_sync(all_lanes, length == narrow_scalar);
    const u32 most = any_wide != 0 ? n_windows : any_narrow != 0 ? covering : 1;
    u32* out = digits + place;
    SNL_ROLLED for (u32 w = 0; w < most; w++) {
      const Cut cut = cuts[w];
      const int any = cut.digit(mine), d = w < limit ? any : 0;
      const u32 word = 2 * (static_cast<u32>(d < 0 ? -d : d) - 1) + ((d < 0) != negative);
      if (w < limit) *out = word;
      atomicAdd(&counts[d != 0 ? (w << high_bits) + (word >> (cut.low_bits + 1)) : n_segments], 1u);
      out += cut.length;
    }
  }
  __syncthreads();
  for (u32 s = threadIdx.x; s < n_segments; s += digit_threads) {
    if (counts[s] != 0) atomicAdd(&sizes[s], counts[s]);
  }
}

// ---- buckets ----

// totals[r] += the additions of round r, for r = 1 to max_rounds - 1. totals[0] is the size of the largest bucket.
SNL_KERNEL(256, 4) count_additions(const u32* start, const u32* end, u32 n_buckets, u32* totals) {
  __shared__ u32 of_block[max_rounds];
  if (threadIdx.x < max_rounds) of_block[threadIdx.x] = 0;
  __syncthreads();
  u32 sums[max_rounds] = {};
  for (u64 b = global_index(); b < n_buckets; b += grid_size()) {
    u32 left = end[b] - start[b];
    if (left > sums[0]) sums[0] = left;
    SNL_UNROLL for (int r = 1; r < max_rounds; r++) {
      if (left <= 1) break;
      sums[r] += left / 2;
      left -= left / 2;
    }
  }
  SNL_UNROLL for (int r = 0; r < max_rounds; r++) {
    u32 x = sums[r];
    if (__ballot_sync(all_lanes, x != 0) == 0) continue;
    for (int d = 16; d > 0; d /= 2) {
      const u32 other = __shfl_xor_sync(all_lanes, x, d);
      x = r == 0 ? (other > x ? other : x) : x + other;
    }
    if (lane_id() != 0) continue;
    if (r == 0) {
      atomicMax(&of_block[r], x);
    } else {
      atomicAdd(&of_block[r], x);
    }
  }
  __syncthreads();
  const u32 r = threadIdx.x, x = r < max_rounds ? of_block[r] : 0;
  if (x == 0) return;
  if (r == 0) {
    atomicMax(totals, x);
  } else {
    atomicAdd(totals + r, x);
  }
}

// ---- exclusive prefix sums of the additions of a round by bucket ----

namespace {

struct FromBuckets {
  const u32 *start, *end;
  int round;
  SNL_DEVICE u32 operator()(u32 i) const { return additions(end[i] - start[i], round); }
};

}  // namespace

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
