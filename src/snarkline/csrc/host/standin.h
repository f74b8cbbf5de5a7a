// A native call in the shape of a prover's, for the release experiment: it fills large vectors, works for a fixed time
// and returns, and its vectors are destroyed on the way out. And a thread that feels what their release does to others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arena.h"

namespace snarkline {

// std::vector on an arena. Elements are not initialised: whoever fills a vector does that in parallel.
template <class T>
class ArenaAllocator {
 public:
  using value_type = T;
  using Blocks = std::unordered_map<const void*, Block*>;

  ArenaAllocator(std::shared_ptr<Arena> arena, Way way, bool secret)
      : arena_(std::move(arena)), way_(way), secret_(secret), blocks_(std::make_shared<Blocks>()) {}

  T* allocate(std::size_t n) {
    Block* block = nullptr;
    const TakeRequest request{n * sizeof(T), way_, secret_, false, false};
    if (arena_->take(request, block) != Taken::block) throw std::bad_alloc();
    (*blocks_)[block->mapping.data] = block;
    return reinterpret_cast<T*>(block->mapping.data);
  }
  void deallocate(T* data, std::size_t) noexcept {
    const auto found = blocks_->find(data);
    Block* block = found->second;
    blocks_->erase(found);
    Arena::give(block);
  }
  template <class U>
  void construct(U*) noexcept {}
  bool operator==(const ArenaAllocator& other) const { return blocks_ == other.blocks_; }

 private:
  std::shared_ptr<Arena> arena_;
  Way way_;
  bool secret_;
  std::shared_ptr<Blocks> blocks_;
};

using StandinVector = std::vector<std::uint64_t, ArenaAllocator<std::uint64_t>>;

// What the call does to its vectors before it returns, besides letting them be destroyed.
enum class Clear { nothing, size, capacity };

struct StandinCall {
  std::shared_ptr<Arena> arena;
  Way way = Way::here;
  Clear clear = Clear::nothing;
  bool secret = false;
  std::size_t bytes = 0;
  std::size_t vectors = 1;
  double work_s = 0;
  unsigned threads = 1;
  bool keep = false;  // hand the vectors to the caller: the control, which releases nothing
};

// CLOCK_MONOTONIC, nanoseconds. `last_statement` is when the destructors begin.
struct StandinTimes {
  std::int64_t entered = 0, work_done = 0, last_statement = 0;
  std::shared_ptr<std::vector<StandinVector>> kept;
};

StandinTimes standin_call(const StandinCall& call);

// A thread that maps, touches and unmaps 64 KiB again and again and notes how long each round took.
class MapProbe {
 public:
  explicit MapProbe(std::int64_t interval_ns);
  ~MapProbe();
  // (begin, duration) of the last rounds, nanoseconds of CLOCK_MONOTONIC.
  std::vector<std::pair<std::int64_t, std::int64_t>> stop();

 private:
  static constexpr std::size_t max_rounds = std::size_t{1} << 18;

  void run(std::int64_t interval_ns);

  std::atomic<bool> stop_{false};
  std::vector<std::pair<std::int64_t, std::int64_t>> rounds_;  // a ring once there are as many as it holds
  std::size_t oldest_ = 0;
  std::thread thread_;
};

}  // namespace snarkline
