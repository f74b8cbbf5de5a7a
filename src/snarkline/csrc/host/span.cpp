#include "span.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace snarkline {

std::atomic<int> spans_active{0};

namespace {

constexpr std::size_t max_roots = 64;
constexpr std::size_t max_records = 1'000'000;  // of one thread; 0.3 GB

// The finished spans of a thread. The lock is only ever contended while Python drains.
struct ThreadLog {
  std::int32_t thread = static_cast<std::int32_t>(gettid());
  std::mutex lock;
  std::vector<SpanRecord> records;
};

struct Shared {
  std::mutex lock;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  std::unordered_map<std::string, std::uint32_t> name_ids;
  std::deque<std::string> names;
  std::deque<CounterSample> samples;
  std::array<std::atomic<std::uint64_t>, max_roots> roots{};
  std::atomic<std::uint64_t> newest_root{0};
  std::atomic<std::uint64_t> ids{0}, dropped{0};
  std::atomic<std::int64_t> totals[n_counters];
};

// Never destroyed: threads may still write while the process ends.
Shared& shared() {
  static Shared& instance = *new Shared;
  return instance;
}

struct ThreadState {
  SpanContext context;
  std::vector<SpanRecord> open;  // native spans, innermost last
  std::shared_ptr<ThreadLog> log;
  std::unordered_map<std::string_view, std::uint32_t> names;  // views of Shared::names
};

thread_local std::int64_t tally[n_counters];  // apart from ThreadState: trivial, so that the arena pays no guard
thread_local ThreadState state;

void add_sample(Shared& all, const CounterSample& sample) {
  std::lock_guard guard(all.lock);
  if (all.samples.size() < max_records) all.samples.push_back(sample);
}

// A forked child has one thread and no timeline. The lock is held across the fork, so that what it guards is whole.
void before_fork() { shared().lock.lock(); }
void after_fork_in_parent() { shared().lock.unlock(); }
void after_fork_in_child() {
  Shared& all = shared();
  all.logs.clear();
  all.samples.clear();
  for (auto& slot : all.roots) slot = 0;
  all.newest_root = 0;
  spans_active = 0;
  state.log.reset();
  state.open.clear();
  state.context = {};
  all.lock.unlock();
}

ThreadLog& own_log() {
  if (!state.log) {
    auto log = std::make_shared<ThreadLog>();
    Shared& all = shared();
    std::lock_guard guard(all.lock);
    all.logs.push_back(log);
    state.log = std::move(log);
  }
  return *state.log;
}

std::int64_t nanoseconds(const timeval& t) { return t.tv_sec * 1'000'000'000LL + t.tv_usec * 1'000LL; }

// Two system calls, about 1 us. Figures of the same thread that are younger than this are good enough, which makes
// spans that follow one another closely cheap.
constexpr std::int64_t usage_age_ns = 10'000;
thread_local Moment last_usage;

// The processor was never taken away or given up since the last look: then no run delay either.
bool switched(const rusage& r) { return r.ru_nvcsw != last_usage.voluntary || r.ru_nivcsw != last_usage.involuntary; }

void read_usage(Moment& m, std::int64_t ns) {
  if (ns - last_usage.ns > usage_age_ns) {
    // getrusage's times are as old as the scheduler's last tick (up to 4 ms) unless this clock was read just before.
    timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    rusage r;
    getrusage(RUSAGE_THREAD, &r);
    if (switched(r) || last_usage.ns == 0) last_usage.run_delay_ns = std::max<std::int64_t>(0, thread_run_delay_ns());
    last_usage.ns = ns;
    last_usage.user_ns = nanoseconds(r.ru_utime);
    last_usage.system_ns = nanoseconds(r.ru_stime);
    last_usage.minor_faults = r.ru_minflt;
    last_usage.major_faults = r.ru_majflt;
    last_usage.voluntary = r.ru_nvcsw;
    last_usage.involuntary = r.ru_nivcsw;
    last_usage.blocks = r.ru_inblock + r.ru_oublock;
  }
  m = last_usage;
  m.arena_taken = tally[static_cast<unsigned>(Counter::arena_taken)];
  m.arena_released = tally[static_cast<unsigned>(Counter::arena_released)];
}

}  // namespace

