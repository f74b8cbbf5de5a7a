// The release thread: one per process, native, without the GIL and without any knowledge of Python.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "arena.h"

namespace snarkline {

class Releaser {
 public:
  static Releaser& instance();

  // Guards every arena, every block that is not lent, and the queue. `step_` is held over each system call of the
  // release thread, so that a fork never happens inside one; it is taken before `lock`.
  std::mutex lock;
  std::condition_variable changed;  // something was released, pooled or given

  // All with `lock` held.
  void add(Arena* arena) { arenas_.push_back(arena); }
  void remove(Arena* arena);
  void push(Block* block);
  void start();

 private:
  Releaser();
  void run();
  void process(Block* block);
  bool one_piece(Block* block);
  std::shared_ptr<Arena> finish(Block* block);
  void account(Block* block, std::size_t bytes);
  std::chrono::steady_clock::time_point trim_idle(std::vector<std::shared_ptr<Arena>>& seen);
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  std::mutex step_;
  std::condition_variable work_;
  std::vector<Arena*> arenas_;
  Block* first_ = nullptr;
  Block* last_ = nullptr;
  Block* current_ = nullptr;
  bool running_ = false;
};

}  // namespace snarkline
