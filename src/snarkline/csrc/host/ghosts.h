// Who pays for teardown: accounts of functions, and of each thread the calls that have returned and whose caller has
// not yet gone on. Knows nothing of Python; bind/ghosts.cpp feeds it the interpreter's events.
//
// A call that returned at Python depth d is over when an instruction runs at a depth below d. Code that runs meanwhile
// at depth d or beyond is a destructor and part of the teardown, if its C stack lies deeper than the return's. Else the
// return went to C code, which called again; how long that code ran is not known, so the earlier call is dropped. A
// return through a C function that was called (map, say) to Python code counts only if memory was released meanwhile,
// or as long as destructors ran.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "ticks.h"

namespace snarkline {

// One function (code object).
struct GhostAccount {
  void* code = nullptr;
  std::int64_t calls = 0;  // returns that were watched
  std::int64_t torn = 0;   // of them, with teardown
  std::int64_t teardown_ns = 0, worst_ns = 0, released_bytes = 0;
  // Generators and constructors are called by C code that does next to nothing afterwards.
  bool trusts_c = false;
  bool destructor = false;              // __del__
  std::uint32_t quiet = 0, window = 0;  // returns without teardown in this window
  std::uint32_t passing = 0;            // number of the window in which they need not be watched, plus one
  std::vector<std::uint8_t> places;     // of its instructions, by half their offset

  void add_teardown(std::int64_t ns, std::int64_t released) {
    torn++;
    teardown_ns += ns;
    worst_ns = std::max(worst_ns, ns);
    released_bytes += released;
  }
};

// Where an instruction stands. After a call: how often that call went to C code alone, up to place_c_calls.
inline constexpr std::uint8_t place_c_calls = 64;
inline constexpr std::uint8_t place_cache = 252;   // no instruction
inline constexpr std::uint8_t place_pops = 253;    // takes a handled exception away, which may be its end
inline constexpr std::uint8_t place_clears = 254;  // one of those after it, which may be its end too
inline constexpr std::uint8_t place_other = 255;   // nothing to learn

// Teardown below this is the cost of looking.
inline constexpr std::int64_t ghost_floor_ns = 20'000;
// Once a window has had so many events, functions with that many quiet returns in it are not watched for the rest of
// it.
inline constexpr std::uint32_t ghost_window_events = 100'000;
inline constexpr std::uint32_t ghost_quiet_returns = 64;

struct GhostState {
  bool through_c(const void* deeper, const void* stack) const {
    return static_cast<const char*>(stack) - static_cast<const char*>(deeper) > stack_slack;
  }
  std::ptrdiff_t stack_slack = 256;  // by how much the C stack of two events of one interpreter loop may differ
  std::uint32_t window = 0;          // number of the window
  std::uint32_t events = 0;          // in it
  bool samples = true;               // false: watch every return
  Ticks ticks;
  std::int64_t floor_ticks = ticks.of_ns(ghost_floor_ns);
  std::int64_t age_ticks = ticks.of_ns(1'000'000);

  bool busy() const { return samples && events >= ghost_window_events; }
};

// Where a thread stood when a function returned that is not watched for now: `frame` was its frame, `caller` its
// caller's, and `place` the caller's instruction. While the caller still stands there and calls nothing, the function's
// teardown goes on. Addresses that only the interpreter's thread may follow.
struct GhostStand {
  const void *frame = nullptr, *caller = nullptr, *place = nullptr;
};

// The last stand of a thread at some depth, for the watchdog to see.
class GhostPost {
 public:
  void leave() { account_.store(nullptr, std::memory_order_relaxed); }
  void take(GhostAccount* account, const GhostStand& stand, std::int64_t ticks) {
    account_.store(nullptr, std::memory_order_relaxed);
    frame_.store(stand.frame, std::memory_order_relaxed);
    caller_.store(stand.caller, std::memory_order_relaxed);
    place_.store(stand.place, std::memory_order_relaxed);
    ticks_.store(ticks, std::memory_order_relaxed);
    account_.store(account, std::memory_order_release);
  }

