// Number-theoretic transforms over Fr, in passes that read and write the vector once each (Bailey, "FFTs in external or
// hierarchical memory", 1990). With n = R C, input index j1 C + j2 and output index k1 + R k2,
//
//   sum_j x_j w^(jk)  =  sum_j2 (w^R)^(j2 k2)  w^(j2 k1)  sum_j1 (w^C)^(j1 k1) x_(j1 C + j2) :
//
// transforms of the columns (size R), a twist by w^(j2 k1), and transforms of the rows (size C). All of them leave
// bit-reversed order, and so does the whole. Rows that are too long for the cache are treated likewise. A transform
// from bit-reversed order to natural is the same backwards.
//
// Evaluations on a coset go there and back without an order being restored, and the two transforms of a row share one
// pass: three passes up to 2^22 elements. The factors shift^k / n are part of the twists, and of one product for each
// element between the transforms of a row.
#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "../common/curves.h"
#include "kernels.h"
#include "ntt_tile.h"
#include "span.h"

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace ntt {
namespace {

using Fr = SNL_CURVE::Fr;
using Columns = Lanes<Fr>;
using Factors = std::vector<Columns::Factor>;

// 2^11 rows of the widest lanes are 640 KiB: they fit the second-level cache.
constexpr int max_log_rows = 11;
// The least size with rows and columns for all lanes.
constexpr int min_log_n = 6;

// Tiles for the threads of one call. They are used again and again, as touching fresh memory is slow.
class TilePool {
 public:
  struct Free {
    void operator()(Columns* tile) const { ::operator delete(tile, alignment); }
  };
  using Tile = std::unique_ptr<Columns, Free>;

  explicit TilePool(int log_rows) : n_bytes_(sizeof(Columns) << log_rows) {}

  Tile take() {
    const std::lock_guard guard(lock_);
    if (tiles_.empty()) return Tile(static_cast<Columns*>(::operator new(n_bytes_, alignment)));
    Tile tile = std::move(tiles_.back());
    tiles_.pop_back();
    return tile;
  }
  void give(Tile tile) {
    const std::lock_guard guard(lock_);
    tiles_.push_back(std::move(tile));
  }

 private:
  static constexpr std::align_val_t alignment{64};
  usize n_bytes_;
  std::mutex lock_;
  std::vector<Tile> tiles_;
};

// Where the elements of a tile are in the vector; strides in limbs.
struct Place {
  u64* data;
  int log_rows;
  usize row_stride, lane_stride;

  void load(Columns* tile) const {
    for (usize i = 0; i < usize{1} << log_rows; i++) tile[i] = Columns::load(data + i * row_stride, lane_stride);
  }
  // Results of the last pass, in [0, r).
  void store(const Columns* tile) const {
    for (usize i = 0; i < usize{1} << log_rows; i++) {
      tile[i].store(data + i * row_stride, lane_stride);
      prefetch(i);
    }
  }
  void store_loose(const Columns* tile) const {
    for (usize i = 0; i < usize{1} << log_rows; i++) {
      tile[i].store_loose(data + i * row_stride, lane_stride);
      prefetch(i);
    }
  }

 private:
  // Asks for row i of the columns that come next: a processor does not foresee accesses a row's length apart.
  void prefetch(usize i) const {
    if (row_stride < lane_stride) return;
    const u64* const next = data + i * row_stride + Columns::width * lane_stride;
    for (usize limb = 0; limb < Columns::width * lane_stride; limb += 8) __builtin_prefetch(next + limb, 1, 2);
  }
};

// Matrices one behind the other, of 2^log_rows rows and 2^log_columns columns each.
struct Level {
  usize matrices;
  int log_rows, log_columns;
};

// How the passes cut a vector: levels of columns, and rows in the end.
struct Plan {
  std::vector<Level> levels;
  usize rows = 1;
  int log_row;

  explicit Plan(int log_n) : log_row(log_n) {
    for (int passes = std::max(2, (log_n + max_log_rows - 1) / max_log_rows); passes > 1; passes--) {
      const int log_rows = (log_row + passes - 1) / passes;
      log_row -= log_rows;
      levels.push_back({rows, log_rows, log_row});
      rows <<= log_rows;
    }
  }
};

// The passes of one vector.
class Passes {
 public:
  Passes(u64* data, int log_n, const Exec& exec) : data_(data), plan_(log_n), exec_(exec), pool_(max_log_rows) {}

  const Plan& plan() const { return plan_; }

  // work(tile, place) for all rows, `width` of them at a time.
  template <class Work>
  void rows(const Work& work) {
    SNL_SPAN("ntt.rows");
    const usize row = limbs << plan_.log_row;
    each_tile(plan_.rows / Columns::width, plan_.log_row, [&](usize begin, usize end, Columns* tile) {
      for (usize i = begin; i < end; i++) {
        work(tile, Place{data_ + i * Columns::width * row, plan_.log_row, limbs, row});
      }
    });
  }

  // work(tile, place, ratio) for all columns of a level; lane l of ratio is factor * root^j for the lane's column j.
  template <class Work>
  void columns(const Level& level, const Fr& root, const Fr& factor, const Work& work) {
    const usize row = limbs << level.log_columns, tiles = (usize{1} << level.log_columns) / Columns::width;
    const Fr step = power(root, Columns::width);
    each_tile(level.matrices * tiles, level.log_rows, [&](usize begin, usize end, Columns* tile) {
      Fr ratio[Columns::width];
      for (usize i = begin; i < end; i++) {
        const usize matrix = i / tiles, column = i % tiles * Columns::width;
        if (i == begin || column == 0) {
          ratio[0] = factor * power(root, column);
          for (usize l = 1; l < Columns::width; l++) ratio[l] = ratio[l - 1] * root;
        } else {
          for (Fr& r : ratio) r *= step;
        }
        u64* const at = data_ + (matrix << level.log_rows) * row + column * limbs;
        work(tile, Place{at, level.log_rows, row, limbs}, Columns::constants(ratio));
      }
    });
  }

 private:
  static constexpr usize limbs = Fr::N;

  template <class Work>
  void each_tile(usize n, int log_rows, const Work& work) {
    // A tile of 2^9 rows takes some 50 us.
    const usize grain = std::max(usize{1}, usize{2048} >> log_rows);
    parallel_ranges(exec_, n, grain, [&](usize begin, usize end) {
      auto tile = pool_.take();
      work(begin, end, tile.get());
      pool_.give(std::move(tile));
    });
  }

  u64* data_;
  Plan plan_;
  const Exec& exec_;
  TilePool pool_;
};

Factors twiddles(const Fr& root, int log_n, int log_rows, Order order) {
  return power_table<Columns>(Fr::one(), power(root, usize{1} << (log_n - log_rows)), log_rows - 1, order);
}

// All passes but that of the rows, natural order to bit-reversed: column transforms by `root`, which has order n. The
// value of index k among the rows is multiplied by first * ratio^k. If `shift` is not null, the element of index j *
// (row length) is multiplied by shift^(j * (row length)) before.
void split_columns(Passes& passes, Fr root, Fr first, Fr ratio, const Fr* shift) {
  SNL_SPAN("ntt.columns");
  for (const Level& level : passes.plan().levels) {
    const int log_n = level.log_rows + level.log_columns;
    const Factors table = twiddles(root, log_n, level.log_rows, Order::BitReversed);
    Factors before;
    if (shift) {
      const Fr step = power(*shift, usize{1} << level.log_columns);
      before = power_table<Columns>(Fr::one(), step, level.log_rows, Order::Natural);
    }
    const auto start = Columns::all_lanes(first);
    passes.columns(level, root, ratio, [&](Columns* tile, const Place& place, const Columns::Constants& column_ratio) {
      place.load(tile);
      if (shift) scale(tile, level.log_rows, before.data());
      split(tile, level.log_rows, table.data());
      twist(tile, level.log_rows, start, column_ratio);
      place.store_loose(tile);
    });
    root = power(root, usize{1} << level.log_rows);
    ratio = power(ratio, usize{1} << level.log_rows);
    first = Fr::one();
  }
}

// The same backwards, bit-reversed order to natural. The results are in [0, r).
void merge_columns(Passes& passes, int log_n, const Fr& root) {
  SNL_SPAN("ntt.columns");
  const auto one = Columns::all_lanes(Fr::one());
  for (usize i = passes.plan().levels.size(); i-- > 0;) {
    const Level& level = passes.plan().levels[i];
    const int log_size = level.log_rows + level.log_columns;
    const Fr level_root = power(root, usize{1} << (log_n - log_size));
    const Factors table = twiddles(level_root, log_size, level.log_rows, Order::Natural);
    passes.columns(level, level_root, Fr::one(),
                   [&](Columns* tile, const Place& place, const Columns::Constants& ratio) {
                     place.load(tile);
                     twist(tile, level.log_rows, one, ratio);
                     merge(tile, level.log_rows, table.data(), level.log_rows - 1);
                     i == 0 ? place.store(tile) : place.store_loose(tile);
                   });
  }
}

// Small blocks of elements whose indices differ in the lowest and the highest bits trade places with their mirror
// images: of a whole row of a block every cache line is used.
void reverse_order(Fr* a, int log_n, const Exec& exec) {
  SNL_SPAN("ntt.reverse");
  constexpr int log_side = 3;
  constexpr usize side = usize{1} << log_side;
  const int log_middle = log_n - 2 * log_side, log_stride = log_n - log_side;
  parallel_ranges(exec, usize{1} << log_middle, 256, [&](usize begin, usize end) {
    Fr block[2][side][side];
    for (usize middle = begin; middle < end; middle++) {
      const usize mirror = reverse_bits(middle, log_middle);
      if (mirror < middle) continue;
      Fr* const corner[2] = {a + (middle << log_side), a + (mirror << log_side)};
      for (int b = 0; b < 2; b++) {
        for (usize i = 0; i < side; i++) std::copy_n(corner[b] + (i << log_stride), side, block[b][i]);
      }
      for (int b = 0; b < 2; b++) {
        for (usize i = 0; i < side; i++) {
          for (usize j = 0; j < side; j++) {
            corner[b][(i << log_stride) + j] = block[1 - b][reverse_bits(j, log_side)][reverse_bits(i, log_side)];
          }
        }
      }
    }
  });
}

Fr load(const u64* p) { return *reinterpret_cast<const Fr*>(p); }

// By the definition.
void small_transform(Fr* a, int log_n, const Fr& root, const Fr& shift, bool inverse) {
  const usize n = usize{1} << log_n;
  std::vector<Fr> in(a, a + n);
  const Fr step = inverse ? root.inverse() : root, scale = inverse ? shift.inverse() : Fr::one();
  Fr x = inverse ? Fr::one() : shift, factor = inverse ? Fr::from_u64(n).inverse() : Fr::one();
  for (usize i = 0; i < n; i++, x *= step, factor *= scale) {
    Fr sum{};
    for (usize j = n; j-- > 0;) sum = sum * x + in[j];
    a[i] = factor * sum;
  }
}

void transform(u64* data, int log_n, const u64* root, const u64* shift, bool inverse, const Exec& exec) {
  SNL_SPAN("ntt");
  Fr* const a = reinterpret_cast<Fr*>(data);
  const Fr s = shift ? load(shift) : Fr::one();
  if (log_n < min_log_n) return small_transform(a, log_n, load(root), s, inverse);

  Passes passes(data, log_n, exec);
  const int log_row = passes.plan().log_row;
  const usize rows = passes.plan().rows;
  const Fr w = inverse ? load(root).inverse() : load(root), ratio = inverse ? s.inverse() : Fr::one();
  const Fr first = inverse ? Fr::from_u64(usize{1} << log_n).inverse() : Fr::one();
  split_columns(passes, w, first, ratio, shift && !inverse ? &s : nullptr);

  const Factors table = twiddles(power(w, rows), log_row, log_row, Order::BitReversed);
  Factors shifts;
  if (shift && inverse) shifts = power_table<Columns>(Fr::one(), power(ratio, rows), log_row, Order::BitReversed);
  if (shift && !inverse) shifts = power_table<Columns>(Fr::one(), s, log_row, Order::Natural);
  passes.rows([&](Columns* tile, const Place& place) {
    place.load(tile);
    if (shift && !inverse) scale(tile, log_row, shifts.data());
    split(tile, log_row, table.data());
    if (shift && inverse) scale(tile, log_row, shifts.data());
    place.store(tile);
  });
  reverse_order(a, log_n, exec);
}

void coset_evaluations(u64* data, int log_n, const u64* root, const u64* shift, const Exec& exec) {
  SNL_SPAN("coset_evaluations");
  const Fr w = load(root), s = load(shift);
  if (log_n < min_log_n) {
    small_transform(reinterpret_cast<Fr*>(data), log_n, w, Fr::one(), true);
    small_transform(reinterpret_cast<Fr*>(data), log_n, w, s, false);
    return;
  }
  Passes passes(data, log_n, exec);
  const int log_row = passes.plan().log_row;
  const usize rows = passes.plan().rows;
  const Fr inverse = w.inverse();
  split_columns(passes, inverse, Fr::from_u64(usize{1} << log_n).inverse(), s, nullptr);

  const Factors there = twiddles(power(inverse, rows), log_row, log_row, Order::BitReversed);
  const Factors back = twiddles(power(w, rows), log_row, log_row, Order::Natural);
  const Factors shifts = power_table<Columns>(Fr::one(), power(s, rows), log_row, Order::BitReversed);
  passes.rows([&](Columns* tile, const Place& place) {
    place.load(tile);
    split(tile, log_row, there.data());
    scale(tile, log_row, shifts.data());
    merge(tile, log_row, back.data(), log_row - 1);
    place.store_loose(tile);
  });
  merge_columns(passes, log_n, w);
}

}  // namespace
}  // namespace ntt
}  // namespace SNL_ISA

void SNL_KERNELS(ntt)(CurveKernels& k) {
  k.ntt = ntt::transform;
  k.coset_evaluations = ntt::coset_evaluations;
}

}  // namespace snarkline

#include "ifma_end.h"
