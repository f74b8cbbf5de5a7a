/* Release shim: preloaded into a program, it times the calls that give memory back, in libraries that know nothing of
 * Snarkline. `snarkline ghosts` and timelines read what it finds (release.h).
 *
 *   munmap, madvise (DONTNEED, FREE, REMOVE), free of blocks of 1 MiB and more, cudaFree, cudaFreeHost,
 *   cudaHostUnregister
 *
 * Calls that take under 2 us are not counted. Calls that a library makes to a copy linked into itself, or looks up by
 * dlsym, are not seen.
 */
#define _GNU_SOURCE
#include "release.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define COUNTED_NS 2000
#define EVENT_NS 20000
#define EVENTS 65536
#define FREE_BYTES (1 << 20)

static __thread snl_release_tally tally __attribute__((tls_model("initial-exec")));
static __thread int depth __attribute__((tls_model("initial-exec"))); /* a call inside a call counts once */
static __thread int32_t thread __attribute__((tls_model("initial-exec")));

static snl_release_event events[EVENTS]; /* a ring */
static atomic_size_t n_events;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t begin(void) { return depth++ ? 0 : now(); }

static void end(int64_t begun, enum snl_release_kind kind, size_t bytes) {
  if (--depth || !begun) return;
  const int64_t ended = now();
  if (ended - begun < COUNTED_NS) return;
  tally.ns += ended - begun;
  tally.bytes += (int64_t)bytes;
  if (ended - begun < EVENT_NS) return;
  if (!thread) thread = (int32_t)syscall(SYS_gettid);
  const size_t at = atomic_fetch_add(&n_events, 1) % EVENTS;
  events[at] = (snl_release_event){begun, ended, (int64_t)bytes, thread, (int32_t)kind};
}

EXPORT snl_release_tally *snarkline_release_tally(void) { return &tally; }

EXPORT size_t snarkline_release_events(snl_release_event *out, size_t room) {
  const size_t n = atomic_load(&n_events);
  size_t count = n < EVENTS ? n : EVENTS;
  if (count > room) count = room;
  for (size_t i = 0; i < count; i++) out[i] = events[(n - count + i) % EVENTS];
  return count;
}

EXPORT int munmap(void *address, size_t length) {
  const int64_t begun = begin();
  const int result = (int)syscall(SYS_munmap, address, length);
  end(begun, SNL_MUNMAP, length);
  return result;
}

static int (*next_madvise)(void *, size_t, int);

EXPORT int madvise(void *address, size_t length, int advice) {
  if (!next_madvise) *(void **)&next_madvise = dlsym(RTLD_NEXT, "madvise");
  const int releases = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
  if (!releases) return next_madvise(address, length, advice);
  const int64_t begun = begin();
  const int result = next_madvise(address, length, advice);
  end(begun, SNL_MADVISE, length);
  return result;
}

extern void __libc_free(void *) __attribute__((weak));
static void (*next_free)(void *);
static int looking; /* dlsym itself may free */

EXPORT void free(void *block) {
  if (!next_free) {
    if (looking && __libc_free) {
      __libc_free(block);
      return;
    }
    looking = 1;
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    looking = 0;
  }
  const size_t bytes = block ? malloc_usable_size(block) : 0;
  if (bytes < FREE_BYTES) {
    next_free(block);
    return;
  }
  const int64_t begun = begin();
  next_free(block);
  end(begun, SNL_FREE, bytes);
}

/* Before there are threads. */
__attribute__((constructor)) static void look_up(void) { free(NULL); }

/* A library that was loaded with its symbols kept local is not in the search order behind this one: the function is
 * looked for in the caller's own dependencies. */
static void *driver_function(const char *name, const void *caller) {
  void *found = dlsym(RTLD_NEXT, name);
  Dl_info info;
  if (!found && dladdr(caller, &info) && info.dli_fname) {
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
  }
  return found;
}

#define DRIVER_CALL(name, kind)                                                           \
  EXPORT int name(void *pointer) {                                                        \
    static int (*next)(void *);                                                           \
    if (!next) *(void **)&next = driver_function(#name, __builtin_return_address(0));     \
    if (!next || next == name) return 999; /* cudaErrorUnknown */                         \
    const int64_t begun = begin();                                                        \
    const int result = next(pointer);                                                     \
    end(begun, kind, 0);                                                                  \
    return result;                                                                        \
  }
DRIVER_CALL(cudaFree, SNL_CUDA_FREE)
DRIVER_CALL(cudaFreeHost, SNL_CUDA_FREE_HOST)
DRIVER_CALL(cudaHostUnregister, SNL_CUDA_HOST_UNREGISTER)