void counter_add(Counter counter, std::int64_t bytes) {
  const auto i = static_cast<unsigned>(counter);
  shared().totals[i].fetch_add(bytes, std::memory_order_relaxed);
  tally[i] += bytes;
}

std::int64_t counter_total(Counter counter) {
  return shared().totals[static_cast<unsigned>(counter)].load(std::memory_order_relaxed);
}

std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

Moment moment_at_begin() {
  Moment m;
  read_usage(m, monotonic_ns());
  m.ns = monotonic_ns();
  return m;
}

Moment moment_at_end() {
  Moment m;
  const std::int64_t ns = monotonic_ns();
  read_usage(m, ns);
  m.ns = ns;
  return m;
}

std::int64_t thread_run_delay_ns() {
  struct File {
    int number = -1;
    pid_t owner = 0;
    ~File() { reset(); }
    void reset() {
      if (number >= 0) close(number);
      number = -1;
    }
  };
  thread_local File file;
  // A forked child would read its parent's figures through the inherited file.
  if (file.owner != getpid()) {
    file.reset();
    file.number = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    file.owner = getpid();
  }
  char text[96];
  const ssize_t n = file.number < 0 ? -1 : pread(file.number, text, sizeof text - 1, 0);
  if (n <= 0) return -1;
  text[n] = 0;
  const char* second = std::strchr(text, ' ');  // time on a processor, time waiting for one, turns
  return second ? std::atoll(second) : -1;
}

std::int64_t resident_bytes() {
  static const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  static const std::int64_t page = sysconf(_SC_PAGESIZE);
  static const pid_t owner = getpid();
  char text[64];
  // A forked child would read its parent's figures through the inherited file.
  const ssize_t n = file < 0 || owner != getpid() ? -1 : pread(file, text, sizeof text - 1, 0);
  if (n <= 0) return -1;
  text[n] = 0;
  const char* second = text;
  while (*second && *second != ' ') second++;
  std::int64_t pages = 0;
  for (second++; *second >= '0' && *second <= '9'; second++) pages = pages * 10 + (*second - '0');
  return pages * page;
}

bool root_open(std::uint64_t root) {
  Shared& all = shared();
  static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
  std::lock_guard guard(all.lock);
  for (auto& slot : all.roots) {
    if (slot.load(std::memory_order_relaxed)) continue;
    slot = root;
    all.newest_root = root;
    spans_active++;
    return true;
  }
  return false;
}

void root_close(std::uint64_t root) {
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  std::uint64_t newest = 0;
  for (auto& slot : all.roots) {
    if (slot == root) {
      slot = 0;
      spans_active--;
    }
    newest = std::max(newest, slot.load());
  }
  all.newest_root = newest;
}

bool root_is_open(std::uint64_t root) {
  if (!root) return false;
  for (const auto& slot : shared().roots)
    if (slot.load(std::memory_order_relaxed) == root) return true;
  return false;
}

std::uint64_t next_span_id() { return shared().ids.fetch_add(1, std::memory_order_relaxed) + 1; }

std::uint32_t intern_span_name(const char* name, std::size_t length) {
  const auto known = state.names.find({name, length});
  if (known != state.names.end()) return known->second;
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  const auto [entry, fresh] = all.name_ids.try_emplace(std::string(name, length), all.names.size());
  if (fresh) all.names.push_back(entry->first);
  state.names.emplace(all.names[entry->second], entry->second);
  return entry->second;
}

std::string span_name(std::uint32_t name) {
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  return name < all.names.size() ? all.names[name] : std::string();
}

SpanContext span_context() {
  if (!spans_enabled()) return {};
  if (root_is_open(state.context.root)) return state.context;
  const std::uint64_t newest = shared().newest_root.load(std::memory_order_relaxed);
  return {newest, newest};
}

SpanContext span_context_set(SpanContext context) { return std::exchange(state.context, context); }

SpanContext span_enter(SpanContext context) {
  own_log();
  return span_context_set(context);
}

void span_write(const SpanRecord& record) {
  ThreadLog& log = own_log();
  std::lock_guard guard(log.lock);
  if (log.records.size() >= max_records) {
    shared().dropped++;
    return;
  }
  log.records.push_back(record);
  log.records.back().thread = log.thread;
}

