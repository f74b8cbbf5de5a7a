/* What the release shim (release.c) offers to the process that it is loaded into; found by dlsym(). */
#ifndef SNARKLINE_PRELOAD_RELEASE_H
#define SNARKLINE_PRELOAD_RELEASE_H

#include <stddef.h>
#include <stdint.h>

/* Of one thread: time spent giving memory back, and how much. Only grows. */
typedef struct {
  int64_t ns, bytes;
} snl_release_tally;

enum snl_release_kind { /* in the order of snl_release_names */
                        SNL_MUNMAP,
                        SNL_MADVISE,
                        SNL_FREE,
                        SNL_CUDA_FREE,
                        SNL_CUDA_FREE_HOST,
                        SNL_CUDA_HOST_UNREGISTER,
                        SNL_RELEASE_KINDS
};
#define snl_release_names {"munmap", "madvise", "free", "cudaFree", "cudaFreeHost", "cudaHostUnregister"}

/* One call; CLOCK_MONOTONIC. Calls of under 20 us are in the tally only. */
typedef struct {
  int64_t begin_ns, end_ns, bytes;
  int32_t thread, kind;
} snl_release_event;

/* snl_release_tally *snarkline_release_tally(void)      of the calling thread
 * size_t snarkline_release_events(snl_release_event *out, size_t room)
 *                                                       the latest events, oldest first; returns how many */
typedef snl_release_tally* (*snl_release_tally_function)(void);
typedef size_t (*snl_release_events_function)(snl_release_event*, size_t);

#endif
