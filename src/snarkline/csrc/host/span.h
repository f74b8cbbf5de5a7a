// Spans inside native code, on the timeline's clock (CLOCK_MONOTONIC): SNL_SPAN("msm.buckets") covers the rest of its
// scope. And counters that the arena moves and the timeline reads.
//
// A finished span goes to a buffer of its thread; Python drains the buffers. While no timeline is open a span costs
// one relaxed load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace snarkline {

// Bytes. `arena_taken` and `arena_released` only grow; `release_pending` is a level: add when a release is queued,
// subtract when it is done.
enum class Counter : unsigned { arena_taken, arena_released, release_pending };
inline constexpr std::size_t n_counters = 3;

// Adds to the process's total and, for the spans, to the calling thread's. Any thread, no lock.
void counter_add(Counter counter, std::int64_t bytes);
std::int64_t counter_total(Counter counter);

// What the calling thread has used so far. CPU, faults and switches are getrusage(RUSAGE_THREAD)'s.
struct Moment {
  std::int64_t ns = 0;  // CLOCK_MONOTONIC; 0: not taken
  std::int64_t user_ns = 0, system_ns = 0;
  std::int64_t minor_faults = 0, major_faults = 0;
  std::int64_t voluntary = 0, involuntary = 0;  // context switches
  std::int64_t blocks = 0;                      // of file system input and output
  std::int64_t arena_taken = 0, arena_released = 0;
  std::int64_t run_delay_ns = 0;  // ready to run and without a processor; 0 if the system does not say
};

std::int64_t monotonic_ns();
Moment moment_at_begin();  // the clock is read last
Moment moment_at_end();    // the clock is read first

// How long the calling thread has been ready to run without a processor, -1 if the system does not say. About 1 us.
std::int64_t thread_run_delay_ns();

// Resident bytes of the process, -1 if the system does not say. About 1 us.
std::int64_t resident_bytes();

// Where a span belongs: to the span that was open when it began, and to the timeline below whose root both are.
struct SpanContext {
  std::uint64_t id = 0, root = 0;
};

enum class SpanKind : std::int32_t { python, native, timeline };

struct SpanRecord {
  std::uint64_t id = 0, parent = 0, root = 0;
  std::uint32_t name = 0;   // of span_name()
  std::int32_t thread = 0;  // gettid()
  SpanKind kind = SpanKind::python;
  Moment begin, last, end;  // last: the last statement is done and locals still live; ns 0 if it was not marked
  std::int64_t rss_last = -1, rss_end = -1;  // resident_bytes(); taken in spans of over 1 ms only
  std::int64_t bytes = -1, items = -1;
};

inline constexpr std::int64_t rss_after_ns = 1'000'000;

// A point of the counter tracks.
struct CounterSample {
  std::int64_t ns, rss, arena_live, release_pending;
};

extern std::atomic<int> spans_active;  // number of open timelines
inline bool spans_enabled() { return spans_active.load(std::memory_order_relaxed) != 0; }

// A timeline's root span opens and closes the recording. Threads without a context of their own record below the root
// that was opened last.
bool root_open(std::uint64_t root);  // false: too many are open
void root_close(std::uint64_t root);
bool root_is_open(std::uint64_t root);

std::uint64_t next_span_id();
std::uint32_t intern_span_name(const char* name, std::size_t length);
std::string span_name(std::uint32_t name);

// The open span of the calling thread; {0, 0} if spans are off or none is open and no timeline either.
SpanContext span_context();
SpanContext span_context_set(SpanContext context);  // returns the one before
SpanContext span_enter(SpanContext context);        // the same, and the sampler looks at this thread from here on

void span_write(const SpanRecord& record);
std::vector<std::int32_t> span_threads();  // living threads that have had a span open
void counters_sample(std::int64_t ns, std::int64_t rss);

// Finished spans below `root`. They leave the buffers, or stay there below the root `heir` if that one is open.
std::vector<SpanRecord> spans_drain(std::uint64_t root, std::uint64_t heir);
std::vector<CounterSample> counter_samples(std::int64_t since_ns);
// Spans that no open timeline will ask for, and all samples.
void spans_forget();
std::uint64_t spans_dropped();  // for want of room, since the last spans_forget()

// Native spans nest strictly on their thread. close() ends the span and those inside it that were left open.
std::uint64_t native_span_open(const char* name, std::size_t length);  // 0 if off
void native_span_close(std::uint64_t id);
void native_span_last_statement();  // of the innermost open native span of this thread

class NativeSpan {
 public:
  NativeSpan() = default;
  explicit NativeSpan(const char* name) { begin(name); }
  // For a span that covers the destruction of what was declared behind it: begun as the scope's last statement.
  void begin(const char* name) {
    if (spans_enabled() && !id_) id_ = native_span_open(name, __builtin_strlen(name));
  }
  ~NativeSpan() {
    if (id_) native_span_close(id_);
  }
  NativeSpan(const NativeSpan&) = delete;
  NativeSpan& operator=(const NativeSpan&) = delete;

 private:
  std::uint64_t id_ = 0;
};

// Work that another thread does for the open span of `context`: its spans become children of that one.
class SpanFollow {
 public:
  explicit SpanFollow(SpanContext context) : before_(span_context_set(context)) {}
  ~SpanFollow() { span_context_set(before_); }
  SpanFollow(const SpanFollow&) = delete;
  SpanFollow& operator=(const SpanFollow&) = delete;

 private:
  SpanContext before_;
};

}  // namespace snarkline

#define SNL_SPAN_JOIN_(a, b) a##b
#define SNL_SPAN_JOIN(a, b) SNL_SPAN_JOIN_(a, b)
#define SNL_SPAN(name) const ::snarkline::NativeSpan SNL_SPAN_JOIN(snl_span_, __LINE__)(name)
