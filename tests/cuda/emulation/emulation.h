// CUDA on the processor, for tests: read before a kernel file by the host compiler. Each CUDA thread is a fiber; the
// blocks of a grid run one after the other. Barriers and warp operations switch fibers.
#pragma once

#include <cstddef>
#include <cstdint>

#define SNL_EMULATE_LIMBS32 1

struct uint2 {
  unsigned x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct dim3 {
  unsigned x, y, z;
};

namespace emulation {

struct Fiber;
struct Grid {
  dim3 thread, block, block_size, grid_size;
};
extern Grid grid;             // of the running fiber
extern char* dynamic_shared;  // of the running block

void block_barrier();
// All lanes of `mask` exchange one value; returns the array of the 32 lanes' values.
const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t value);
unsigned lane();

}  // namespace emulation

#define threadIdx (emulation::grid.thread)
#define blockIdx (emulation::grid.block)
#define blockDim (emulation::grid.block_size)
#define gridDim (emulation::grid.grid_size)

#define SNL_KERNEL(threads, blocks) extern "C" __attribute__((visibility("default"))) void
#define SNL_DEVICE inline
#define SNL_CALL __attribute__((noinline)) inline
#define SNL_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(emulation::dynamic_shared)
#define __shared__ static
#define __device__
#define __restrict__

inline void __syncthreads() { emulation::block_barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { emulation::warp_exchange(mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto* v = emulation::warp_exchange(mask, predicate != 0);
  unsigned r = 0;
  for (unsigned i = 0; i < 32; i++) r |= ((mask >> i) & 1) ? unsigned(v[i]) << i : 0;
  return r;
}
inline unsigned __match_any_sync(unsigned mask, unsigned value) {
  const auto* v = emulation::warp_exchange(mask, value);
  unsigned r = 0;
  for (unsigned i = 0; i < 32; i++) r |= (((mask >> i) & 1) && unsigned(v[i]) == value) ? 1u << i : 0;
  return r;
}
inline unsigned __shfl_sync(unsigned mask, unsigned value, int source) {
  return unsigned(emulation::warp_exchange(mask, value)[source & 31]);
}
inline unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned delta) {
  const auto* v = emulation::warp_exchange(mask, value);
  const unsigned l = emulation::lane();
  return unsigned(v[l >= delta ? l - delta : l]);
}
inline unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned delta) {
  const auto* v = emulation::warp_exchange(mask, value);
  const unsigned l = emulation::lane();
  return unsigned(v[l + delta < 32 ? l + delta : l]);
}
inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, int lanes) {
  return unsigned(emulation::warp_exchange(mask, value)[emulation::lane() ^ lanes]);
}
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T v) {
  *p = v;
}
template <class T, class U>
inline T atomicAdd(T* p, U v) {
  const T old = *p;
  *p += static_cast<T>(v);
  return old;
}
template <class T, class U>
inline T atomicMax(T* p, U v) {
  const T old = *p;
  if (static_cast<T>(v) > old) *p = static_cast<T>(v);
  return old;
}
template <class T, class U>
inline T atomicOr(T* p, U v) {
  const T old = *p;
  *p |= static_cast<T>(v);
  return old;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return unsigned(((std::uint64_t{high} << 32 | low) << (n & 31)) >> 32);
}
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= ((x >> i) & 1) << (31 - i);
  return r;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
