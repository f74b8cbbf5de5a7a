// One table of points in an MSM: from sorted entries to buckets, window sums and the result.
#pragma once

#include "msm_windows.h"
#include "span.h"

#include <mutex>

namespace snarkline {
inline namespace SNL_ISA {

// Entries of a task: enough for the inversions that it shares, few enough for the second-level cache.
inline constexpr usize msm_task_entries = usize{1} << 14;

// Scratch objects that tasks take and give back: as many as there are tasks at once.
template <class T>
class ScratchPool {
 public:
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool), item_(pool.take()) {}
    ~Lease() { pool_.give(std::move(item_)); }
    Lease(const Lease&) = delete;
    T* operator->() { return item_.get(); }

   private:
    ScratchPool& pool_;
    std::unique_ptr<T> item_;
  };

 private:
  std::unique_ptr<T> take() {
    std::lock_guard guard(lock_);
    if (free_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> item = std::move(free_.back());
    free_.pop_back();
    return item;
  }
  void give(std::unique_ptr<T> item) {
    std::lock_guard guard(lock_);
    free_.push_back(std::move(item));
  }
  std::mutex lock_;
  std::vector<std::unique_ptr<T>> free_;
};

template <class C>
class JobSum {
 public:
  using R = Rows<C>;
  using F = typename R::F;
  using G = typename R::G;

  JobSum(const u64* points, usize n, const F& beta, const Exec& exec) : points_(points), beta_(beta), exec_(exec) {
    find_finite(n);
  }

  // Adds the windows of a group to the result. Groups come from the highest to the lowest.
  void add(const WindowGroup& group, const SortedEntries& sorted) {
    fill_buckets(group, sorted);
    SNL_SPAN("msm.reduce");
    const std::vector<Xyzz<G>> sums = window_sums(group);
    buckets_.reset();
    for (usize w = group.last; w-- > group.first;) {
      for (int i = 0; i < group.all.windows[w].width; i++) result_ = result_.dbl();
      result_.add(sums[w - group.first]);
    }
  }
  Affine<G> result() const {
    SNL_SPAN("msm.normalise");
    return result_.to_affine();
  }

 private:
  using Scratch = KeyedSums<C>;
  static constexpr usize task_entries = msm_task_entries;
  static constexpr usize slot_limbs = usize{WindowGroup::partition_buckets} * R::limbs;

  // Consecutive buckets `stride` apart whose sum is wanted.
  struct Strip {
    u32 first, stride, count;
  };

  void find_finite(usize n) {
    SNL_SPAN("msm.infinity");
    finite_.assign((n + 63) / 64, 0);
    std::atomic<bool> all{true};
    parallel_ranges(exec_, finite_.size(), 64, [&](usize begin, usize end) {
      for (usize i = begin; i < end; i++) {
        for (usize j = 64 * i; j < std::min(n, 64 * i + 64); j++) {
          const bool infinity = load_affine<G>(points_, j).is_infinity();
          finite_[i] |= u64{!infinity} << (j % 64);
          if (infinity) all = false;
        }
      }
    });
    if (all) finite_.clear();
  }
  const u64* finite() const { return finite_.empty() ? nullptr : finite_.data(); }

  // Buckets, as rows in the lanes' form. A partition with many entries is summed up in pieces, each into a slot of its
  // own, and then the pieces' sums by bucket.
  void fill_buckets(const WindowGroup& group, const SortedEntries& sorted) {
    SNL_SPAN("msm.buckets");
    struct Task {
      usize partition, piece, slot;
    };
    std::vector<Task> tasks;
    std::vector<std::vector<usize>> slots(group.partitions());
    usize n_slots = group.partitions();
    for (usize p = 0; p < group.partitions(); p++) {
      const usize pieces = std::max<usize>(1, (sorted.count(p) + task_entries / 2) / task_entries);
      for (usize i = 0; i < pieces; i++) {
        tasks.push_back({p, i, i == 0 ? p : n_slots++});
        slots[p].push_back(tasks.back().slot);
      }
    }
    buckets_.reset(new u64[n_slots * slot_limbs]);
    parallel(exec_, tasks.size(), [&](usize i) {
      const Task& t = tasks[i];
      const usize pieces = slots[t.partition].size(), size = (sorted.count(t.partition) + pieces - 1) / pieces;
      typename ScratchPool<Scratch>::Lease scratch(pool_);
      scratch->template sum<RowForm::Ordinary>(points_, sorted.slice(t.partition, t.piece * size, (t.piece + 1) * size),
                                               2 * WindowGroup::partition_buckets, &beta_, finite(), slot(t.slot));
    });
    parallel(exec_, slots.size(), [&](usize p) {
      if (slots[p].size() > 1) join(slots[p]);
    });
  }
  u64* slot(usize i) { return buckets_.get() + i * slot_limbs; }

