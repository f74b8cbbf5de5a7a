#include "arena_release.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>

#include "span.h"

namespace snarkline {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// A piece is as large as can be dealt with in 50 to 200 us: unmapped with 4 KiB pages 0.5 to 2 MiB (90 ms a GiB), with
// 2 MiB pages 16 MiB (3 ms a GiB), wiped 0.5 to 2 MiB. Other threads that map memory wait for at most one piece, and so
// do those that have to run where the thread runs: it offers its processor after each, where the scheduler would let it
// go on for 3 ms.
constexpr std::size_t kMinPiece = std::size_t{512} << 10;
constexpr std::size_t kMaxPiece = std::size_t{16} << 20;
// Buffers are dropped in bursts. The thread lets the burst pass, rather than to take the dropping thread's processor.
constexpr auto kGrace = std::chrono::milliseconds(1);
constexpr auto kExit = std::chrono::seconds(2);
constexpr std::int64_t kShort = 50'000, kLong = 200'000;  // ns

}  // namespace

Releaser& Releaser::instance() {
  // Never destroyed: the thread may be at work when static objects die.
  static Releaser* releaser = new Releaser;
  return *releaser;
}

Releaser::Releaser() : wipe_piece_(kMinPiece), unmap_piece_(kMinPiece) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  // At exit only secrets are waited for. The kernel takes the rest back together with everything else, in one call.
  std::atexit([] { instance().settle_secrets(kExit); });
}

void Releaser::remove(Arena* arena) { std::erase(arenas_, arena); }

