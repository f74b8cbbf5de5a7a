#include "ghosts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "../preload/release.h"
#include "span.h"

namespace snarkline {

namespace {

constexpr std::int64_t evidence_bytes = 1 << 20;

struct Shim {
  snl_release_tally_function tally =
      reinterpret_cast<snl_release_tally_function>(dlsym(RTLD_DEFAULT, "snarkline_release_tally"));
  snl_release_events_function events =
      reinterpret_cast<snl_release_events_function>(dlsym(RTLD_DEFAULT, "snarkline_release_events"));
};

// The shim is there from the process's start or never.
const Shim the_shim;
const Shim& shim() { return the_shim; }

const snl_release_tally* own_tally() { return shim().tally ? shim().tally() : nullptr; }

}  // namespace

bool release_shim_loaded() { return shim().tally && shim().events; }

const char* release_kind_name(std::int32_t kind) {
  static const char* const names[] = snl_release_names;
  return kind >= 0 && kind < SNL_RELEASE_KINDS ? names[kind] : "unknown";
}

std::vector<ReleaseEvent> release_events(std::int64_t since_ns) {
  std::vector<ReleaseEvent> found;
  if (!release_shim_loaded()) return found;
  std::vector<snl_release_event> events(1 << 16);
  events.resize(shim().events(events.data(), events.size()));
  for (const snl_release_event& e : events)
    if (e.begin_ns >= since_ns) found.push_back({e.begin_ns, e.end_ns, e.bytes, e.thread, e.kind});
  return found;
}

bool Ticks::trusted() {
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[32] = {};
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  return n > 0 && (std::strcmp(text, "tsc\n") == 0 || std::strcmp(text, "arch_sys_counter\n") == 0);
}

namespace {

struct Registry {
  std::mutex lock;
  std::vector<GhostThread*> threads;
};
Registry& registry() {
  static Registry& instance = *new Registry;  // outlives the last thread
  return instance;
}

}  // namespace

GhostThread::GhostThread() : thread(static_cast<std::int32_t>(gettid())) {
  std::lock_guard guard(registry().lock);
  registry().threads.push_back(this);
}
GhostThread::~GhostThread() {
  std::lock_guard guard(registry().lock);
  std::erase(registry().threads, this);
}

void for_ghost_threads(const std::function<void(GhostThread&)>& f) {
  std::lock_guard guard(registry().lock);
  for (GhostThread* thread : registry().threads) f(*thread);
}

// Every event asks for this: a plain pointer in static thread storage is found without a call.
GhostThread& ghost_thread() {
  static thread_local GhostThread* found __attribute__((tls_model("initial-exec"))) = nullptr;
  if (!found) {
    thread_local GhostThread own;
    found = &own;
  }
  return *found;
}

void GhostThread::refresh(std::int64_t ticks) {
  usage_.ticks = ticks;
  usage_.rss = resident_bytes();
  usage_.run_delay_ns = std::max<std::int64_t>(0, thread_run_delay_ns());
}

void GhostThread::passed(GhostAccount* account, int depth, const GhostStand& stand, const GhostState& state) {
  account->calls++;
  charge_native(account);
  post(depth).take(account, stand, state.ticks.now());
}

bool GhostThread::returned(GhostAccount* account, int depth, const void* stack, GhostState& state) {
  post(depth).leave();
  std::int64_t ticks = state.ticks.now();
  state.events++;
  while (!pending_.empty() && pending_.back().depth > depth) {
    close(pending_.back(), ticks, stack, true, state);
    pending_.pop_back();
  }
  account->calls++;
  if (dying_ && depth <= dying_depth_) dying_ = nullptr;
  if (account->destructor && !pending_.empty() && pending_.back().depth == depth) pending_.back().destroyed = ticks;
  if (!drop_sibling(account, depth, stack, state)) return false;
  if (idle()) charge_native(account);
  if (account->window != state.window) {
    account->window = state.window;
    account->quiet = 0;
  }
  // Its callers' instructions may be unwatched as well: nothing would end what is pending.
  if (account->passing == state.window + 1) return true;
  if (ticks - usage_.ticks > state.age_ticks) {
    refresh(ticks);
    ticks = state.ticks.now();
  }
  pending_.push_back({account, ticks, depth, stack, 0});
  if (account->quiet < ghost_quiet_returns || !state.busy()) return false;
  account->passing = state.window + 1;
  return true;
}

bool GhostThread::goes_on(GhostAccount* account, int depth, const void* stack, std::uint8_t place, GhostState& state) {
  state.events++;
  if (dying_ && depth <= dying_depth_ && place != place_clears) dying_ = nullptr;
  const bool any = !pending_.empty() && pending_.back().depth > depth;
  if (any) {
    const std::int64_t ticks = state.ticks.now();
    while (!pending_.empty() && pending_.back().depth > depth) {
      close(pending_.back(), ticks, stack, place <= place_c_calls, state);
      pending_.pop_back();
    }
  }
  if (drop_sibling(account, depth, stack, state) && idle()) charge_native(account);
  return any;
}

bool GhostThread::drop_sibling(const GhostAccount* account, int depth, const void* stack, const GhostState& state) {
  if (pending_.empty() || pending_.back().depth > depth) return true;
  // Python 3.11 destroys the locals of a call from C when its interpreter loop has been left: no deeper stack shows.
  if (account->destructor) return false;
  if (pending_.back().depth < depth || state.through_c(stack, pending_.back().stack)) return false;
  if (const Pending& call = pending_.back(); call.destroyed && call.destroyed - call.ticks >= state.floor_ticks)
    charge(call.account, call.ticks, call.destroyed, false, state);
  pending_.pop_back();
  return true;
}

void GhostThread::close(const Pending& call, std::int64_t ticks, const void* stack, bool by_call,
                        const GhostState& state) {
  last_distance_ = static_cast<const char*>(stack) - static_cast<const char*>(call.stack);
  if (ticks - call.ticks < state.floor_ticks) {
    call.account->quiet++;
    return;
  }
  const bool needs_evidence = by_call && !call.account->trusts_c && state.through_c(call.stack, stack);
  if (needs_evidence && call.destroyed) return charge(call.account, call.ticks, call.destroyed, false, state);
  charge(call.account, call.ticks, ticks, needs_evidence, state);
}

void GhostThread::charge(GhostAccount* account, std::int64_t from, std::int64_t to, bool needs_evidence,
                         const GhostState& state) {
  const Usage before = usage_;
  refresh(to);
  std::int64_t wall = state.ticks.to_ns(to - from);
  wall -= std::min(wall, usage_.run_delay_ns - before.run_delay_ns);
  std::int64_t released = std::max<std::int64_t>(0, before.rss - usage_.rss);
  if (const snl_release_tally* tally = own_tally()) {
    released = tally->bytes - before.shim_bytes;
    usage_.shim_ns = tally->ns;
    usage_.shim_bytes = tally->bytes;
  }
  if (wall < ghost_floor_ns || (needs_evidence && released < evidence_bytes)) return;
  account->quiet = 0;
  account->add_teardown(wall, released);
}

void GhostThread::charge_native(GhostAccount* account) {
  const snl_release_tally* tally = own_tally();
  if (!tally || tally->ns == usage_.shim_ns) return;
  account->add_teardown(tally->ns - usage_.shim_ns, tally->bytes - usage_.shim_bytes);
  usage_.shim_ns = tally->ns;
  usage_.shim_bytes = tally->bytes;
}

void GhostThread::exception_dies(GhostAccount* owner, int depth, std::size_t place, const GhostState& state) {
  const std::int64_t ticks = state.ticks.now();
  if (ticks - usage_.ticks > state.age_ticks) refresh(ticks);
  dying_ = owner;
  dying_depth_ = depth;
  dying_place_ = place;
  dying_ticks_ = state.ticks.now();
}

void GhostThread::exception_step(const GhostAccount* account, int depth, std::size_t place, const GhostState& state) {
  if (!dying_ || depth > dying_depth_) return;  // deeper: a destructor
  const std::int64_t ticks = state.ticks.now();
  const auto& places = account->places;
  const auto follower = [&](std::size_t at) {
    do at++;
    while (at < places.size() && places[at] == place_cache);
    return at;
  };
  if (depth < dying_depth_ || place != follower(dying_place_)) {
    dying_ = nullptr;
    return;
  }
  if (ticks - dying_ticks_ >= state.floor_ticks) charge(dying_, dying_ticks_, ticks, false, state);
  dying_place_ = place;
  dying_ticks_ = state.ticks.now();
  const std::size_t next = follower(place);
  if (next >= places.size() || places[next] != place_clears) dying_ = nullptr;
}

}  // namespace snarkline
