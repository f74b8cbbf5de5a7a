// How a kernel runs: on how many threads, and how it learns that it should stop. The caller owns both; a kernel never
// creates policy. The calling thread takes part in the work and is the only one that polls.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>

namespace snarkline {

// Thrown out of a kernel when `Exec::poll` asked it to stop. The outputs are then undefined.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

struct Exec {
  unsigned threads = 1;
  // Called on the calling thread between tasks, at most every 20 ms; true stops the kernel. May be empty.
  std::function<bool()> poll;
};

// Runs task(0) ... task(n_tasks - 1), each once, on exec.threads threads, in any order. Tasks should take 0.1 to 10 ms.
// Throws Interrupted, or the first exception that a task threw, after all threads have left the tasks.
void parallel(const Exec& exec, std::size_t n_tasks, const std::function<void(std::size_t)>& task);

// parallel() over ranges: task(begin, end) for consecutive pieces of [0, n) of `grain` to 16 * `grain` items. `grain`
// items should take about 0.1 ms.
void parallel_ranges(const Exec& exec, std::size_t n, std::size_t grain,
                     const std::function<void(std::size_t, std::size_t)>& task);

// The least of the indices that find(begin, end) returns for pieces of [0, n), as parallel_ranges makes them; find
// returns the greatest std::size_t for none. Pieces behind an index that was found are passed over.
template <class Find>
std::size_t first_index(const Exec& exec, std::size_t n, std::size_t grain, const Find& find) {
  std::atomic<std::size_t> first{~std::size_t{0}};
  parallel_ranges(exec, n, grain, [&](std::size_t begin, std::size_t end) {
    if (begin >= first) return;
    const std::size_t found = find(begin, end);
    std::size_t seen = first;
    while (found < seen && !first.compare_exchange_weak(seen, found)) {
    }
  });
  return first;
}

}  // namespace snarkline