void Releaser::start() {
  if (running_) return;
  // A thread inherits the mask of its maker: signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
    running_ = true;
  } catch (const std::system_error&) {
    // There is no thread to be had. What is queued waits for the next start().
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Releaser::start_if_queued() {
  if (secrets_.first || others_.first) start();
}

void Releaser::Queue::push_back(Block* block) {
  block->next = nullptr;
  (first ? last->next : first) = block;
  last = block;
}

void Releaser::Queue::push_front(Block* block) {
  block->next = first;
  if (!first) last = block;
  first = block;
}

Block* Releaser::Queue::pop() {
  Block* block = first;
  if (block) first = block->next;
  return block;
}

Block* Releaser::Queue::remove(const std::function<bool(const Block&)>& fits) {
  Block* before = nullptr;
  for (Block* block = first; block; before = block, block = block->next) {
    if (!fits(*block)) continue;
    (before ? before->next : first) = block->next;
    if (last == block) last = before;
    return block;
  }
  return nullptr;
}

Block* Releaser::reclaim(const std::function<bool(const Block&)>& fits) {
  Block* block = secrets_.remove(fits);
  if (!block) return nullptr;
  auto& stats = block->owner->stats_;
  stats.pending_bytes -= block->footprint;
  stats.pending_blocks--;
  counter_add(Counter::release_pending, -static_cast<std::int64_t>(block->footprint));
  changed.notify_all();
  return block;
}

void Releaser::push(Block* block) {
  block->done = 0;
  auto& stats = block->owner->stats_;
  stats.pending_bytes += block->footprint;
  stats.pending_blocks++;
  counter_add(Counter::release_pending, static_cast<std::int64_t>(block->footprint));
  (block->secret ? secrets_ : others_).push_back(block);
  start();
  if (wakes_ != Time::min()) work_.notify_one();
}

// Arenas keep idle blocks for times of their own, so the thread may sleep for one that is due later.
void Releaser::pooled(Time due) {
  if (due < wakes_) work_.notify_one();
}

bool Releaser::settle_secrets(std::chrono::nanoseconds timeout) {
  std::unique_lock guard(lock);
  start_if_queued();
  return changed.wait_for(guard, timeout, [&] { return !secrets_.first && !(current_ && current_->secret); });
}

void Releaser::run() {
  pthread_setname_np(pthread_self(), "snl-release");
  std::unique_lock guard(lock);
  for (;;) {
    Block* block = current_ = next_block(guard);
    guard.unlock();
    while (one_piece(block)) {
      std::this_thread::yield();
      while (forking_) std::this_thread::sleep_for(microseconds(50));
    }
    guard.lock();
    current_ = nullptr;
    std::shared_ptr<Arena> arena = finish(block);
    changed.notify_all();
    guard.unlock();
    arena.reset();  // its destructor takes the lock
    guard.lock();
  }
}

// Sleeps until there is something to do. Meanwhile looks after blocks that have been idle for too long.
Block* Releaser::next_block(std::unique_lock<std::mutex>& guard) {
  for (;;) {
    if (Block* block = secrets_.pop()) return block;
    if (Block* block = others_.pop()) return block;
    const Time due = trim_idle();
    if (others_.first) continue;
    wakes_ = due;
    if (due == Time::max()) {
      work_.wait(guard);
    } else {
      work_.wait_until(guard, due);
    }
    wakes_ = Time::min();
    if (!secrets_.first && !others_.first) continue;
    guard.unlock();
    std::this_thread::sleep_for(kGrace);
    guard.lock();
  }
}

// Queues what has been idle for too long; when the next block will be.
Releaser::Time Releaser::trim_idle() {
  Time next = Time::max();
  const auto now = Clock::now();
  for (Arena* arena : arenas_) {
    for (;;) {
      const auto oldest = arena->longest_idle();
      if (oldest == arena->pool_.end()) break;
      const auto due = oldest->second->idle_since + arena->options_.idle;
      if (due > now) next = std::min(next, due);
      if (due > now || !arena->evict(oldest)) break;
    }
  }
  return next;
}

// Wipes, unmaps or closes one piece. False when nothing is left to do.
bool Releaser::one_piece(Block* block) {
  std::lock_guard guard(step_);
  Mapping& mapping = block->mapping;
  if (!mapping.data) return false;  // a child may get a block that had only its accounts left to settle
  const bool wiping = block->secret;
  std::size_t& size = wiping ? wipe_piece_ : unmap_piece_;
  const std::size_t piece = std::min(size, mapping.bytes - block->done);
  if (piece == 0) {
    if (!wiping) {
      unmap_pages(mapping, mapping.bytes);
      return false;
    }
    std::lock_guard state(lock);
    block->secret = false;
    block->zero = true;
    block->done = 0;
    return block->way != Way::pool;
  }
  const auto begun = Clock::now();
  if (!wiping) {
    unmap_piece(mapping, block->done, piece);
  } else if (wipeable(*block)) {
    wipe(mapping.data + block->done, piece);
  }
  block->done += piece;
  const auto spent = std::chrono::nanoseconds(Clock::now() - begun).count();
  if (spent < kShort) size = std::min(size * 2, kMaxPiece);
  if (spent > kLong) size = std::max(size / 2, kMinPiece);
  account(block, piece, wiping, spent);
  return true;
}

void Releaser::account(Block* block, std::size_t bytes, bool wiped, std::int64_t spent_ns) {
  std::lock_guard guard(lock);
  auto& stats = block->owner->stats_;
  (wiped ? stats.wipe_ns : stats.release_ns) += static_cast<std::uint64_t>(spent_ns);
  (wiped ? stats.wiped_bytes : stats.released_bytes) += bytes;
  if (wiped) return;
  const std::size_t part = std::min(bytes, block->footprint);
  block->footprint -= part;
  stats.pending_bytes -= part;
  counter_add(Counter::release_pending, -static_cast<std::int64_t>(part));
  changed.notify_all();
}

// The block leaves the queue's accounts, for the pool or for good. The arena is handed out: its destructor takes
// `lock`.
std::shared_ptr<Arena> Releaser::finish(Block* block) {
  std::shared_ptr<Arena> arena = std::move(block->owner);
  arena->stats_.pending_bytes -= block->footprint;
  arena->stats_.pending_blocks--;
  counter_add(Counter::release_pending, -static_cast<std::int64_t>(block->footprint));
  if (block->mapping.data) {
    arena->to_pool(block);
  } else {
    delete block;
  }
  return arena;
}

void Releaser::before_fork() {
  auto& releaser = instance();
  releaser.forking_++;
  releaser.step_.lock();
  releaser.lock.lock();
}

void Releaser::after_fork_in_parent() {
  auto& releaser = instance();
  releaser.lock.unlock();
  releaser.step_.unlock();
  releaser.forking_--;
}

// The child has copies of the queues and the pools but not the thread; the next push or drain starts one. The block
// that the thread was at is continued where it stood.
void Releaser::after_fork_in_child() {
  auto& releaser = instance();
  new (&releaser.work_) std::condition_variable;
  new (&releaser.changed) std::condition_variable;
  releaser.forking_ = 0;
  releaser.running_ = false;
  releaser.wakes_ = Time::min();
  releaser.process++;
  if (Block* block = releaser.current_) (block->secret ? releaser.secrets_ : releaser.others_).push_front(block);
  releaser.current_ = nullptr;
  releaser.lock.unlock();
  releaser.step_.unlock();
}

}  // namespace snarkline
