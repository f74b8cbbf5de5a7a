#include "arena_release.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

namespace snarkline {

namespace {

using Clock = std::chrono::steady_clock;

// A piece takes the address space's lock once. At 90 ms a GiB (4 KiB pages) 4 MiB are 0.4 ms.
constexpr std::size_t kPiece = std::size_t{4} << 20;

}  // namespace

Releaser& Releaser::instance() {
  // Never destroyed: the thread may be at work when static objects die.
  static Releaser* releaser = new Releaser;
  return *releaser;
}

Releaser::Releaser() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

void Releaser::remove(Arena* arena) { arenas_.erase(std::find(arenas_.begin(), arenas_.end(), arena)); }

void Releaser::start() {
  if (running_) return;
  // The thread inherits the mask: signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
    running_ = true;
  } catch (const std::system_error&) {
    // No thread to be had: the queue waits for the next start().
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Releaser::push(Block* block) {
  block->next = nullptr;
  block->released = 0;
  auto& stats = block->owner->stats_;
  stats.pending_bytes += block->footprint;
  stats.pending_blocks++;
  (first_ ? last_->next : first_) = block;
  last_ = block;
  start();
  work_.notify_one();
}

void Releaser::run() {
  pthread_setname_np(pthread_self(), "snl-release");
  std::unique_lock guard(lock);
  for (;;) {
    if (!first_) {
      std::vector<std::shared_ptr<Arena>> seen;
      const auto next = trim_idle(seen);
      guard.unlock();
      seen.clear();  // an arena's destructor takes the lock
      guard.lock();
      if (first_) continue;
      if (next == Clock::time_point::max()) {
        work_.wait(guard);
      } else {
        work_.wait_until(guard, next);
      }
      continue;
    }
    Block* block = current_ = first_;
    first_ = first_->next;
    guard.unlock();
    process(block);
    guard.lock();
    current_ = nullptr;
    std::shared_ptr<Arena> arena = finish(block);
    changed.notify_all();
    guard.unlock();
    arena.reset();  // its destructor takes the lock
    guard.lock();
  }
}

void Releaser::process(Block* block) {
  while (one_piece(block)) {
  }
}

// One system call, or one piece of wiping. False when nothing is left to do.
bool Releaser::one_piece(Block* block) {
  std::lock_guard guard(step_);
  Mapping& mapping = block->mapping;
  const auto begun = Clock::now();
  const std::size_t piece = std::min(kPiece, mapping.bytes - block->released);
  const bool wiping = block->secret && !block->wiped;
  if (piece == 0) {
    if (wiping) {
      block->wiped = true;
      block->released = 0;
      return block->way != Way::pool;
    }
    unmap_pages(mapping);
    return false;
  }
  if (wiping) {
    wipe_pages(mapping.data + block->released, piece);
  } else {
    drop_pages(mapping, block->released, piece, false);
  }
  block->released += piece;
  const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
  std::lock_guard state(lock);
  auto& stats = block->owner->stats_;
  (wiping ? stats.wipe_ns : stats.release_ns) += spent;
  (wiping ? stats.wiped_bytes : stats.released_bytes) += piece;
  if (!wiping) account(block, piece);
  return true;
}

void Releaser::account(Block* block, std::size_t bytes) {
  const std::size_t part = std::min(bytes, block->footprint);
  block->footprint -= part;
  block->owner->stats_.pending_bytes -= part;
  changed.notify_all();
}

std::shared_ptr<Arena> Releaser::finish(Block* block) {
  std::shared_ptr<Arena> arena = std::move(block->owner);
  arena->stats_.pending_bytes -= block->footprint;
  arena->stats_.pending_blocks--;
  if (block->mapping.data) {
    arena->to_pool(block);
  } else {
    delete block;
  }
  return arena;
}

Clock::time_point Releaser::trim_idle(std::vector<std::shared_ptr<Arena>>& seen) {
  auto next = Clock::time_point::max();
  const auto now = Clock::now();
  for (Arena* raw : arenas_) {
    std::shared_ptr<Arena> arena = raw->weak_from_this().lock();
    if (!arena) continue;
    seen.push_back(arena);
    for (auto oldest = arena->longest_idle(); oldest != arena->pool_.end(); oldest = arena->longest_idle()) {
      const auto due = oldest->second->idle_since + arena->options_.idle;
      if (due > now) {
        next = std::min(next, due);
        break;
      }
      arena->evict(oldest);
    }
  }
  return next;
}

void Releaser::before_fork() {
  auto& releaser = instance();
  releaser.step_.lock();
  releaser.lock.lock();
}

void Releaser::after_fork_in_parent() {
  auto& releaser = instance();
  releaser.lock.unlock();
  releaser.step_.unlock();
}

// The child has the queue and the pools, as copies, but not the thread; the next push starts one. A block that the
// thread was working on goes back to the head of the queue and is continued where it stood.
void Releaser::after_fork_in_child() {
  auto& releaser = instance();
  new (&releaser.work_) std::condition_variable;
  new (&releaser.changed) std::condition_variable;
  releaser.running_ = false;
  if (Block* block = releaser.current_) {
    block->next = releaser.first_;
    if (!releaser.first_) releaser.last_ = block;
    releaser.first_ = block;
    releaser.current_ = nullptr;
  }
  releaser.lock.unlock();
  releaser.step_.unlock();
}

}  // namespace snarkline
