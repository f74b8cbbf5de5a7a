// A native library with a ghost: it fills vectors, returns, and only then gives the memory back.
//
// Built twice by ghost.py: as it is, and with -DMARKED, which adds Snarkline's markers.
#include <cstddef>
#include <cstdint>
#include <vector>

#ifdef MARKED
#include <snarkline/trace.h>
#else
#define SNL_SPAN(name)
#define SNL_LAST_STATEMENT()
#endif

namespace {

// 8 KiB elements, as of a proof's many vectors; every page is written.
std::uint64_t fill(std::vector<std::vector<std::uint64_t>>& vectors, std::size_t bytes) {
  constexpr std::size_t words = 1024;
  std::uint64_t sum = 0;
  vectors.reserve(bytes / (words * sizeof(std::uint64_t)));
  while (vectors.size() < vectors.capacity()) {
    vectors.emplace_back(words, vectors.size());
    sum += vectors.back()[words / 2];
  }
  return sum;
}

}  // namespace

extern "C" std::uint64_t ghost_fill(std::size_t bytes) {
  SNL_SPAN("ghost_fill");
  std::vector<std::vector<std::uint64_t>> split;
  std::vector<std::uint64_t> tail(bytes / 2 / sizeof(std::uint64_t), 1);
  std::uint64_t sum = tail.back();
  {
    SNL_SPAN("fill");
    sum += fill(split, bytes / 2);
  }
  SNL_LAST_STATEMENT();
  return sum;
}
