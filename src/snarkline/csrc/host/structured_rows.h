// a, b and c of structured systems. Read by structured_kernels.cpp only, once per curve and instruction set.
#pragma once

#include <atomic>

#include "span.h"
#include "structured_program.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u64 rows_per_task = u64{1} << 17;   // about 1 ms of evaluation
constexpr u64 streamed_bytes = u64{1} << 22;  // outputs beyond that would push everything else out of the caches

// Tiles of rows of the instances of one group.
struct Task {
  const RunPlan* run;
  u64 group;
  u32 begin, end;
};

// `unit` tiles of a template for each group of each run, `size` of a template: tasks of rows_per_task rows or so.
template <class Size>
std::vector<Task> tasks_of(const SystemPlan& system, const Size& size) {
  std::vector<Task> out;
  for (const RunPlan& run : system.runs) {
    const u32 n = size(system.plan(run));
    const u64 lanes = std::min<u64>(run.count, lanes_per_word);
    const u32 step = static_cast<u32>(std::max<u64>(1, rows_per_task / (lanes * tile_rows)));
    for (u64 g = 0; g < n_groups(run); g++) {
      for (u32 begin = 0; begin < n; begin += step) out.push_back({&run, g, begin, std::min(n, begin + step)});
    }
  }
  return out;
}
std::vector<Task> row_tasks(const SystemPlan& system) {
  return tasks_of(system, [](const TemplatePlan& plan) { return plan.n_tiles(); });
}

// The rows of one tile, for the instances of a group: codes, and what does not fit into codes.
class TileReader {
 public:
  TileReader(const SystemPlan& system, const Values& values, const Task& task, const Combiner<Fr>& combiner)
      : plan_(combiner.plan()), combiner_(combiner), group_(group_of(system, *task.run, values, task.group)) {
    u32 most = 0;
    for (u32 t = task.begin; t < task.end; t++) most = std::max(most, n_sums(t));
    sums_.resize(usize{most} * 64);
  }
  void read(u32 tile) {
    tile_ = tile;
    const u32 first = plan_.tiles[tile].first_sum;
    for (u32 i = 0; i < n_sums(tile); i++) {
      combiner_.combine(plan_.combinations[plan_.sums[first + i]], group_, 0, group_.lanes,
                        sums_.data() + usize{i} * 64);
    }
    const u32* p = plan_.small.data() + plan_.tiles[tile].small;
    for (u32 side = 0; side < 3; side++) {
      p = combiner_.lanes().row_codes(p, rows(), group_.bits, group_.words, codes_ + side * tile_rows * 64,
                                      numbers_ + side * tile_rows);
    }
  }
  u32 rows() const { return std::min(tile_rows, plan_.n_rows - tile_ * tile_rows); }
  u32 n_sums(u32 tile) const { return plan_.tiles[tile + 1].first_sum - plan_.tiles[tile].first_sum; }
  const LaneGroup& group() const { return group_; }
  const i8* codes(u32 side) const { return codes_ + side * tile_rows * 64; }
  const u16* numbers() const { return numbers_; }
  const Fr* sums() const { return sums_.data(); }
  int code(u32 side, u32 row, u32 lane) const { return codes_[(side * tile_rows + row) * 64 + lane]; }
  const Fr& value(u32 side, u32 row, u32 lane) const {
    const int c = code(side, row, lane);
    return c == wide_code ? sums_[usize{numbers_[side * tile_rows + row]} * 64 + lane] : small_elements<Fr>()[c + 128];
  }

 private:
  const TemplatePlan& plan_;
  const Combiner<Fr>& combiner_;
  const LaneGroup group_;
  u32 tile_ = 0;
  std::vector<Fr> sums_;
  alignas(64) i8 codes_[3 * tile_rows * 64];
  u16 numbers_[3 * tile_rows];
};

// Several witnesses go through a stretch of rows one after the other, while its streams are in the caches.
void evaluate(const SystemPlan& system, const Values* values, const RowProducts* out, usize n, const Exec& exec) {
  SNL_SPAN("evaluate.structured");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  usize addresses = 0;
  for (usize k = 0; k < n; k++) {
    for (const u64* side : out[k].side) addresses |= reinterpret_cast<usize>(side);
  }
  const bool stream = addresses % 32 == 0 && 96 * n * system.n_rows > streamed_bytes;
  parallel(exec, tasks.size() * n, [&](usize t) {
    const Task& task = tasks[t / n];
    TileReader reader(system, values[t % n], task, all[task.run->plan]);
    const auto& [a, b, c] = out[t % n].side;
    const u64 n_rows = system.plan(*task.run).n_rows;
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      const u64 at = 4 * (task.run->first_row + reader.group().first * n_rows + u64{tile} * tile_rows);
      system.lanes->store_tile({reader.codes(0),
                                reader.numbers(),
                                reinterpret_cast<const u64*>(reader.sums()),
                                reinterpret_cast<const u64*>(small_elements<Fr>()),
                                {a + at, b + at, c + at},
                                n_rows,
                                reader.rows(),
                                reader.group().lanes,
                                3,
                                stream});
    }
  });
}

