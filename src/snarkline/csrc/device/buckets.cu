// From bucket sums to one sum a window, in XYZZ coordinates: sum of (j + 1) * B_j over the buckets j of a window.
#define SNL_CALLED_PRODUCTS 1
#include "group.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 tree_threads = 64;

// The sum of one Sum a thread, in thread 0. `memory` has room for half of the threads.
SNL_DEVICE void sum_block(Sum& mine, Sum* memory) {
  SNL_ROLLED for (u32 half = tree_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x >= half && threadIdx.x < 2 * half) memory[threadIdx.x - half] = mine;
    __syncthreads();
    if (threadIdx.x < half) add_sum(mine, memory[threadIdx.x]);
    __syncthreads();
  }
}

// What is left of a bucket after the rounds (digits.cu): `left` points, 2^(rounds - 1) places apart.
struct Remainder {
  const AffinePoint* first;
  u32 left;
  int log_stride;

  SNL_DEVICE Remainder(const u32* start, const u32* end, u64 b, int rounds, const AffinePoint* sums) {
    const u32 s = start[b];
    left = static_cast<u32>((static_cast<u64>(end[b] - s) + (u64{1} << rounds) - 1) >> rounds);
    first = sums + ((static_cast<u64>(s) + b + 1) >> 1);
    log_stride = rounds - 1;
  }
  SNL_DEVICE AffinePoint operator[](u32 i) const {
    const AffinePoint* p = first + (static_cast<u64>(i) << log_stride);
    return AffinePoint{load(&p->x), load(&p->y)};
  }
};

}  // namespace

// One slice of a heavy bucket a block: slices[i] = (bucket, number of the slice), counts[0] of them.
SNL_KERNEL(64, 4)
sum_slices(const u32* start, const u32* end, int rounds, const AffinePoint* sums, const uint2* slices,
           const u32* counts, u32 slice_size, Sum* out) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  SNL_ROLLED for (u32 i = blockIdx.x; i < counts[0]; i += gridDim.x) {
    const Remainder rest(start, end, slices[i].x, rounds, sums);
    const u32 begin = slices[i].y * slice_size;
    const u32 stop = rest.left - begin < slice_size ? rest.left : begin + slice_size;
    Sum sum = Sum::infinity();
    SNL_ROLLED for (u32 k = begin + threadIdx.x; k < stop; k += tree_threads) add_point(sum, rest[k]);
    sum_block(sum, reinterpret_cast<Sum*>(memory));
    if (threadIdx.x == 0) out[i] = sum;
  }
}

// The slices of each heavy bucket together: heavy_buckets[i] = (first slice, slices), counts[1] of them.
SNL_KERNEL(64, 4) sum_heavy(const Sum* slice_sums, const uint2* heavy_buckets, const u32* counts, Sum* out) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  SNL_ROLLED for (u32 i = blockIdx.x; i < counts[1]; i += gridDim.x) {
    Sum sum = Sum::infinity();
    SNL_ROLLED for (u32 k = threadIdx.x; k < heavy_buckets[i].y; k += tree_threads) {
      add_sum(sum, slice_sums[heavy_buckets[i].x + k]);
    }
    sum_block(sum, reinterpret_cast<Sum*>(memory));
    if (threadIdx.x == 0) out[i] = sum;
  }
}

// Chunk s of `size` buckets: out[s] = sum B_j, out[n_chunks + s] = sum (j - first of the chunk) B_j.
SNL_KERNEL(128, 3)
reduce_buckets(const u32* start, const u32* end, const u32* heavy, int rounds, const AffinePoint* sums,
               const Sum* heavy_sums, u32 size, u32 n_chunks, Sum* out) {
  const u64 s = global_index();
  if (s >= n_chunks) return;
  Sum running = Sum::infinity(), weighted = Sum::infinity();
  SNL_ROLLED for (u32 k = size; k-- > 0;) {
    const u64 b = s * size + k;
    if (heavy[b] != 0) {
      add_sum(running, heavy_sums[heavy[b] - 1]);
    } else {
      const Remainder rest(start, end, b, rounds, sums);
      SNL_ROLLED for (u32 i = 0; i < rest.left; i++) add_point(running, rest[i]);
    }
    if (k > 0) add_sum(weighted, running);
  }
  out[s] = running;
  out[n_chunks + s] = weighted;
}

// `size` chunks become one: of the arrays S, U_1, ..., U_level of n_chunks * size sums each, the sums over every chunk,
// and U_(level + 1) = sum k S_k. One thread for each array and chunk of the output.
SNL_KERNEL(128, 3) reduce_chunks(const Sum* in, u32 size, u32 level, u32 n_chunks, Sum* out) {
  const u64 i = global_index();
  if (i >= static_cast<u64>(level + 1) * n_chunks) return;
  const u64 array = i / n_chunks, s = i % n_chunks;
  const Sum* p = in + (array * n_chunks + s) * size;
  Sum running = Sum::infinity(), weighted = Sum::infinity();
  SNL_ROLLED for (u32 k = size; k-- > 0;) {
    add_sum(running, p[k]);
    if (k > 0 && array == 0) add_sum(weighted, running);
  }
  out[i] = running;
  if (array == 0) out[static_cast<u64>(level + 1) * n_chunks + s] = weighted;
}

// One thread a window: its chunks and levels together. The window covers chunks [first, first + count), each of
// 2^log_chunk buckets; U_l weighs 2^log_weights[l - 1].
SNL_KERNEL(32, 1)
finish_windows(const Sum* in, u32 n_chunks, u32 level, const u32* log_weights, const uint2* windows, u32 log_chunk,
               u32 n_windows, Sum* out) {
  const u32 w = static_cast<u32>(global_index());
  if (w >= n_windows) return;
  const u32 first = windows[w].x, count = windows[w].y;
  // sum over chunks k of T_k + S_k + k 2^log_chunk S_k, T = sum of 2^weight U
  Sum higher = Sum::infinity(), running = Sum::infinity();
  SNL_ROLLED for (u32 k = count; k-- > 0;) {
    add_sum(running, in[first + k]);
    if (k > 0) add_sum(higher, running);
  }
  Sum total = higher;
  u32 weight = log_chunk;
  SNL_ROLLED for (u32 l = level; l > 0; l--) {
    SNL_ROLLED for (; weight > log_weights[l - 1]; weight--) double_sum(total);
    SNL_ROLLED for (u32 k = 0; k < count; k++) add_sum(total, in[static_cast<u64>(l) * n_chunks + first + k]);
  }
  SNL_ROLLED for (; weight > 0; weight--) double_sum(total);
  add_sum(total, running);
  out[w] = total;
}

}  // namespace SNL_ISA
}  // namespace snarkline