std::vector<std::int32_t> span_threads() {
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  std::vector<std::int32_t> threads;
  for (const auto& log : all.logs)
    if (log.use_count() > 1) threads.push_back(log->thread);
  return threads;
}

void counters_sample(std::int64_t ns, std::int64_t rss) {
  const std::int64_t live = counter_total(Counter::arena_taken) - counter_total(Counter::arena_released);
  add_sample(shared(), {ns, rss, live, counter_total(Counter::release_pending)});
}

std::vector<SpanRecord> spans_drain(std::uint64_t root, std::uint64_t heir) {
  Shared& all = shared();
  const bool inherits = root_is_open(heir);
  std::vector<SpanRecord> found;
  std::lock_guard guard(all.lock);
  for (auto& log : all.logs) {
    std::lock_guard own(log->lock);
    auto& records = log->records;
    const auto rest =
        std::stable_partition(records.begin(), records.end(), [&](const SpanRecord& r) { return r.root != root; });
    found.insert(found.end(), rest, records.end());
    if (inherits) {
      std::for_each(rest, records.end(), [&](SpanRecord& r) { r.root = heir; });
    } else {
      records.erase(rest, records.end());
    }
  }
  // A log that only this list holds is that of a thread that has ended.
  std::erase_if(all.logs, [](const auto& log) { return log.use_count() == 1 && log->records.empty(); });
  return found;
}

std::vector<CounterSample> counter_samples(std::int64_t since_ns) {
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  std::vector<CounterSample> found;
  std::copy_if(all.samples.begin(), all.samples.end(), std::back_inserter(found),
               [&](const CounterSample& s) { return s.ns >= since_ns; });
  return found;
}

std::uint64_t spans_dropped() { return shared().dropped; }

void spans_forget() {
  Shared& all = shared();
  std::lock_guard guard(all.lock);
  all.samples.clear();
  all.dropped = 0;
  for (auto& log : all.logs) {
    std::lock_guard own(log->lock);
    std::erase_if(log->records, [](const SpanRecord& r) { return !root_is_open(r.root); });
  }
}

std::uint64_t native_span_open(const char* name, std::size_t length) {
  const SpanContext context = span_context();
  if (!context.root) return 0;
  SpanRecord record;
  record.id = next_span_id();
  record.parent = context.id;
  record.root = context.root;
  record.kind = SpanKind::native;
  record.name = intern_span_name(name, length);
  state.open.push_back(record);
  span_enter({record.id, record.root});
  state.open.back().begin = moment_at_begin();
  return record.id;
}

void native_span_close(std::uint64_t id) {
  const Moment end = moment_at_end();
  if (std::none_of(state.open.begin(), state.open.end(), [&](const SpanRecord& r) { return r.id == id; })) return;
  for (bool done = false; !done;) {
    SpanRecord record = state.open.back();
    state.open.pop_back();
    done = record.id == id;
    record.end = end;
    if (end.ns - record.begin.ns > rss_after_ns) {
      record.rss_end = resident_bytes();
      counters_sample(end.ns, record.rss_end);
    }
    state.context = {record.parent, record.root};
    span_write(record);
  }
}

void native_span_last_statement() {
  if (state.open.empty()) return;
  SpanRecord& record = state.open.back();
  if (monotonic_ns() - record.begin.ns > rss_after_ns) {
    record.rss_last = resident_bytes();
    counters_sample(monotonic_ns(), record.rss_last);
  }
  record.last = moment_at_begin();
}

}  // namespace snarkline

// The door for snarkline/trace.h: plain C, found by name at run time.
#define SNL_EXPORT extern "C" __attribute__((visibility("default")))

SNL_EXPORT const int* snarkline_trace_active() {
  static_assert(sizeof(std::atomic<int>) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  return reinterpret_cast<const int*>(&snarkline::spans_active);
}

SNL_EXPORT std::uint64_t snarkline_span_open(const char* name) {
  return snarkline::spans_enabled() ? snarkline::native_span_open(name, __builtin_strlen(name)) : 0;
}

SNL_EXPORT void snarkline_span_close(std::uint64_t id) { snarkline::native_span_close(id); }

SNL_EXPORT void snarkline_last_statement() { snarkline::native_span_last_statement(); }
