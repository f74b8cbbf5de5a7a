// Sums in XYZZ coordinates added by four threads each, where there are few of them and latency is all: thread k of a
// quad holds coordinate k (x, y, zz, zzz). The 14 products of an addition depend on each other in 4 steps, the 10 of a
// doubling in 3. Formulas as in point.h. All threads of a warp must take part.
#pragma once

#include "group.h"

namespace snarkline {
inline namespace SNL_ISA {

struct Quad {
  u32 lane, first;  // of the thread in its warp, and of the first thread of its quad
  u32 part;         // the coordinate that the thread holds

  SNL_DEVICE Quad() {
    lane = threadIdx.x % 32;
    part = lane % 4;
    first = lane - part;
  }

  // What another lane holds, and another thread of the quad.
  SNL_DEVICE static Fp exchange(const Fp& a, u32 lane) {
    Fp r;
    SNL_UNROLL for (int i = 0; i < Fp::N; i++) {
      const u32 low = __shfl_sync(~0u, static_cast<u32>(a.v.limb[i]), static_cast<int>(lane));
      const u32 high = __shfl_sync(~0u, static_cast<u32>(a.v.limb[i] >> 32), static_cast<int>(lane));
      r.v.limb[i] = low | static_cast<u64>(high) << 32;
    }
    return r;
  }
  SNL_DEVICE static Fp2<Fp> exchange(const Fp2<Fp>& a, u32 lane) {
    return Fp2<Fp>{exchange(a.c0, lane), exchange(a.c1, lane)};
  }
  SNL_DEVICE F from(const F& a, u32 thread) const { return exchange(a, first + thread); }
  // Whether the value of thread `thread` of the quad is zero.
  SNL_DEVICE bool zero_at(const F& a, u32 thread) const {
    return ((__ballot_sync(~0u, a.is_zero()) >> (first + thread)) & 1) != 0;
  }

  SNL_DEVICE F coordinate(const Sum* s) const { return load(reinterpret_cast<const F*>(s) + part); }
  SNL_DEVICE void set_coordinate(Sum* s, const F& a) const { store(reinterpret_cast<F*>(s) + part, a); }
};

// u = 2 y, v = u^2, w = u v, s = x v, m = 3 x^2: (m^2 - 2 s, m (s - x3) - w y, v zz, w zzz). Infinity stays infinity.
SNL_CALL F double_quad(Quad q, F a) {
  const F u = q.part == 0 ? a : a.dbl();
  const F square = u * u;  // 0: x^2; 1: v
  const F v = q.from(square, 1), m = q.from(square.dbl() + square, 0);
  const F left = q.part == 1 ? u : q.part == 3 ? m : a;
  const F second = left * (q.part == 3 ? m : v);  // 0: s; 1: w; 2: v zz; 3: m^2
  const F s = q.from(second, 0), w = q.from(second, 1);
  const F x3 = q.from(second, 3) - s.dbl();
  const F third = (q.part == 0 ? m : a) * (q.part == 0 ? s - x3 : w);  // 0: m (s - x3); 1: w y; 3: w zzz
  const F y3 = q.from(third, 0) - third;
  return q.part == 0 ? x3 : q.part == 1 ? y3 : q.part == 2 ? second : third;
}

SNL_CALL F add_quads(Quad q, F a, F b) {
  const F cross = a * q.from(b, q.part ^ 2);               // 0: u1 = x1 zz2; 1: s1 = y1 zzz2; 2: u2; 3: s2
  const F difference = q.from(cross, q.part ^ 2) - cross;  // 0: dx = u2 - u1; 1: dy = s2 - s1
  const bool low = q.part < 2;
  const F second = (low ? difference : a) * (low ? difference : b);  // 0: pp = dx^2; 1: dy^2; 2: zz1 zz2; 3: zzz1 zzz2
  const F pp = q.from(second, 0), dx = q.from(difference, 0);
  const F third = (q.part == 0 ? cross : q.part == 2 ? second : dx) * pp;  // 0: u1 pp; 1, 3: ppp; 2: zz3
  const F u1_pp = q.from(third, 0), s1 = q.from(cross, 1), ppp = q.from(third, 1);
  const F x3 = q.from(second, 1) - ppp - u1_pp.dbl();
  const F left = q.part == 0 ? s1 : q.part == 1 ? difference : second;
  const F fourth = left * (q.part == 1 ? u1_pp - x3 : ppp);  // 0: s1 ppp; 1: dy (u1 pp - x3); 3: zzz3
  const F y3 = fourth - q.from(fourth, 0);
  F sum = q.part == 0 ? x3 : q.part == 1 ? y3 : q.part == 2 ? third : fourth;

  const bool a_infinite = q.zero_at(a, 2), b_infinite = q.zero_at(b, 2);
  const bool same_x = q.zero_at(difference, 0), same_y = q.zero_at(difference, 1);
  const bool twice = same_x && same_y && !a_infinite && !b_infinite;
  if (same_x) sum = F::zero();
  if (__ballot_sync(~0u, twice) != 0) {
    const F doubled = double_quad(q, a);
    if (twice) sum = doubled;
  }
  if (b_infinite) sum = a;
  if (a_infinite) sum = b;
  return sum;
}

}  // namespace SNL_ISA
}  // namespace snarkline
