// Host memory for vectors: mappings that are lent, taken back and reused.
//
// Life of a block:  map -> lent -> (last reference dropped) -> unmapped here
//                                                            | pages dropped here, mapping pooled
//                                                            | release thread: wiped, unmapped in pieces
//                                                            | pooled (wiped first if secret) -> lent again
// The way is the caller's choice at each take. All state is guarded by one process-wide mutex, held for list
// operations only, never over a system call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "arena_map.h"
#include "exec.h"

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
  bool registered = false;       // known to a device by address: never emptied, never unmapped
  std::size_t footprint = 0;     // bytes charged to the budget
  std::size_t released = 0;      // bytes that the release thread has dealt with
  bool wiped = false;            // by the release thread, before it unmaps or pools
  std::shared_ptr<Arena> owner;  // while lent or pending
  Block* next = nullptr;         // in the release queue
  std::chrono::steady_clock::time_point idle_since;
};

struct ArenaOptions {
  std::size_t budget_bytes = SIZE_MAX;   // lent + pooled + pending
  std::size_t backlog_bytes = SIZE_MAX;  // pending bytes above which no fresh mapping is made
  std::chrono::nanoseconds idle{};       // pooled blocks older than this go to the release thread
  Pages pages = Pages::automatic;
};

struct ArenaStats {
  std::uint64_t lent_bytes = 0, lent_blocks = 0;
  std::uint64_t pooled_bytes = 0, pooled_blocks = 0;
  std::uint64_t pending_bytes = 0, pending_blocks = 0;
  std::uint64_t peak_bytes = 0;  // highest sum of the three
  std::uint64_t fresh_mappings = 0, fresh_bytes = 0;
  std::uint64_t recycled_blocks = 0, recycled_bytes = 0;
  std::uint64_t released_bytes = 0, wiped_bytes = 0;
  std::uint64_t release_ns = 0, wipe_ns = 0;  // spent by the release thread
};

enum class Taken { block, over_budget, backlog, refused };

struct TakeRequest {
  std::size_t bytes = 0;
  Way way = Way::pool;
  bool secret = false;
  bool shared = false;
};

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static std::shared_ptr<Arena> create(const ArenaOptions& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Lends a pooled block or maps one. over_budget and backlog: try again after wait(); idle blocks that stand in the
  // way are by then on their way out. refused: the kernel refused the mapping (errno).
  Taken take(const TakeRequest& request, Block*& block);

  // Makes the pages of a block present. Does nothing for recycled ones.
  void touch(const Exec& exec, Block& block, std::size_t bytes);

  // The last reference is gone: the block goes its way.
  static void give(Block* block) noexcept;

  // Waits until the release thread or a giver has made progress, or for `timeout`.
  void wait(std::chrono::nanoseconds timeout);

  // Hands pooled blocks to the release thread, the longest idle first, until at most `keep` bytes remain.
  void trim(std::size_t keep);
  // Trims everything; from now on Way::pool is Way::detached.
  void close();

  // True when no release of this arena is pending within `timeout`.
  bool drain(std::chrono::nanoseconds timeout);
  ArenaStats stats() const;

 private:
  friend class Releaser;
  using Pool = std::multimap<std::size_t, Block*>;

  explicit Arena(const ArenaOptions& options) : options_(options) {}
  std::size_t mapped_size(const TakeRequest& request) const;
  Block* from_pool(std::size_t bytes);
  void to_pool(Block* block);
  bool make_room(std::size_t bytes);
  void evict(Pool::iterator position);
  Pool::iterator longest_idle();
  void charge(Block* block, std::size_t bytes);
  std::size_t charged() const { return stats_.lent_bytes + stats_.pooled_bytes + stats_.pending_bytes; }

  ArenaOptions options_;
  ArenaStats stats_;
  Pool pool_;
  bool closed_ = false;
};

}  // namespace snarkline
