// What kernels share: indices, 16-byte loads and stores, dynamic shared memory.
#pragma once

#include "../common/curves.h"

#ifdef __CUDACC__
#define SNL_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define SNL_DEVICE __device__ __forceinline__
#define SNL_CALL __device__ __noinline__
#define SNL_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

namespace snarkline {
inline namespace SNL_ISA {

using Pair = ulonglong2;  // 16 bytes: the widest load

SNL_DEVICE u64 global_index() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
SNL_DEVICE u64 grid_size() { return static_cast<u64>(gridDim.x) * blockDim.x; }

// An element of any type whose size is a multiple of 16 bytes, at an address that is one too.
template <class T>
SNL_DEVICE T load(const T* p) {
  static_assert(sizeof(T) % sizeof(Pair) == 0);
  T t;
  u64* words = reinterpret_cast<u64*>(&t);
  SNL_UNROLL for (usize i = 0; i < sizeof(T) / sizeof(Pair); i++) {
    const Pair q = reinterpret_cast<const Pair*>(p)[i];
    words[2 * i] = q.x;
    words[2 * i + 1] = q.y;
  }
  return t;
}

// The same through the read-only cache, for data that no thread of the kernel writes.
template <class T>
SNL_DEVICE T load_constant(const T* p) {
  static_assert(sizeof(T) % sizeof(Pair) == 0);
  T t;
  u64* words = reinterpret_cast<u64*>(&t);
  SNL_UNROLL for (usize i = 0; i < sizeof(T) / sizeof(Pair); i++) {
    const Pair q = __ldg(reinterpret_cast<const Pair*>(p) + i);
    words[2 * i] = q.x;
    words[2 * i + 1] = q.y;
  }
  return t;
}

template <class T>
SNL_DEVICE void store(T* p, const T& t) {
  static_assert(sizeof(T) % sizeof(Pair) == 0);
  const u64* words = reinterpret_cast<const u64*>(&t);
  SNL_UNROLL for (usize i = 0; i < sizeof(T) / sizeof(Pair); i++) {
    Pair q;
    q.x = words[2 * i];
    q.y = words[2 * i + 1];
    reinterpret_cast<Pair*>(p)[i] = q;
  }
}

// Elements as planes of 16-byte pieces, `stride` pieces apart: neighbouring threads touch neighbouring pieces.
template <class T>
SNL_DEVICE T load_planes(const Pair* p, u64 stride, u64 index) {
  T t;
  u64* words = reinterpret_cast<u64*>(&t);
  SNL_UNROLL for (usize i = 0; i < sizeof(T) / sizeof(Pair); i++) {
    const Pair q = p[i * stride + index];
    words[2 * i] = q.x;
    words[2 * i + 1] = q.y;
  }
  return t;
}

template <class T>
SNL_DEVICE void store_planes(Pair* p, u64 stride, u64 index, const T& t) {
  const u64* words = reinterpret_cast<const u64*>(&t);
  SNL_UNROLL for (usize i = 0; i < sizeof(T) / sizeof(Pair); i++) {
    Pair q;
    q.x = words[2 * i];
    q.y = words[2 * i + 1];
    p[i * stride + index] = q;
  }
}

// base^e by square and multiply; `powers` holds base^(2^k).
template <class F>
SNL_DEVICE F power_from_squares(const F* powers, u64 e, F start) {
  SNL_ROLLED for (int k = 0; e != 0; k++, e >>= 1) {
    if (e & 1) start = load_constant(powers + k) * start;
  }
  return start;
}

}  // namespace SNL_ISA
}  // namespace snarkline
