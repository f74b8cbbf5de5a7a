#include "span.h"

namespace snarkline {

namespace {
std::atomic<std::int64_t> totals[n_counters];
thread_local std::int64_t own[n_counters];
}  // namespace

void counter_add(Counter counter, std::int64_t bytes) {
  const auto i = static_cast<unsigned>(counter);
  totals[i].fetch_add(bytes, std::memory_order_relaxed);
  own[i] += bytes;
}

}  // namespace snarkline
