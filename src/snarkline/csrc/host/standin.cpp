#include "standin.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "span.h"

namespace snarkline {

namespace {

constexpr std::size_t kProbeBytes = std::size_t{64} << 10;

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

std::vector<StandinVector> fill(const StandinCall& call) {
  SNL_SPAN("standin.fill");
  const std::size_t length = std::max<std::size_t>(call.bytes / call.vectors / sizeof(std::uint64_t), 1);
  std::vector<StandinVector> vectors;
  if (!call.bytes) return vectors;
  for (std::size_t i = 0; i < call.vectors; i++) {
    auto& vector = vectors.emplace_back(ArenaAllocator<std::uint64_t>(call.arena, call.way, call.secret));
    vector.resize(length);
    parallel_ranges(Exec{call.threads, nullptr}, length, std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
      std::fill(vector.begin() + static_cast<std::ptrdiff_t>(begin), vector.begin() + static_cast<std::ptrdiff_t>(end),
                begin);
    });
  }
  return vectors;
}

// Computes on every thread until the time is over.
void work(const StandinCall& call) {
  SNL_SPAN("standin.work");
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(call.work_s * 1e9);
  parallel(Exec{call.threads, nullptr}, call.threads, [&](std::size_t i) {
    std::uint64_t state = i + 1;
    while (now_ns() < end) {
      for (int k = 0; k < 10000; k++) state = state * 6364136223846793005u + 1442695040888963407u;
      asm volatile("" : : "r"(state));
    }
  });
}

}  // namespace

StandinTimes standin_call(const StandinCall& call) {
  SNL_SPAN("standin");
  StandinTimes times;
  times.entered = now_ns();
  std::vector<StandinVector> vectors = fill(call);
  work(call);
  times.work_done = now_ns();
  for (StandinVector& vector : vectors) {
    if (call.clear != Clear::nothing) vector.clear();
    if (call.clear == Clear::capacity) vector.shrink_to_fit();
  }
  if (call.keep) times.kept = std::make_shared<std::vector<StandinVector>>(std::move(vectors));
  times.last_statement = now_ns();
  native_span_last_statement();
  return times;
}

MapProbe::MapProbe(std::int64_t interval_ns) {
  rounds_.reserve(max_rounds);  // no page fault of its own while it measures
  thread_ = std::thread([this, interval_ns] { run(interval_ns); });
}

MapProbe::~MapProbe() { stop(); }

std::vector<std::pair<std::int64_t, std::int64_t>> MapProbe::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  std::rotate(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(oldest_), rounds_.end());
  oldest_ = 0;
  return std::move(rounds_);
}

void MapProbe::run(std::int64_t interval_ns) {
  while (!stop_) {
    const std::int64_t begin = now_ns();
    void* data = mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return;
    for (std::size_t i = 0; i < kProbeBytes; i += kSmallPage) static_cast<volatile char*>(data)[i] = 1;
    munmap(data, kProbeBytes);
    const std::pair round(begin, now_ns() - begin);
    if (rounds_.size() < max_rounds) {
      rounds_.push_back(round);
    } else {
      rounds_[oldest_] = round;
      oldest_ = (oldest_ + 1) % max_rounds;
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(interval_ns));
  }
}

}  // namespace snarkline
