#include "ghosts_watchdog.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../host/span.h"
#include "ghost_events.h"
#include "gil.h"

namespace snarkline {

namespace {

using Word = const void*;

// Of an interpreter frame, which has no public layout: words are its code, the frame below it, five objects, the
// instruction where it stands, and figures with its owner. ghost_watchdog_start() makes sure.
constexpr int word_previous = 1, word_place = 7, word_owner = 8;
constexpr int owner_c = 3;  // the frame stands for C code that called Python code

Word top_frame(const PyThreadState* state) {
#if PY_VERSION_HEX < 0x030d0000
  return state->cframe->current_frame;
#else
  return state->current_frame;
#endif
}
int owner_in(Word w) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(w) >> 48 & 0xff); }
Word word(Word frame, int i) { return static_cast<const Word*>(frame)[i]; }

// Memory that another thread may unmap at any time, read by way of the kernel: null if it is gone. Through a pipe,
// since /proc/self/mem and process_vm_readv() hold the lock that other threads need to map memory.
class Peek {
 public:
  Peek() {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Peek() {
    for (const int end : ends_) close(end);
  }
  Peek(const Peek&) = delete;
  Word operator()(Word address) const {
    Word value = nullptr;
    if (write(ends_[1], address, sizeof value) != sizeof value) return nullptr;
    return read(ends_[0], &value, sizeof value) == sizeof value ? value : nullptr;
  }
  Word operator()(Word frame, int i) const { return (*this)(static_cast<const Word*>(frame) + i); }
  bool works() const {
    const Word self = this;
    return (*this)(&self) == self;
  }

 private:
  int ends_[2];
};

Word top_frame_of(const void* interpreter, const Peek& peek) {
  const auto* state = static_cast<const PyThreadState*>(interpreter);
#if PY_VERSION_HEX < 0x030d0000
  const auto* frame = static_cast<const _PyCFrame*>(peek(&state->cframe));
  return frame ? peek(&frame->current_frame) : nullptr;
#else
  return peek(&state->current_frame);
#endif
}

std::int64_t run_delay_ns(std::int32_t thread) {
  char text[96];
  std::snprintf(text, sizeof text, "/proc/self/task/%d/schedstat", thread);
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  const ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* second = std::strchr(text, ' ');
  return second ? std::atoll(second) : 0;
}

class Watchdog {
 public:
  bool start(const Ticks& ticks) {
    ticks_ = ticks;
    stop_ = false;
    found_.clear();
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "snl-watchdog");
    return running_ = true;
  }
  void stop() {
    if (!thread_.joinable()) return;
    running_ = false;
    {
      std::lock_guard guard(lock_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  bool running() const { return running_.load(std::memory_order_relaxed); }
  bool can_look() const { return peek_.works(); }

  // To the accounts, which the GIL guards.
  void settle() {
    for (const Teardown& t : found_) t.account->add_teardown(t.ns, t.released);
    found_.clear();
  }

 private:
  static constexpr std::chrono::milliseconds period{5};
  static constexpr std::int64_t suspect_ns = 10'000'000, least_ns = 20'000'000, evidence_bytes = 1 << 20;
  // From 3.13 on a frame stands at the same place while its call runs C code, so that teardown must show in another
  // way.
  static constexpr bool place_tells = PY_VERSION_HEX < 0x030d0000;

  struct Stall {
    GhostAccount* account;
    std::int64_t begin, until;  // ticks
    int looks;
    std::int64_t delay_ns, rss;
    bool destructor;  // one written in Python was seen
  };
  struct Teardown {
    GhostAccount* account;
    std::int64_t ns, released;
  };

  void run() {
    std::unique_lock guard(lock_);
    while (!wake_.wait_for(guard, period, [this] { return stop_; })) {
      for_ghost_threads([this](GhostThread& thread) { look_at(thread); });
      rss_[n_looks_++ % rss_.size()] = {ticks_.now(), resident_bytes()};
    }
    for (const auto& [key, stall] : stalls_) end(key.first, stall);
    stalls_.clear();
  }

  void look_at(const GhostThread& thread) {
    for (std::size_t i = 0; i < std::size(thread.posts); i++) {
      GhostStand stand;
      std::int64_t begin = 0;
      bool destructor = false;
      GhostAccount* account = thread.posts[i].look(stand, begin);
      const std::int64_t now = ticks_.now();
      const bool stands = account && ticks_.to_ns(now - begin) >= suspect_ns && stands_still(thread, stand, destructor);
      const auto key = std::pair(thread.thread, i);
      auto known = stalls_.find(key);
      if (known != stalls_.end() && (!stands || known->second.begin != begin)) {
        end(thread.thread, known->second);
        stalls_.erase(known);
        known = stalls_.end();
      }
      if (!stands) continue;
      if (known == stalls_.end()) {
        const Stall stall{account, begin, now, 0, run_delay_ns(thread.thread), rss_before(begin), false};
        known = stalls_.emplace(key, stall).first;
      }
      known->second.until = now;
      known->second.looks++;
      known->second.destructor |= destructor;
    }
  }

  // The caller is at the call that has returned, and nothing is above it but what C code runs: a destructor.
  bool stands_still(const GhostThread& thread, const GhostStand& stand, bool& destructor) const {
    if (peek_(stand.caller, word_place) != stand.place) return false;
    Word above = nullptr;
    Word frame = top_frame_of(thread.interpreter.load(std::memory_order_relaxed), peek_);
    for (int depth = 0; frame && depth < 1000; depth++) {
      if (frame == stand.caller) {
        destructor = above != nullptr;
        return !above || owner_in(peek_(above, word_owner)) == owner_c;
      }
      above = frame;
      frame = peek_(frame, word_previous);
    }
    return false;
  }

  void end(std::int32_t thread, const Stall& stall) {
    // Seen last up to a period before it was over.
    std::int64_t ns = ticks_.to_ns(stall.until - stall.begin) + std::chrono::nanoseconds(period).count() / 2;
    ns -= std::max<std::int64_t>(0, run_delay_ns(thread) - stall.delay_ns);
    const std::int64_t released = std::max<std::int64_t>(0, stall.rss - resident_bytes());
    if (stall.looks < 2 || ns < least_ns || !(place_tells || stall.destructor || released >= evidence_bytes)) return;
    found_.push_back({stall.account, ns, released});
  }

  std::int64_t rss_before(std::int64_t ticks) const {
    std::pair<std::int64_t, std::int64_t> best{0, 0};
    for (const auto& sample : rss_)
      if (sample.first <= ticks) best = std::max(best, sample);
    return best.second;
  }

  Ticks ticks_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::thread thread_;
  bool stop_ = false;
  std::atomic<bool> running_{false};
  const Peek peek_;
  std::array<std::pair<std::int64_t, std::int64_t>, 16> rss_{};  // ticks, bytes
  std::size_t n_looks_ = 0;
  std::map<std::pair<std::int32_t, std::size_t>, Stall> stalls_;  // by thread and post
  std::vector<Teardown> found_;
};

Watchdog& watchdog() {
  static Watchdog& instance = *new Watchdog;  // outlives the interpreter
  return instance;
}

bool owned_by_c(Word frame) { return owner_in(word(frame, word_owner)) == owner_c; }

// Whether frames are laid out as this file has it: held against what the interpreter says of the calling one.
bool layout_holds() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame || PY_VERSION_HEX >= 0x030e0000) return false;
  PyCodeObject* code = PyFrame_GetCode(frame);
  const Word top = top_frame(PyThreadState_Get());
  const bool holds =
      word(top, 0) == code && !owned_by_c(top) &&
      static_cast<const char*>(word(top, word_place)) - code->co_code_adaptive == PyFrame_GetLasti(frame);
  Py_DECREF(code);
  return holds;
}

}  // namespace

GhostStand ghost_stand(GhostThread& thread) {
  const PyThreadState* state = PyThreadState_Get();
  thread.interpreter.store(state, std::memory_order_relaxed);
  const Word frame = top_frame(state), caller = word(frame, word_previous);
  if (!caller || owned_by_c(caller)) return {};
  return {frame, caller, word(caller, word_place)};
}

bool ghost_watchdog_start() { return layout_holds() && watchdog().can_look() && watchdog().start(ghost_state().ticks); }
bool ghost_watchdog_runs() { return watchdog().running(); }

void ghost_watchdog_stop() {
  {
    const WithoutGil without;
    watchdog().stop();
  }
  watchdog().settle();
}

}  // namespace snarkline

#else

namespace snarkline {

bool ghost_watchdog_start() { return false; }
void ghost_watchdog_stop() {}

}  // namespace snarkline

#endif
