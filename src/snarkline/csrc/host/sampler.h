// Evidence for time that nothing owns: what the threads that have spans are doing, looked up every few milliseconds in
// /proc by a thread that needs no GIL.
#pragma once

#include <cstdint>
#include <vector>

namespace snarkline {

struct WaitSample {
  std::int64_t ns;
  std::int32_t thread;
  std::int32_t call;      // number of the system call that it waits in; call_none, call_running
  std::int64_t io_bytes;  // read and written so far; -1 unknown
};
inline constexpr std::int32_t call_none = -2;     // blocked, in no system call (a page fault)
inline constexpr std::int32_t call_running = -1;  // on a processor, or ready for one

// Each start needs its stop; the first one's period holds. Also samples the counters (span.h).
void sampler_start(std::int64_t period_ns);
void sampler_stop();
std::vector<WaitSample> wait_samples(std::int64_t since_ns);
void wait_samples_forget();

}  // namespace snarkline
