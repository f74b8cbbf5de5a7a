#include "arena.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "arena_release.h"
#include "span.h"

namespace snarkline {

namespace {

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// Sizes are rounded up so that near-equal requests share a mapping: eight to sixteen steps a doubling, at most an
// eighth more than asked for.
std::size_t size_class(std::size_t bytes) {
  std::size_t step = bytes >= kHugePage ? kHugePage : kSmallPage;
  while (step * 16 <= bytes) step *= 2;
  return round_up(bytes, step);
}

// A block that serves a request for `bytes` is at most a quarter larger.
std::size_t largest_for(std::size_t bytes) { return bytes + bytes / 4; }

bool absent(const Block& block) { return Releaser::instance().absent(block); }

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
  // Only pooled blocks are left: lent and pending ones keep the arena alive. What a device still knows by its address
  // stays mapped: other memory there would be taken for the old.
  for (auto& [bytes, block] : pool_) {
    if (!absent(*block) && !block->registered) unmap_pages(block->mapping, 0);
    delete block;
  }
}

std::size_t Arena::mapped_size(const TakeRequest& request) const {
  const std::size_t rounded = size_class(request.bytes);
  return rounded <= options_.budget_bytes && !request.shared ? rounded : round_up(request.bytes, kSmallPage);
}

Taken Arena::take(const TakeRequest& request, Block*& block) {
  const std::size_t bytes = mapped_size(request);
  const Taken taken = choose(request, bytes, block);
  if (taken != Taken::block) return taken;
  if (!block->mapping.data && !map(request, bytes, block)) return Taken::refused;
  if (block->secret) wipe_reclaimed(*block, request.threads);
  block->owner = shared_from_this();
  block->way = request.shared && request.way != Way::here ? Way::detached : request.way;
  block->secret = request.secret;
  counter_add(Counter::arena_taken, static_cast<std::int64_t>(block->footprint));
  return Taken::block;
}

// Finds an idle block or room for a mapping, and counts either as lent.
Taken Arena::choose(const TakeRequest& request, std::size_t bytes, Block*& block) {
  std::unique_lock guard(Releaser::instance().lock);
  block = request.shared ? nullptr : find_idle(request, bytes, guard);
  // One that waited to be wiped was within the budget already and fits for sure.
  const std::size_t wanted = block ? block->mapping.bytes : bytes;
  if (!make_room(wanted)) {
    if (block) to_pool(block);
    return Taken::over_budget;
  }
  if (block) {
    stats_.recycled_blocks++;
    stats_.recycled_bytes += wanted;
  } else {
    if (stats_.pending_bytes > options_.backlog_bytes) return Taken::backlog;
    block = new Block;
  }
  charge(*block, wanted);
  return Taken::block;
}

// A pooled block, or one that waits to be wiped for the pool. Waits for the one that is being wiped.
Block* Arena::find_idle(const TakeRequest& request, std::size_t bytes, std::unique_lock<std::mutex>& guard) {
  auto& releaser = Releaser::instance();
  for (;;) {
    const auto found = find_pooled(bytes, request.registered);
    if (found != pool_.end()) return from_pool(found);
    const auto fits = [&](const Block& block) {
      return block.owner.get() == this && block.way == Way::pool && block.registered == request.registered &&
             block.mapping.bytes >= bytes && block.mapping.bytes <= largest_for(bytes) && !absent(block);
    };
    if (Block* block = releaser.reclaim(fits)) return block;
    if (!releaser.wiping(fits)) return nullptr;
    releaser.changed.wait(guard);
  }
}

// Wipes what the release thread has not come to.
void Arena::wipe_reclaimed(Block& block, unsigned threads) {
  auto& releaser = Releaser::instance();
  const std::size_t bytes = block.mapping.bytes - block.done;
  if (releaser.wipeable(block)) wipe_pages(Exec{std::max(threads, 1u), nullptr}, block.mapping, block.done);
  block.zero = true;
  std::lock_guard guard(releaser.lock);
  stats_.wiped_bytes += bytes;
}

bool Arena::map(const TakeRequest& request, std::size_t bytes, Block* block) {
  auto& releaser = Releaser::instance();
  block->mapping = map_pages(bytes, options_.pages, request.shared);
  block->zero = true;
  const int cause = errno;
  std::lock_guard guard(releaser.lock);
  block->process = releaser.process;
  if (block->mapping.data) {
    stats_.fresh_blocks++;
    stats_.fresh_bytes += bytes;
    return true;
  }
  stats_.lent_bytes -= bytes;
  stats_.lent_blocks--;
  delete block;
  errno = cause;
  return false;
}

// Moves a block that is in no list to the lent ones.
void Arena::charge(Block& block, std::size_t bytes) {
  block.footprint = bytes;
  stats_.lent_bytes += bytes;
  stats_.lent_blocks++;
  stats_.peak_bytes = std::max<std::uint64_t>(stats_.peak_bytes, charged());
}

// The smallest block that holds `bytes` and is at most a quarter larger.
Arena::Pool::iterator Arena::find_pooled(std::size_t bytes, bool registered) {
  auto second_best = pool_.end();
  for (auto it = pool_.lower_bound(bytes); it != pool_.end() && it->first <= largest_for(bytes); ++it) {
    if (absent(*it->second)) continue;
    if (it->second->registered == registered) return it;
    if (registered && second_best == pool_.end()) second_best = it;
  }
  return second_best;
}

Arena::Pool::iterator Arena::longest_idle() {
  auto oldest = pool_.end();
  for (auto it = pool_.begin(); it != pool_.end(); ++it) {
    if (it->second->registered) continue;
    if (oldest == pool_.end() || it->second->idle_since < oldest->second->idle_since) oldest = it;
  }
  return oldest;
}

// A block that nobody uses goes to the pool; once the arena is closed it is evicted at once.
void Arena::to_pool(Block* block) {
  if (closed_ && !block->registered) {
    block->way = Way::detached;
    block->owner = shared_from_this();
    return Releaser::instance().push(block);
  }
  block->idle_since = std::chrono::steady_clock::now();
  pool_.emplace(block->mapping.bytes, block);
  stats_.pooled_bytes += block->footprint;
  stats_.pooled_blocks++;
  Releaser::instance().pooled(block->idle_since + options_.idle);
}

Block* Arena::from_pool(Pool::iterator position) {
  Block* block = position->second;
  pool_.erase(position);
  stats_.pooled_bytes -= block->footprint;
  stats_.pooled_blocks--;
  return block;
}

// Queues an idle block. False when the arena is about to be destroyed, which takes care of it.
bool Arena::evict(Pool::iterator position) {
  std::shared_ptr<Arena> self = weak_from_this().lock();
  if (!self) return false;
  Block* block = from_pool(position);
  block->way = Way::detached;
  block->owner = std::move(self);
  Releaser::instance().push(block);
  return true;
}

// Evicts as many idle blocks as `bytes` need beside what is lent. True when they fit, with what is still pending.
bool Arena::make_room(std::size_t bytes) {
  if (bytes > options_.budget_bytes) return false;
  while (stats_.lent_bytes + stats_.pooled_bytes + bytes > options_.budget_bytes) {
    const auto oldest = longest_idle();
    if (oldest == pool_.end()) break;
    evict(oldest);
  }
  return charged() + bytes <= options_.budget_bytes;
}

// What the dropping thread does itself. True when the block is to be pooled.
bool Arena::give_here(Block& block) noexcept {
  if (block.secret && Releaser::instance().wipeable(block)) wipe(block.mapping.data, block.mapping.bytes);
  if (block.way == Way::here) {
    unmap_pages(block.mapping, 0);
    return false;
  }
  block.zero = drop_pages(block.mapping, block.way == Way::empty_lazily);
  return true;
}

void Arena::give(Block* block) noexcept {
  auto& releaser = Releaser::instance();
  const std::shared_ptr<Arena> arena = std::move(block->owner);
  const std::size_t bytes = block->footprint;
  const bool gone = absent(*block);
  const bool here = !block->registered && block->way != Way::detached && block->way != Way::pool;
  if (gone) block->mapping = Mapping{};
  const bool emptied = here && arena->give_here(*block);
  counter_add(Counter::arena_released, static_cast<std::int64_t>(bytes));

  std::lock_guard guard(releaser.lock);
  auto& stats = arena->stats_;
  stats.lent_bytes -= bytes;
  stats.lent_blocks--;
  if (here) stats.released_bytes += bytes;
  if (here && block->secret) stats.wiped_bytes += bytes;
  if (gone) std::erase(arena->registered_, block);
  if (emptied) block->footprint = 0;
  if (!emptied) block->zero = false;
  block->present = !emptied;
  const bool pooled = emptied || block->registered || block->way == Way::pool;
  if (!block->mapping.data) {
    delete block;
  } else if (pooled && (emptied || !block->secret)) {
    arena->to_pool(block);
  } else {
    block->way = pooled ? Way::pool : Way::detached;
    block->owner = arena;
    releaser.push(block);
  }
  releaser.changed.notify_all();
}

void Arena::wait(std::chrono::nanoseconds timeout) {
  auto& releaser = Releaser::instance();
  std::unique_lock guard(releaser.lock);
  releaser.start_if_queued();
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
  releaser.start_if_queued();
  return releaser.changed.wait_for(guard, timeout, [&] { return stats_.pending_blocks == 0; });
}

bool Arena::set_registered(Block& block, bool registered) {
  if (!inherit(block.mapping, !registered)) return false;
  std::lock_guard guard(Releaser::instance().lock);
  auto& list = block.owner->registered_;
  std::erase(list, &block);
  if (registered) list.push_back(&block);
  block.registered = registered;
  return true;
}

Block* Arena::take_idle_registered() {
  std::lock_guard guard(Releaser::instance().lock);
  for (auto it = pool_.begin(); it != pool_.end(); ++it) {
    if (!it->second->registered || absent(*it->second)) continue;
    Block* block = from_pool(it);
    charge(*block, block->mapping.bytes);
    block->owner = shared_from_this();
    block->way = Way::detached;
    block->secret = false;
    return block;
  }
  return nullptr;
}

void Arena::forget(const void* address) {
  auto& releaser = Releaser::instance();
  const auto at_address = [&](const Block* block) { return block->mapping.data == address && !absent(*block); };
  Mapping mapping;
  {
    std::lock_guard guard(releaser.lock);
    const auto found = std::find_if(registered_.begin(), registered_.end(), at_address);
    if (found == registered_.end()) return;
    mapping = (*found)->mapping;
  }
  inherit(mapping, true);  // it stays mapped as long as it is marked
  std::lock_guard guard(releaser.lock);
  const auto found = std::find_if(registered_.begin(), registered_.end(), at_address);
  if (found == registered_.end()) return;
  (*found)->registered = false;
  registered_.erase(found);
}

ArenaStats Arena::stats() const {
  std::lock_guard guard(Releaser::instance().lock);
  return stats_;
}

}  // namespace snarkline