  // Torn values are told by `ticks`: the watchdog only acts on what has stood for milliseconds.
  GhostAccount* look(GhostStand& stand, std::int64_t& ticks) const {
    GhostAccount* account = account_.load(std::memory_order_acquire);
    stand = {frame_.load(std::memory_order_relaxed), caller_.load(std::memory_order_relaxed),
             place_.load(std::memory_order_relaxed)};
    ticks = ticks_.load(std::memory_order_relaxed);
    return account;
  }

 private:
  std::atomic<GhostAccount*> account_{nullptr};
  std::atomic<const void*> frame_{nullptr}, caller_{nullptr}, place_{nullptr};
  std::atomic<std::int64_t> ticks_{0};
};

class GhostThread {
 public:
  GhostThread();
  ~GhostThread();
  GhostThread(const GhostThread&) = delete;

  // Whether the returns of `account` need not be watched for now, and nothing is pending that they could end.
  bool passes(const GhostAccount* account, const GhostState& state) const {
    return account->passing == state.window + 1 && idle();
  }
  // Such a return.
  void passed(GhostAccount* account, int depth, const GhostStand& stand, const GhostState& state);

  // Of returns at some depth: calls that a destructor makes leave the one before it alone.
  GhostPost& post(int depth) { return posts[static_cast<unsigned>(depth) % std::size(posts)]; }
  GhostPost posts[8];
  std::atomic<const void*> interpreter{nullptr};  // its PyThreadState
  const std::int32_t thread;                      // gettid()

  // A call has returned and its locals still live. True: the function may go unwatched until the next window.
  bool returned(GhostAccount* account, int depth, const void* stack, GhostState& state);

  // An instruction of `account`, standing at `place`, is about to run at `depth`. True: it ended a teardown. Releases
  // that a native library made since the last event are charged to `account`.
  bool goes_on(GhostAccount* account, int depth, const void* stack, std::uint8_t place, GhostState& state);

  // The instruction at `place` of `account`, at `depth`, may end an exception, and with it the locals of `owner`, which
  // the exception kept alive. What happens until the following instruction, and the one after it, is their teardown.
  void exception_dies(GhostAccount* owner, int depth, std::size_t place, const GhostState& state);
  void exception_step(const GhostAccount* account, int depth, std::size_t place, const GhostState& state);

  // C stack between the last return and the instruction that ended its teardown.
  std::ptrdiff_t last_distance() const { return last_distance_; }

 private:
  struct Pending {
    GhostAccount* account;
    std::int64_t ticks;
    int depth;
    const void* stack;
    std::int64_t destroyed;  // ticks when the last destructor in it was over, 0 if there was none written in Python
  };
  struct Usage {
    std::int64_t ticks = 0, rss = 0, run_delay_ns = 0;
    std::int64_t shim_ns = 0, shim_bytes = 0;
  };

  // Before code at `depth` acts: drops a call through C that it supersedes. False: it is a destructor in a teardown.
  bool drop_sibling(const GhostAccount* account, int depth, const void* stack, const GhostState& state);
  bool idle() const { return pending_.empty() && !dying_; }
  void refresh(std::int64_t ticks);
  void close(const Pending& call, std::int64_t ticks, const void* stack, bool by_call, const GhostState& state);
  void charge(GhostAccount* account, std::int64_t from, std::int64_t to, bool needs_evidence, const GhostState& state);
  void charge_native(GhostAccount* account);

  std::vector<Pending> pending_;
  Usage usage_;  // no older than 1 ms at any return
  GhostAccount* dying_ = nullptr;
  std::int64_t dying_ticks_ = 0;
  int dying_depth_ = 0;
  std::size_t dying_place_ = 0;
  std::ptrdiff_t last_distance_ = 0;
};

GhostThread& ghost_thread();  // of the calling thread

// f(thread) for all; none of them ends meanwhile.
void for_ghost_threads(const std::function<void(GhostThread&)>& f);

// The release shim (csrc/preload), if the process was started with it.
struct ReleaseEvent {
  std::int64_t begin_ns, end_ns, bytes;
  std::int32_t thread, kind;
};
bool release_shim_loaded();
const char* release_kind_name(std::int32_t kind);
std::vector<ReleaseEvent> release_events(std::int64_t since_ns);

}  // namespace snarkline
