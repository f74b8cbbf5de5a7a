#include "exec.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "span.h"

namespace snarkline {

void parallel(const Exec& exec, std::size_t n_tasks, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex failure_lock;
  std::exception_ptr failure;

  auto fail = [&](std::exception_ptr error) {
    std::lock_guard guard(failure_lock);
    if (!failure) failure = error;
    stop = true;
  };
  auto work = [&](bool polls) {
    auto polled = std::chrono::steady_clock::now();
    try {
      for (std::size_t i; !stop && (i = next++) < n_tasks;) {
        task(i);
        if (!polls || !exec.poll) continue;
        const auto now = std::chrono::steady_clock::now();
        if (now - polled < std::chrono::milliseconds(20)) continue;
        polled = now;
        if (exec.poll()) throw Interrupted();
      }
    } catch (...) {
      fail(std::current_exception());
    }
  };

  const SpanContext spans = span_context();
  std::vector<std::thread> helpers;
  const std::size_t n_helpers = std::min<std::size_t>(std::max(exec.threads, 1u), n_tasks ? n_tasks : 1) - 1;
  helpers.reserve(n_helpers);
  try {
    // Starting a thread takes tens of microseconds, in which those that run may have taken all tasks.
    for (std::size_t i = 0; i < n_helpers && next < n_tasks; i++)
      helpers.emplace_back([&work, spans] {
        const SpanFollow follow(spans);
        work(false);
      });
  } catch (const std::system_error&) {
    // The system grants no more threads: those that run do the work.
  }
  work(true);
  for (auto& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

void parallel_ranges(const Exec& exec, std::size_t n, std::size_t grain,
                     const std::function<void(std::size_t, std::size_t)>& task) {
  if (n == 0) return;
  const std::size_t wanted = std::size_t{8} * std::max(exec.threads, 1u);
  grain = std::max(grain, std::size_t{1});
  const std::size_t step = std::clamp((n + wanted - 1) / wanted, grain, 16 * grain);
  parallel(exec, (n + step - 1) / step, [&](std::size_t i) { task(i * step, std::min(n, (i + 1) * step)); });
}

}  // namespace snarkline
