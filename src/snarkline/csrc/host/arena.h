// Host memory for vectors: mappings that are lent, taken back and reused.
//
// Life of a block:  mapped -> lent -> last reference dropped -> unmapped here
//                                                             | pages given back here, mapping pooled
//                                                             | release thread: wiped if secret, unmapped in pieces
//                                                             | pooled (secret: wiped by the release thread before)
//                   pooled -> lent again | release thread
//                   waiting to be wiped for the pool -> wiped by the next taker of its size and lent again
// The way is chosen by the caller at each take. All state is guarded by one mutex of the process (arena_release.h),
// held for list operations only, never over a system call. Blocks keep their arena alive while they are lent or
// pending.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "arena_map.h"

namespace snarkline {

// What happens to a block when its last reference is dropped.
enum class Way : std::uint8_t {
  here,          // unmapped by the dropping thread
  empty,         // pages given back by the dropping thread (MADV_DONTNEED), mapping pooled
  empty_lazily,  // the same with MADV_FREE
  detached,      // unmapped by the release thread
  pool,          // pooled with its pages
};

class Arena;

struct Block {
  Mapping mapping;
  Way way = Way::pool;
  bool secret = false;
  bool registered = false;       // known to a device by its address: pooled whatever the way, never unmapped
  bool present = false;          // has its pages: no first touch is due
  bool zero = false;             // reads as zero at the take
  unsigned process = 0;          // which process mapped it (Releaser::process)
  std::size_t footprint = 0;     // bytes charged to the budget
  std::size_t done = 0;          // bytes that the release thread has wiped or unmapped
  std::shared_ptr<Arena> owner;  // while lent or pending
  Block* next = nullptr;         // in the release queue
  std::chrono::steady_clock::time_point idle_since;
};

struct ArenaOptions {
  std::size_t budget_bytes = SIZE_MAX;   // lent, pooled and pending together
  std::size_t backlog_bytes = SIZE_MAX;  // pending bytes above which nothing fresh is mapped
  std::chrono::nanoseconds idle{};       // blocks that are pooled for longer go to the release thread
  Pages pages = Pages::automatic;
};

struct ArenaStats {
  std::uint64_t lent_bytes = 0, lent_blocks = 0;
  std::uint64_t pooled_bytes = 0, pooled_blocks = 0;
  std::uint64_t pending_bytes = 0, pending_blocks = 0;
  std::uint64_t peak_bytes = 0;                           // highest sum of the three
  std::uint64_t fresh_blocks = 0, fresh_bytes = 0;        // mapped
  std::uint64_t recycled_blocks = 0, recycled_bytes = 0;  // lent again
  std::uint64_t released_bytes = 0, wiped_bytes = 0;
  std::uint64_t release_ns = 0, wipe_ns = 0;  // of the release thread
};

enum class Taken { block, over_budget, backlog, refused };

struct TakeRequest {
  std::size_t bytes = 0;
  Way way = Way::pool;
  bool secret = false;
  bool shared = false;      // over a memfd of its own; never pooled, since others may hold the memfd
  bool registered = false;  // prefer a block that is registered
  unsigned threads = 1;     // to wipe a block that the release thread has not come to
};

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static std::shared_ptr<Arena> create(const ArenaOptions& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Lends a pooled block, one that was to be pooled once wiped, or maps one. What is about to be pooled is never passed
  // over: wiping it costs less than the first touch of fresh pages. over_budget and backlog: try again after wait();
  // idle blocks that stood in the way are on their way out by then. refused: the kernel refuses the mapping (errno).
  Taken take(const TakeRequest& request, Block*& block);

  // The last reference is gone: the block goes its way.
  static void give(Block* block) noexcept;

  // Waits until memory was given or released, or for `timeout`.
  static void wait(std::chrono::nanoseconds timeout);

  // Hands pooled blocks to the release thread, the longest idle first, until at most `keep` bytes are pooled.
  void trim(std::size_t keep);
  // Trims everything; from here on Way::pool is Way::detached.
  void close();
  // True when no release of this arena is pending within `timeout`.
  bool drain(std::chrono::nanoseconds timeout);

  // Marks a lent block, after a device has learnt or before it forgets its address. False when the kernel refuses.
  static bool set_registered(Block& block, bool registered);
  // Lends an idle registered block, so that it can be unregistered; nullptr if there is none.
  Block* take_idle_registered();
  // Unmarks the block at this address wherever it is, for when the device's context is about to go.
  void forget(const void* address);

  ArenaStats stats() const;

 private:
  friend class Releaser;
  using Pool = std::multimap<std::size_t, Block*>;

  explicit Arena(const ArenaOptions& options) : options_(options) {}
  std::size_t mapped_size(const TakeRequest& request) const;
  Taken choose(const TakeRequest& request, std::size_t bytes, Block*& block);
  Block* find_idle(const TakeRequest& request, std::size_t bytes, std::unique_lock<std::mutex>& guard);
  void wipe_reclaimed(Block& block, unsigned threads);
  bool map(const TakeRequest& request, std::size_t bytes, Block* block);
  bool give_here(Block& block) noexcept;
  Pool::iterator find_pooled(std::size_t bytes, bool registered);
  Pool::iterator longest_idle();
  void to_pool(Block* block);
  Block* from_pool(Pool::iterator position);
  bool evict(Pool::iterator position);
  bool make_room(std::size_t bytes);
  void charge(Block& block, std::size_t bytes);
  std::size_t charged() const { return stats_.lent_bytes + stats_.pooled_bytes + stats_.pending_bytes; }

  ArenaOptions options_;
  ArenaStats stats_;
  Pool pool_;
  std::vector<Block*> registered_;
  bool closed_ = false;
};

}  // namespace snarkline
