// Windows of an MSM, and the entries of their buckets in order of buckets.
#pragma once

#include "msm_rows.h"
#include "msm_scalars.h"
#include "msm_sum.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {

// The 128 bits of half-scalars cut into windows whose widths differ by one at most. A window's signed digit d is in
// [-2^(width-1), 2^(width-1)], its bucket |d| - 1.
struct Windows {
  static constexpr int bits = 128;
  struct Window {
    int position, width;
    u32 buckets() const { return u32{1} << (width - 1); }
    // Whether a narrow scalar, |k| < 2^narrow_bits, may have a digit here; a carry reaches one bit beyond it.
    bool narrow() const { return position <= HalfScalarTable::narrow_bits + 1; }
  };
  std::vector<Window> windows;
  u128 bias = 0;  // 2^(width-1) in every window: (k + bias) has k's digits, each raised by 2^(width-1)

  explicit Windows(int count) {
    for (int w = 0; w < count; w++) {
      const int begin = w * bits / count, end = (w + 1) * bits / count;
      windows.push_back({begin, end - begin});
      bias += (u128)1 << (end - 1);
    }
  }

  // The cheapest count, in additions: one for each digit, and three for each bucket (joining the endomorphism's halves,
  // row and column sums).
  static Windows cheapest(const HalfScalarTable& scalars) {
    int best = 0;
    double least = 0;
    for (int count = 7; count <= 32; count++) {
      double cost = 0;
      for (const Window& w : Windows(count).windows) {
        cost += 2.0 * (double)scalars.wide() + 4.0 * w.buckets() + 300;
        if (w.narrow()) cost += (double)scalars.narrow();
      }
      if (best == 0 || cost < least) best = count, least = cost;
    }
    return Windows(best);
  }
};

// Some consecutive windows, their buckets numbered through, cut into partitions.
struct WindowGroup {
  static constexpr int partition_bits = 10;
  static constexpr u32 partition_buckets = 1 << partition_bits;

  const Windows& all;
  usize first, last;              // windows [first, last)
  std::vector<u32> first_bucket;  // by window of the group, and their end

  WindowGroup(const Windows& all, usize first, usize last) : all(all), first(first), last(last), first_bucket{0} {
    for (usize w = first; w < last; w++) first_bucket.push_back(first_bucket.back() + all.windows[w].buckets());
  }
  usize buckets() const { return first_bucket.back(); }
  usize partitions() const { return (buckets() + partition_buckets - 1) / partition_buckets; }

  // f(entry, half, bucket) for all digits but zero of a piece.
  template <class Function>
  SNL_HD void for_each_digit(const HalfScalarTable& t, const HalfScalarTable::Piece& p, const Function& f) const {
    for (usize i = p.begin; i < p.begin + p.wide; i++) {
      digits(t.halves(i).k[0], last, t.index(i), 0, f);
      digits(t.halves(i).k[1], last, t.index(i), 1, f);
    }
    usize narrow_last = first;
    while (narrow_last < last && all.windows[narrow_last].narrow()) narrow_last++;
    for (usize i = p.end - p.narrow; i < p.end; i++) digits(t.halves(i).k[0], narrow_last, t.index(i), 0, f);
    if (first > 0) return;
    for (usize i = p.begin; i < p.begin + p.ones; i++) f(t.one(i), 0, 0);
  }

 private:
  template <class Function>
  SNL_HD void digits(u128 k, usize end, u32 index, u32 half, const Function& f) const {
    const u128 biased = k + all.bias;
    for (usize w = first; w < end; w++) {
      const auto& window = all.windows[w];
      const int d = (int)((u32)(biased >> window.position) & (2 * window.buckets() - 1)) - (int)window.buckets();
      if (d == 0) continue;
      const u32 size = (u32)(d < 0 ? -d : d);
      f(index | ((u32)d & subtracted), half, first_bucket[w - first] + size - 1);
    }
  }
};

// The entries of a group's buckets, by partition. Keys are 2 * (bucket within the partition) + half.
class SortedEntries {
 public:
  SortedEntries(const WindowGroup& group, const HalfScalarTable& scalars, const Exec& exec)
      : begin_(group.partitions() + 1) {
    SNL_SPAN("msm.sort");
    constexpr int bits = WindowGroup::partition_bits;
    const auto& pieces = scalars.pieces();
    std::vector<std::vector<u32>> cursor(pieces.size());
    parallel(exec, pieces.size(), [&](usize i) {
      cursor[i].assign(group.partitions(), 0);
      group.for_each_digit(scalars, pieces[i], [&](u32, u32, u32 bucket) { cursor[i][bucket >> bits]++; });
    });
    usize total = 0;
    for (usize p = 0; p < group.partitions(); p++) {
      begin_[p] = total;
      for (auto& c : cursor) {
        const u32 count = c[p];
        c[p] = (u32)total;
        total += count;
      }
    }
    begin_.back() = total;
    entry_.reset(new Entry[total]);
    key_.reset(new Key[total]);
    parallel(exec, pieces.size(), [&](usize i) {
      group.for_each_digit(scalars, pieces[i], [&](u32 entry, u32 half, u32 bucket) {
        const u32 at = cursor[i][bucket >> bits]++;
        entry_[at] = entry;
        key_[at] = (Key)(2 * (bucket & (WindowGroup::partition_buckets - 1)) + half);
      });
    });
  }

  // Entries [from, to) of a partition, cut off at its end.
  KeyedEntries slice(usize partition, usize from, usize to) const {
    const usize begin = begin_[partition] + from, end = std::min(begin_[partition] + to, begin_[partition + 1]);
    return {entry_.get() + begin, key_.get() + begin, end - begin};
  }
  usize count(usize partition) const { return begin_[partition + 1] - begin_[partition]; }

 private:
  std::vector<usize> begin_;
  std::unique_ptr<Entry[]> entry_;
  std::unique_ptr<Key[]> key_;
};

}  // namespace SNL_ISA
}  // namespace snarkline
