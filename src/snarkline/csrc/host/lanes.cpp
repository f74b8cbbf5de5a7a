#include "lanes.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between functions that are inlined

namespace snarkline {
namespace {

#define LANES_256 0
#define LANES_512 0
namespace base {
#include "lanes_body.h"
}
#undef LANES_256

#if defined(__x86_64__)
#define LANES_256 1
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
namespace avx2 {
#include "lanes_body.h"
}
#pragma GCC pop_options

#undef LANES_512
#define LANES_512 1
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2")
namespace avx512 {
#include "lanes_body.h"
}
#pragma GCC pop_options
#endif

#define LANE_TABLE(name)                                                                                    \
  {#name,           name::run_bits, name::digit_sums, name::row_codes, name::store_tile, name::store_codes, \
   name::transpose, name::low_bits}
constexpr LaneKernels base_kernels = LANE_TABLE(base);
#if defined(__x86_64__)
constexpr LaneKernels avx2_kernels = LANE_TABLE(avx2);
constexpr LaneKernels avx512_kernels = LANE_TABLE(avx512);
#endif

}  // namespace

const LaneKernels* find_lanes(const char* name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (std::strcmp(name, "avx512") == 0) {
    const bool there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return there ? &avx512_kernels : nullptr;
  }
  if (std::strcmp(name, "avx2") == 0) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &avx2_kernels : nullptr;
  }
#endif
  return std::strcmp(name, "base") == 0 ? &base_kernels : nullptr;
}

const LaneKernels& lane_kernels() {
  static const LaneKernels& best = []() -> const LaneKernels& {
    for (const char* name : {"avx512", "avx2"}) {
      if (const LaneKernels* found = find_lanes(name)) return *found;
    }
    return base_kernels;
  }();
  return best;
}

}  // namespace snarkline
