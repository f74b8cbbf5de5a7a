#include "arena.h"

#include <cerrno>
#include <mutex>
#include <new>

#include "arena_release.h"

namespace snarkline {

namespace {

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// Sizes are rounded up so that near-equal requests share a mapping: eight steps to the doubling, at most an eighth
// more than asked, and only of addresses, since nobody touches the rest.
std::size_t size_class(std::size_t bytes) {
  const std::size_t page = bytes >= kHugePage ? kHugePage : kSmallPage;
  std::size_t step = page;
  while (step * 16 <= bytes) step *= 2;
  return round_up(bytes, step);
}

}  // namespace

std::shared_ptr<Arena> Arena::create(const ArenaOptions& options) {
  std::shared_ptr<Arena> arena(new Arena(options));
  auto& releaser = Releaser::instance();
  std::lock_guard guard(releaser.lock);
  releaser.add(arena.get());
  releaser.start();
  return arena;
}

Arena::~Arena() {
  auto& releaser = Releaser::instance();
  {
    std::lock_guard guard(releaser.lock);
    releaser.remove(this);
  }
  // Only pooled blocks can be left: lent and pending ones keep the arena alive.
  for (auto& [bytes, block] : pool_) {
    unmap_pages(block->mapping);
    delete block;
  }
}

std::size_t Arena::mapped_size(const TakeRequest& request) const {
  const std::size_t exact = round_up(request.bytes, kSmallPage);
  const std::size_t rounded = size_class(request.bytes);
  return rounded <= options_.budget_bytes ? rounded : exact;
}

Taken Arena::take(const TakeRequest& request, Block*& block) {
  auto& releaser = Releaser::instance();
  const std::size_t bytes = mapped_size(request);
  {
    std::lock_guard guard(releaser.lock);
    block = request.shared ? nullptr : from_pool(bytes);
    const std::size_t more = block ? bytes - std::min(bytes, block->footprint) : bytes;
    if (more && !make_room(more)) {
      if (block) to_pool(block);
      return Taken::over_budget;
    }
    if (!block && stats_.pending_bytes > options_.backlog_bytes) return Taken::backlog;
    if (!block) block = new Block;
    charge(block, block->mapping.data ? block->mapping.bytes : bytes);
  }
  if (!block->mapping.data) {
    block->mapping = map_pages(bytes, options_.pages, request.shared);
    std::lock_guard guard(releaser.lock);
    if (!block->mapping.data) {
      stats_.lent_bytes -= block->footprint;
      stats_.lent_blocks--;
      delete block;
      return Taken::refused;
    }
    stats_.fresh_mappings++;
    stats_.fresh_bytes += bytes;
  }
  block->owner = shared_from_this();
  block->way = request.shared && request.way != Way::here ? Way::detached : request.way;
  block->secret = request.secret;
  return Taken::block;
}

// Moves a block that is in no list to the lent ones.
void Arena::charge(Block* block, std::size_t bytes) {
  block->footprint = bytes;
  stats_.lent_bytes += bytes;
  stats_.lent_blocks++;
  stats_.peak_bytes = std::max<std::uint64_t>(stats_.peak_bytes, charged());
}

Block* Arena::from_pool(std::size_t bytes) {
  const auto found = pool_.lower_bound(bytes);
  if (found == pool_.end() || found->first > bytes + bytes / 4) return nullptr;
  Block* block = found->second;
  pool_.erase(found);
  stats_.pooled_bytes -= block->footprint;
  stats_.pooled_blocks--;
  stats_.recycled_blocks++;
  stats_.recycled_bytes += block->mapping.bytes;
  return block;
}

void Arena::to_pool(Block* block) {
  block->idle_since = std::chrono::steady_clock::now();
  block->wiped = false;
  block->released = 0;
  pool_.emplace(block->mapping.bytes, block);
  stats_.pooled_bytes += block->footprint;
  stats_.pooled_blocks++;
}

Arena::Pool::iterator Arena::longest_idle() {
  auto oldest = pool_.end();
  for (auto it = pool_.begin(); it != pool_.end(); ++it) {
    if (it->second->registered) continue;
    if (oldest == pool_.end() || it->second->idle_since < oldest->second->idle_since) oldest = it;
  }
  return oldest;
}

void Arena::evict(Pool::iterator position) {
  Block* block = position->second;
  pool_.erase(position);
  stats_.pooled_bytes -= block->footprint;
  stats_.pooled_blocks--;
  block->way = Way::detached;
  block->owner = shared_from_this();
  Releaser::instance().push(block);
}

bool Arena::make_room(std::size_t bytes) {
  if (bytes > options_.budget_bytes) return false;
  while (charged() - stats_.pending_bytes + bytes > options_.budget_bytes) {
    const auto oldest = longest_idle();
    if (oldest == pool_.end()) break;
    evict(oldest);
  }
  return charged() + bytes <= options_.budget_bytes;
}

void Arena::touch(const Exec& exec, Block& block, std::size_t bytes) { touch_pages(exec, block.mapping, bytes); }

void Arena::give(Block* block) noexcept {
  auto& releaser = Releaser::instance();
  const std::shared_ptr<Arena> arena = std::move(block->owner);
  const bool now = block->way == Way::here || block->way == Way::empty || block->way == Way::empty_lazily;
  const std::size_t bytes = block->mapping.bytes;
  const std::size_t footprint = block->footprint;
  if (now) {
    if (block->secret) wipe_pages(block->mapping.data, bytes);
    if (block->way == Way::here) {
      unmap_pages(block->mapping);
    } else {
      drop_pages(block->mapping, 0, bytes, block->way == Way::empty_lazily);
      block->footprint = 0;
    }
  }
  std::lock_guard guard(releaser.lock);
  auto& stats = arena->stats_;
  stats.lent_bytes -= footprint;
  stats.lent_blocks--;
  if (now) stats.released_bytes += bytes;
  if (now && block->secret) stats.wiped_bytes += bytes;
  if (block->way == Way::here) {
    delete block;
  } else if (now || (block->way == Way::pool && !block->secret && !arena->closed_)) {
    arena->to_pool(block);
  } else {
    block->owner = arena;
    releaser.push(block);
  }
  releaser.changed.notify_all();
}

void Arena::wait(std::chrono::nanoseconds timeout) {
  auto& releaser = Releaser::instance();
  std::unique_lock guard(releaser.lock);
  releaser.changed.wait_for(guard, timeout);
}

void Arena::trim(std::size_t keep) {
  std::lock_guard guard(Releaser::instance().lock);
  while (stats_.pooled_blocks && (stats_.pooled_bytes > keep || keep == 0)) {
    const auto oldest = longest_idle();
    if (oldest == pool_.end()) break;
    evict(oldest);
  }
}

void Arena::close() {
  {
    std::lock_guard guard(Releaser::instance().lock);
    closed_ = true;
  }
  trim(0);
}

bool Arena::drain(std::chrono::nanoseconds timeout) {
  auto& releaser = Releaser::instance();
  std::unique_lock guard(releaser.lock);
  return releaser.changed.wait_for(guard, timeout, [&] { return stats_.pending_blocks == 0; });
}

ArenaStats Arena::stats() const {
  std::lock_guard guard(Releaser::instance().lock);
  return stats_;
}

}  // namespace snarkline
