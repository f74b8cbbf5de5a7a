// The release thread: one per process, native, without the GIL and without any knowledge of Python. It works on one
// block at a time, in pieces, secrets first.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "arena.h"

namespace snarkline {

class Releaser {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static Releaser& instance();

  // Guards every arena, every block that is not lent, and the queues.
  std::mutex lock;
  std::condition_variable changed;  // memory was given, pooled or released
  unsigned process = 0;             // forks between the first process and this one

  // All with `lock` held.
  void add(Arena* arena) { arenas_.push_back(arena); }
  void remove(Arena* arena);
  void push(Block* block);
  void start();            // the thread, unless it runs
  void start_if_queued();  // before waiting for it: a child has a queue and no thread
  void pooled(Time due);   // a block has begun to be idle, and has been so for too long when `due` comes

  // Of the secrets that wait to be wiped: takes the first that fits off the queue and its accounts; nullptr if none.
  Block* reclaim(const std::function<bool(const Block&)>& fits);
  // Whether the thread is wiping one that fits.
  bool wiping(const std::function<bool(const Block&)>& fits) const {
    return current_ && current_->secret && fits(*current_);
  }

  // A child does not have the registered mappings of its parent, and shares the memfds with it.
  bool absent(const Block& block) const { return block.registered && block.process != process; }
  bool wipeable(const Block& block) const {
    return block.process == process || (!block.registered && block.mapping.fd < 0);
  }

  // Waits until every secret that was dropped is wiped, at most for `timeout`; false when it ran out.
  bool settle_secrets(std::chrono::nanoseconds timeout);

 private:
  struct Queue {
    Block* first = nullptr;
    Block* last = nullptr;
    void push_back(Block* block);
    void push_front(Block* block);
    Block* pop();
    Block* remove(const std::function<bool(const Block&)>& fits);  // the first that fits
  };

  Releaser();
  void run();
  Block* next_block(std::unique_lock<std::mutex>& guard);
  Time trim_idle();
  bool one_piece(Block* block);
  void account(Block* block, std::size_t bytes, bool wiped, std::int64_t spent_ns);
  std::shared_ptr<Arena> finish(Block* block);
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  // Held over each piece, so that a fork finds a block between two pieces and not within one; taken before `lock`.
  std::mutex step_;
  std::atomic<int> forking_{0};
  std::condition_variable work_;
  std::vector<Arena*> arenas_;
  Queue secrets_, others_;
  Block* current_ = nullptr;
  std::size_t wipe_piece_, unmap_piece_;
  bool running_ = false;
  Time wakes_ = Time::min();  // when the thread wakes by itself; the least time while it is awake
};

}  // namespace snarkline