void evaluate_codes(const SystemPlan& system, const Values& values, i8* codes, u64* sums, const Exec& exec) {
  SNL_SPAN("evaluate.codes");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const TemplatePlan& plan = system.plan(*task.run);
    TileReader reader(system, values, task, all[task.run->plan]);
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      const u64 first = reader.group().first;
      const u64 row = task.run->first_row + first * plan.n_rows + u64{tile} * tile_rows;
      for (u32 side = 0; side < 3; side++) {
        system.lanes->store_codes(reader.codes(side), reader.rows(), reader.group().lanes,
                                  codes + side * system.n_rows + row, plan.n_rows);
      }
      for (u32 i = 0; i < reader.n_sums(tile); i++) {
        for (u32 lane = 0; lane < reader.group().lanes; lane++) {
          const u64 number = (first + lane) * plan.sums.size() + plan.tiles[tile].first_sum + i;
          elements(sums)[task.run->first_sum + number] = reader.sums()[usize{i} * 64 + lane];
        }
      }
    }
  });
}

void expand_codes(const SystemPlan& system, const i8* codes, const u64* sums, u64* a, u64* b, u64* c,
                  const Exec& exec) {
  SNL_SPAN("evaluate.expand");
  const auto tasks = row_tasks(system);
  const usize addresses = reinterpret_cast<usize>(a) | reinterpret_cast<usize>(b) | reinterpret_cast<usize>(c);
  const bool stream = addresses % 32 == 0 && 96 * system.n_rows > streamed_bytes;
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const TemplatePlan& plan = system.plan(*task.run);
    const u64 first = task.group * lanes_per_word, n_sums = plan.sums.size();
    const u32 lanes = static_cast<u32>(std::min<u64>(lanes_per_word, task.run->count - first));
    alignas(64) i8 tile_codes[3 * tile_rows * 64];
    u16 numbers[3 * tile_rows] = {};
    std::vector<Fr> wide;
    for (u32 tile = task.begin; tile < task.end; tile++) {
      const u32 rows = std::min(tile_rows, plan.n_rows - tile * tile_rows);
      const u32 first_sum = plan.tiles[tile].first_sum, count = plan.tiles[tile + 1].first_sum - first_sum;
      wide.resize(usize{count} * 64);
      for (u32 lane = 0; lane < lanes; lane++) {
        const Fr* from = elements(sums) + task.run->first_sum + (first + lane) * n_sums + first_sum;
        for (u32 i = 0; i < count; i++) wide[usize{i} * 64 + lane] = from[i];
      }
      const u32* p = plan.small.data() + plan.tiles[tile].small;
      const u64 row = task.run->first_row + first * plan.n_rows + u64{tile} * tile_rows;
      for (u32 side = 0; side < 3; side++) {
        for (u32 r = 0; r < rows; r++) {
          const u32 header = *p++;
          numbers[side * tile_rows + r] = static_cast<u16>(header);
          if (!(header >> 31)) p += (header & 0xff) + (header >> 8 & 0xff);
        }
        for (u32 lane = 0; lane < lanes; lane++) {
          const i8* from = codes + side * system.n_rows + row + lane * u64{plan.n_rows};
          for (u32 r = 0; r < rows; r++) tile_codes[(side * tile_rows + r) * 64 + lane] = from[r];
        }
      }
      system.lanes->store_tile({tile_codes,
                                numbers,
                                reinterpret_cast<const u64*>(wide.data()),
                                reinterpret_cast<const u64*>(small_elements<Fr>()),
                                {a + 4 * row, b + 4 * row, c + 4 * row},
                                plan.n_rows,
                                rows,
                                lanes,
                                3,
                                stream});
    }
  });
}

u64 first_violation(const SystemPlan& system, const Values& values, const Exec& exec) {
  SNL_SPAN("check.structured");
  const auto all = combiners(system);
  const auto tasks = row_tasks(system);
  std::atomic<u64> first{~u64{0}};
  parallel(exec, tasks.size(), [&](usize t) {
    const Task& task = tasks[t];
    const u64 n_rows = system.plan(*task.run).n_rows;
    if (task.run->first_row + task.group * lanes_per_word * n_rows + u64{task.begin} * tile_rows > first) return;
    TileReader reader(system, values, task, all[task.run->plan]);
    for (u32 tile = task.begin; tile < task.end; tile++) {
      reader.read(tile);
      for (u32 r = 0; r < reader.rows(); r++) {
        for (u32 lane = 0; lane < reader.group().lanes; lane++) {
          const int x = reader.code(0, r, lane), y = reader.code(1, r, lane), z = reader.code(2, r, lane);
          if (x * y == z && x != wide_code && y != wide_code && z != wide_code) continue;
          if (reader.value(0, r, lane) * reader.value(1, r, lane) == reader.value(2, r, lane)) continue;
          const u64 row = task.run->first_row + (reader.group().first + lane) * n_rows + u64{tile} * tile_rows + r;
          u64 seen = first;
          while (row < seen && !first.compare_exchange_weak(seen, row)) {
          }
        }
      }
    }
  });
  return first;
}

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
