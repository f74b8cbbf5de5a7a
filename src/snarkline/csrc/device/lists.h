// The rounds of additions by bucket (rounds.cu): how many there are, and the lists of them.
#pragma once

#include "access.h"
#include "warp.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr int max_rounds = 28;

// Entries that are left of m after `rounds` rounds of pairwise additions.
SNL_DEVICE u32 left_after(u32 m, int rounds) {
  return static_cast<u32>((static_cast<u64>(m) + (u64{1} << rounds) - 1) >> rounds);
}
// Additions of round r = 1, 2, ...
SNL_DEVICE u32 additions(u32 m, int r) { return left_after(m, r - 1) / 2; }

// Where the sums of a bucket begin that the first round makes: no two buckets overlap, since a bucket of m entries
// leaves at most (m + 1) / 2.
SNL_DEVICE u32 sums_begin(u32 start, u32 bucket) {
  return static_cast<u32>((static_cast<u64>(start) + bucket + 1) >> 1);
}

constexpr u32 flag = 1u << 31;

// The addition number k of `all` of a bucket in a round, number a of all of them, makes the first operand of an
// addition of the next round whose second operand the next lane of the same warp makes (rounds.cu).
SNL_DEVICE bool makes_denominator(u32 k, u32 all, u32 a) {
  return (k & 1) == 0 && k + 1 < all && a % warp_size != warp_size - 1;
}

// An addition in the list of a round: number `k` of the bucket's, which has `m` entries from `start` on; number `a` of
// all.
struct Addition {
  u32 bucket, start, m, k, a;
};

constexpr u32 list_entries = 512;  // a warp, in the first round; twice as many in each later one

// The bucket of the entry `at`, by a warp: the last one that begins there or before, 32 looked at at a time. `start`
// does not fall.
SNL_DEVICE u32 bucket_of(const u32* start, u32 n_buckets, u32 at) {
  u32 first = 0, n = n_buckets;
  SNL_ROLLED while (n > 1) {
    const u32 step = (n + warp_size - 1) / warp_size, ahead = lane_id() * step;
    const u32 steps = __popc(__ballot_sync(all_lanes, ahead < n && start[first + ahead] <= at)) - 1;
    first += steps * step;
    n = n - steps * step < step ? n - steps * step : step;
  }
  return first;
}

// Calls emit(addition) for the additions of `round` whose first entry is among the 2^(round - 1) * list_entries of the
// calling warp. `offsets` is the prefix sum of the additions of the round by bucket. 32 buckets at a time, one a lane,
// then 32 additions at a time, whose lanes look their buckets up; what is written is contiguous.
template <class Emit>
SNL_DEVICE void list_additions(u32 n, const u32* start, const u32* end, u32 n_buckets, const u32* offsets, int round,
                               const Emit& emit) {
  const u64 span = static_cast<u64>(list_entries) << (round - 1), from = global_index() / warp_size * span;
  if (from >= n) return;
  const u32 to = from + span < n ? static_cast<u32>(from + span) : n;
  u32 first_bucket = bucket_of(start, n_buckets, static_cast<u32>(from));
  SNL_ROLLED for (u32 at = static_cast<u32>(from); at < to;) {
    const u32 b = first_bucket + lane_id();
    u32 s = 0, m = 0, skipped = 0, count = 0, past = at;
    if (b < n_buckets) {
      s = start[b];
      m = end[b] - s;
      if (m != 0 && s < to) {
        const u32 all = additions(m, round), until = left_after(to - s, round);
        if (s < from) skipped = left_after(static_cast<u32>(from) - s, round);
        count = until < all ? until : all;
        count = count > skipped ? count - skipped : 0;
        past = s + m;
      }
    }
    u32 sum = count;
    SNL_UNROLL for (u32 d = 1; d < warp_size; d *= 2) {
      const u32 before = __shfl_up_sync(all_lanes, sum, d), other = __shfl_xor_sync(all_lanes, past, d);
      if (lane_id() >= d) sum += before;
      if (other > past) past = other;
    }
    const u32 total = __shfl_sync(all_lanes, sum, warp_size - 1);
    const u32 first_k = skipped - (sum - count);  // of the item 0, were it in this bucket
    const u32 first_a = count != 0 ? offsets[b] + first_k : 0;
    SNL_ROLLED for (u32 begin = 0; begin < total; begin += warp_size) {
      const u32 item = begin + lane_id();
      u32 owner = 0;
      SNL_UNROLL for (u32 step = warp_size / 2; step > 0; step /= 2) {
        if (__shfl_sync(all_lanes, sum, static_cast<int>(owner + step - 1)) <= item) owner += step;
      }
      const int from_lane = static_cast<int>(owner);
      const Addition addition{first_bucket + owner, __shfl_sync(all_lanes, s, from_lane),
                              __shfl_sync(all_lanes, m, from_lane), __shfl_sync(all_lanes, first_k, from_lane) + item,
                              __shfl_sync(all_lanes, first_a, from_lane) + item};
      if (item < total) emit(addition);
    }
    first_bucket = past == at ? bucket_of(start, n_buckets, at) : first_bucket + warp_size;
    at = past;
  }
}

}  // namespace

// The first round adds the points of two neighbouring entries, operands[a], into the sums at places[a]. Bit 31 of a
// place: makes_denominator, unless this is the only round.
SNL_KERNEL(256, 4)
list_first_round(const u32* values, u32 n, const u32* start, const u32* end, u32 n_buckets, const u32* offsets,
                 int last, uint2* operands, u32* places) {
  list_additions(n, start, end, n_buckets, offsets, 1, [&](const Addition& add) {
    const u32 entry = add.start + 2 * add.k;
    operands[add.a] = uint2{values[entry], values[entry + 1]};
    const bool makes = last == 0 && makes_denominator(add.k, additions(add.m, 1), add.a);
    places[add.a] = sums_begin(add.start, add.bucket) + add.k + (makes ? flag : 0);
  });
}

// Round r > 1 adds sums 2^(r - 2) places apart, into the first of the two: before it the sum number e of a bucket is at
// its begin + (e << (r - 2)). Places as in the first round. denominators[a] is where round r - 1 has left the
// denominator, or the place with bit 31 where it has not.
SNL_KERNEL(256, 4)
list_later_round(u32 n, const u32* start, const u32* end, u32 n_buckets, const u32* offsets, const u32* offsets_before,
                 int round, int last, u32* places, u32* denominators) {
  list_additions(n, start, end, n_buckets, offsets, round, [&](const Addition& add) {
    const u32 place = sums_begin(add.start, add.bucket) + (add.k << (round - 1));
    const bool makes = last == 0 && makes_denominator(add.k, additions(add.m, round), add.a);
    places[add.a] = place + (makes ? flag : 0);
    const u32 before = offsets_before[add.bucket] + 2 * add.k;
    const bool made = makes_denominator(2 * add.k, additions(add.m, round - 1), before);
    denominators[add.a] = made ? before / 2 : place + flag;
  });
}

}  // namespace SNL_ISA
}  // namespace snarkline
