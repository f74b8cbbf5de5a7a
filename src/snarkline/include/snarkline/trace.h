/* Markers for native code, for C11, C++11 and CUDA C++: spans on the timeline of a Python process that uses Snarkline.
 *
 *     #include <snarkline/trace.h>
 *
 *     void prove(...) {
 *       SNL_SPAN("prove");          // first, so that it ends after every other local is destroyed
 *       std::vector<...> a, b, c;
 *       ...
 *       SNL_LAST_STATEMENT();       // from here to the end of the span is teardown
 *     }
 *
 * Nothing is linked: the functions are looked up at run time in the process. Where Snarkline is not loaded, or no
 * timeline is open, the markers do nothing. (With glibc before 2.34, dlsym needs -ldl.)
 *
 * Other languages use the same door, for example Rust through dlsym(RTLD_DEFAULT, ...):
 *     const int *snarkline_trace_active(void)            address of a flag that is not 0 while a timeline is open
 *     uint64_t   snarkline_span_open(const char *name)   0 if no timeline is open
 *     void       snarkline_span_close(uint64_t span)     on the thread that opened it; also ends spans inside it
 *     void       snarkline_last_statement(void)          of the innermost open span of this thread
 *
 * Spans nest strictly on a thread. Names are UTF-8 and copied. Time is CLOCK_MONOTONIC.
 *
 * Compile with SNL_TRACE_OFF defined to leave the markers out.
 */
#ifndef SNARKLINE_TRACE_H
#define SNARKLINE_TRACE_H

#if defined(SNL_TRACE_OFF) || !defined(__linux__)

#define SNL_SPAN(name) ((void)0)
#define SNL_LAST_STATEMENT() ((void)0)

#else

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const int* active; /* null until Snarkline was found */
  uint64_t (*open)(const char*);
  void (*close)(uint64_t);
  void (*last_statement)(void);
  int64_t looked; /* tenth of a second of the last look in vain */
} snl_trace_door;

/* One for each file that includes this header. */
__attribute__((unused)) static snl_trace_door snl_trace_door_ = {0, 0, 0, 0, -1};

#ifdef RTLD_DEFAULT
#define SNL_TRACE_EVERYWHERE RTLD_DEFAULT
#else
#define SNL_TRACE_EVERYWHERE NULL /* what it is on Linux; the name is hidden in strict C modes */
#endif

__attribute__((unused, noinline)) static int snl_trace_look(void) {
  int64_t tenth;
  void *active, *open, *close, *last;
#ifdef CLOCK_MONOTONIC_COARSE
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  tenth = (int64_t)now.tv_sec * 10 + now.tv_nsec / 100000000;
#else
  tenth = (int64_t)time(NULL) * 10;
#endif
  if (__atomic_exchange_n(&snl_trace_door_.looked, tenth, __ATOMIC_RELAXED) == tenth) return 0;
  active = dlsym(SNL_TRACE_EVERYWHERE, "snarkline_trace_active");
  open = dlsym(SNL_TRACE_EVERYWHERE, "snarkline_span_open");
  close = dlsym(SNL_TRACE_EVERYWHERE, "snarkline_span_close");
  last = dlsym(SNL_TRACE_EVERYWHERE, "snarkline_last_statement");
  if (!active || !open || !close || !last) return 0;
  __atomic_store_n((void**)&snl_trace_door_.open, open, __ATOMIC_RELAXED);
  __atomic_store_n((void**)&snl_trace_door_.close, close, __ATOMIC_RELAXED);
  __atomic_store_n((void**)&snl_trace_door_.last_statement, last, __ATOMIC_RELAXED);
  __atomic_store_n(&snl_trace_door_.active, ((const int* (*)(void))active)(), __ATOMIC_RELEASE);
  return 1;
}

__attribute__((unused)) static inline int snl_trace_on(void) {
  const int* active = __atomic_load_n(&snl_trace_door_.active, __ATOMIC_ACQUIRE);
  if (!active) {
    if (!snl_trace_look()) return 0;
    active = __atomic_load_n(&snl_trace_door_.active, __ATOMIC_ACQUIRE);
  }
  return __atomic_load_n(active, __ATOMIC_RELAXED) != 0;
}

__attribute__((unused)) static inline uint64_t snl_span_open(const char* name) {
  return snl_trace_on() ? snl_trace_door_.open(name) : 0;
}

__attribute__((unused)) static inline void snl_span_close(const uint64_t* span) {
  if (*span) snl_trace_door_.close(*span);
}

__attribute__((unused)) static inline void snl_last_statement(void) {
  if (snl_trace_on()) snl_trace_door_.last_statement();
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#define SNL_TRACE_JOIN_(a, b) a##b
#define SNL_TRACE_JOIN(a, b) SNL_TRACE_JOIN_(a, b)

#ifdef __cplusplus
/* A class, since a cleanup attribute is not run in every compiler when an exception passes. */
struct SnlSpan {
  uint64_t span;
  explicit SnlSpan(const char* name) : span(snl_span_open(name)) {}
  ~SnlSpan() { snl_span_close(&span); }
  SnlSpan(const SnlSpan&) = delete;
  SnlSpan& operator=(const SnlSpan&) = delete;
};
#define SNL_SPAN(name) const ::SnlSpan SNL_TRACE_JOIN(snl_span_, __LINE__)(name)
#else
#define SNL_SPAN(name)                                                                                  \
  __attribute__((cleanup(snl_span_close), unused)) const uint64_t SNL_TRACE_JOIN(snl_span_, __LINE__) = \
      snl_span_open(name)
#endif

#define SNL_LAST_STATEMENT() snl_last_statement()

#endif /* SNL_TRACE_OFF */
#endif /* SNARKLINE_TRACE_H */