  // Sums of several slots by bucket, to the first of them.
  void join(const std::vector<usize>& slots) {
    std::vector<Entry> entries;
    std::vector<Key> keys;
    for (usize s : slots) {
      for (u32 b = 0; b < WindowGroup::partition_buckets; b++) {
        append_finite(entries, keys, (u32)s * WindowGroup::partition_buckets + b, b);
      }
    }
    std::vector<u64> sums(slot_limbs);
    typename ScratchPool<Scratch>::Lease scratch(pool_);
    scratch->template sum<RowForm::Lanes>(buckets_.get(), {entries.data(), keys.data(), keys.size()},
                                          WindowGroup::partition_buckets, nullptr, nullptr, sums.data());
    std::copy(sums.begin(), sums.end(), slot(slots[0]));
  }
  void append_finite(std::vector<Entry>& entries, std::vector<Key>& keys, u32 row, usize key) const {
    const u64* limb = R::row(buckets_.get(), row);
    u64 any = 0;
    for (int i = 0; i < R::limbs; i++) any |= limb[i];
    if (any == 0) return;
    entries.push_back(row);
    keys.push_back((Key)key);
  }

  // For each window, sum (i + 1) bucket[i]. With i = 2^low h + j that is sum (j + 1) column[j] + 2^low sum h row[h],
  // where a row sum is over j and a column sum over h.
  std::vector<Xyzz<G>> window_sums(const WindowGroup& group) {
    std::vector<Strip> strips;
    std::vector<usize> first_strip;
    for (usize w = group.first; w < group.last; w++) {
      const u32 base = group.first_bucket[w - group.first], columns = u32{1} << low_bits(group, w);
      const u32 rows = group.all.windows[w].buckets() / columns;
      first_strip.push_back(strips.size());
      for (u32 j = 0; j < columns; j++) strips.push_back({base + j, columns, rows});
      for (u32 h = 0; h < rows; h++) strips.push_back({base + h * columns, 1, columns});
    }
    first_strip.push_back(strips.size());
    std::vector<u64> sums = strip_sums(strips);
    std::vector<Xyzz<G>> out(group.last - group.first);
    parallel(exec_, out.size(), [&](usize i) {
      const usize columns = usize{1} << low_bits(group, group.first + i);
      const u64* column = sums.data() + first_strip[i] * R::limbs;
      const u64* row = column + columns * R::limbs;
      Xyzz<G> by_row = weighted(row, first_strip[i + 1] - first_strip[i] - columns, 0);
      for (int b = 0; b < low_bits(group, group.first + i); b++) by_row = by_row.dbl();
      out[i] = weighted(column, columns, 1);
      out[i].add(by_row);
    });
    return out;
  }
  static int low_bits(const WindowGroup& group, usize w) { return group.all.windows[w].width / 2; }

  std::vector<u64> strip_sums(const std::vector<Strip>& strips) {
    std::vector<usize> cut{0};
    usize entries = 0;
    for (usize s = 0; s < strips.size(); s++) {
      entries += strips[s].count;
      if (entries < task_entries && s + 1 < strips.size()) continue;
      cut.push_back(s + 1);
      entries = 0;
    }
    std::vector<u64> sums(strips.size() * R::limbs);
    parallel(exec_, cut.size() - 1, [&](usize i) {
      std::vector<Entry> entries;
      std::vector<Key> keys;
      for (usize s = cut[i]; s < cut[i + 1]; s++) {
        for (u32 b = 0; b < strips[s].count; b++) {
          append_finite(entries, keys, strips[s].first + b * strips[s].stride, s - cut[i]);
        }
      }
      typename ScratchPool<Scratch>::Lease scratch(pool_);
      scratch->template sum<RowForm::Lanes>(buckets_.get(), {entries.data(), keys.data(), keys.size()},
                                            cut[i + 1] - cut[i], nullptr, nullptr, sums.data() + cut[i] * R::limbs);
    });
    return sums;
  }

  // sum over i < n of (i + least) row[i], least 0 or 1.
  static Xyzz<G> weighted(const u64* rows, usize n, usize least) {
    Xyzz<G> running = Xyzz<G>::infinity(), sum = Xyzz<G>::infinity();
    for (usize i = n; i-- > 1 - least;) {
      running.add(R::read(rows + i * R::limbs));
      sum.add(running);
    }
    return sum;
  }

  const u64* points_;
  F beta_;
  const Exec& exec_;
  std::vector<u64> finite_;
  std::unique_ptr<u64[]> buckets_;
  ScratchPool<Scratch> pool_;
  Xyzz<G> result_ = Xyzz<G>::infinity();
};

}  // namespace SNL_ISA
}  // namespace snarkline
