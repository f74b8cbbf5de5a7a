// From bucket sums to one sum a window, in XYZZ coordinates: sum of (j + 1) * B_j over the buckets j of a window.
#define SNL_CALLED_PRODUCTS 1
#include "quad.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 tree_threads = 64;

// The sum of one Sum a thread, in memory[0] and returned to the threads of the first quad by coordinates. `memory` has
// room for a Sum a thread.
SNL_DEVICE F sum_block(const Quad& q, const Sum& mine, Sum* memory) {
  constexpr u32 quads = tree_threads / 4;
  const u32 quad = threadIdx.x / 4;
  memory[threadIdx.x] = mine;
  __syncthreads();
  SNL_ROLLED for (u32 half = tree_threads / 2; half > 0; half /= 2) {
    SNL_ROLLED for (u32 begin = 0; begin < half; begin += quads) {
      const u32 i = begin + quad;
      const bool valid = i < half;
      const u32 a = valid ? i : tree_threads - 1, b = valid ? half + i : tree_threads - 1;
      const F sum = add_quads(q, q.coordinate(memory + a), q.coordinate(memory + b));
      if (valid) q.set_coordinate(memory + i, sum);
    }
    __syncthreads();
  }
  return q.coordinate(memory);
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
  const Quad q;
  SNL_ROLLED for (u32 i = blockIdx.x; i < counts[0]; i += gridDim.x) {
    const Remainder rest(start, end, slices[i].x, rounds, sums);
    const u32 begin = slices[i].y * slice_size;
    const u32 stop = rest.left - begin < slice_size ? rest.left : begin + slice_size;
    Sum sum = Sum::infinity();
    SNL_ROLLED for (u32 k = begin + threadIdx.x; k < stop; k += tree_threads) add_point(sum, rest[k]);
    const F total = sum_block(q, sum, reinterpret_cast<Sum*>(memory));
    if (threadIdx.x < 4) q.set_coordinate(out + i, total);
    __syncthreads();
  }
}

// The slices of each heavy bucket together: heavy_buckets[i] = (first slice, slices), counts[1] of them.
SNL_KERNEL(64, 4) sum_heavy(const Sum* slice_sums, const uint2* heavy_buckets, const u32* counts, Sum* out) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  const Quad q;
  SNL_ROLLED for (u32 i = blockIdx.x; i < counts[1]; i += gridDim.x) {
    Sum sum = Sum::infinity();
    SNL_ROLLED for (u32 k = threadIdx.x; k < heavy_buckets[i].y; k += tree_threads) {
      add_sum(sum, slice_sums[heavy_buckets[i].x + k]);
    }
    const F total = sum_block(q, sum, reinterpret_cast<Sum*>(memory));
    if (threadIdx.x < 4) q.set_coordinate(out + i, total);
    __syncthreads();
  }
}

// ---- sum of (j + 1) B_j over the buckets j of a window ----
//
// The buckets of a chunk are first added by running sums: S is the sum of all B_j, U_0 the sum of j B_j, j counted from
// the chunk's first. Then neighbouring chunks are added in pairs, level by level, by bits of the chunk's number: S and
// the U so far of a pair are the sums of the two, and the next U is the second S. That is two additions a bucket in
// all; a thread's chain is 2^log_chunk additions and then one for each level.

// Chunk s of `size` buckets: out[s] = S, out[n_chunks + s] = U_0.
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

// The arrays S, U_0, ..., U_(levels - 1) of 2 n sums each become arrays of n, and U_levels is added to them.
SNL_KERNEL(128, 3) reduce_pairs(const Sum* in, u32 levels, u32 n, Sum* out) {
  const u64 i = global_index();
  if (i >= static_cast<u64>(levels + 1) * n) return;
  Sum sum = in[2 * i];
  const Sum second = in[2 * i + 1];
  add_sum(sum, second);
  out[i] = sum;
  if (i < n) out[static_cast<u64>(levels + 1) * n + i] = second;
}

// The same by quads: shorter where a level has too few additions to fill the device.
SNL_KERNEL(128, 3) reduce_pairs_by_quads(const Sum* in, u32 levels, u32 n, Sum* out) {
  const Quad q;
  const u64 i = global_index() / 4, n_sums = static_cast<u64>(levels + 1) * n, from = i < n_sums ? i : 0;
  const F second = q.coordinate(in + 2 * from + 1);
  const F sum = add_quads(q, q.coordinate(in + 2 * from), second);
  if (i >= n_sums) return;
  q.set_coordinate(out + i, sum);
  if (i < n) q.set_coordinate(out + n_sums + i, second);
}

constexpr u32 finish_values = 32;

// One block for each window: the chunks [x, x + y), y being 1 or 2, of 2^log_window buckets each. U_0 weighs 1 and U_l
// 2^(log_chunk + l - 1). Slot e of shared memory holds what weighs 2^e, and quad e works on it; eight slots are brought
// together by doublings in a tree, the eights one by one. log_window is below 32.
SNL_KERNEL(128, 1)
finish_windows(const Sum* in, u32 n_chunks, u32 log_chunk, u32 log_window, const uint2* windows, Sum* out) {
  SNL_DYNAMIC_SHARED(Pair, bytes);
  Sum* slots = reinterpret_cast<Sum*>(bytes);
  const Quad q;
  const u32 first = windows[blockIdx.x].x, count = windows[blockIdx.x].y, e = threadIdx.x / 4;
  const u32 array = e == 0 ? 1 : e - log_chunk + 2;
  const bool used = e == 0 || (e >= log_chunk && e < log_window);
  F value = F::zero();
  SNL_ROLLED for (u32 k = 0; k < count; k++) {
    F other = F::zero();
    if (used) {
      other = q.coordinate(in + static_cast<u64>(array) * n_chunks + first + k);
    } else if (e == log_window && k == 1) {
      other = q.coordinate(in + first + 1);  // the second chunk begins 2^log_window buckets later
    }
    value = add_quads(q, value, other);
  }
  q.set_coordinate(slots + e, value);
  __syncthreads();
  SNL_ROLLED for (u32 d = 1; d < 8; d *= 2) {
    const bool adds = e % (2 * d) == 0;
    value = q.coordinate(slots + (adds ? e + d : e));
    SNL_ROLLED for (u32 k = 0; k < d; k++) value = double_quad(q, value);
    value = add_quads(q, value, q.coordinate(slots + e));
    __syncthreads();
    if (adds) q.set_coordinate(slots + e, value);
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;  // what is left, every quad of the first warp does
  value = F::zero();
  SNL_ROLLED for (u32 k = log_window / 8 + 1; k-- > 0;) {
    if (!q.zero_at(value, 2)) {
      SNL_ROLLED for (int d = 0; d < 8; d++) value = double_quad(q, value);
    }
    value = add_quads(q, value, q.coordinate(slots + 8 * k));
  }
  SNL_ROLLED for (u32 k = 0; k < count; k++) value = add_quads(q, value, q.coordinate(in + first + k));
  if (threadIdx.x < 4) q.set_coordinate(out + blockIdx.x, value);
}

}  // namespace SNL_ISA
}  // namespace snarkline
