// A native library with a ghost: it fills vectors, returns, and only then gives the memory back.
//
// ghost.py builds it twice: as it is, and with -DMARKED, which adds Snarkline's markers.
#include <cstddef>
#include <cstdint>
#include <vector>

#ifdef MARKED
#include <snarkline/trace.h>
#else
#define SNL_SPAN(name)
#define SNL_LAST_STATEMENT()
#endif

extern "C" std::uint64_t ghost_fill(std::size_t n_bytes) {
  SNL_SPAN("ghost_fill");
  constexpr std::size_t words = (std::size_t{64} << 20) / sizeof(std::uint64_t);
  std::vector<std::vector<std::uint64_t>> vectors;
  std::uint64_t sum = 0;
  {
    SNL_SPAN("fill");
    for (std::size_t done = 0; done < n_bytes; done += words * sizeof(std::uint64_t)) {
      vectors.emplace_back(words, done);
      sum += vectors.back()[words / 2];
    }
  }
  SNL_LAST_STATEMENT();
  return sum;
}
