// Spans inside native code, on the timeline's clock: SNL_SPAN("msm.buckets") covers the rest of its scope. And counters
// that the arena moves and the timeline reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#define SNL_SPAN(name) ((void)0)

namespace snarkline {

// Bytes. `arena_taken` and `arena_released` only grow; `release_pending` is a level: add when a release is queued,
// subtract when it is done.
enum class Counter : unsigned { arena_taken, arena_released, release_pending };
inline constexpr std::size_t n_counters = 3;

// Adds to the process's total and, for the spans, to the calling thread's. Any thread, no lock.
void counter_add(Counter counter, std::int64_t bytes);

}  // namespace snarkline
