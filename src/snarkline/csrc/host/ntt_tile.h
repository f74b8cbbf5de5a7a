// Transforms of a tile: 2^log_rows values of `Lanes`, contiguous and in cache, each lane a transform of its own.
//
// Both networks are of butterflies (u, v) -> (u + w v, u - w v), where only v meets a product (Cooley, Tukey 1965), and
// take two levels at a time, so that a tile is read and written once for two levels:
//
//   split: natural order to bit-reversed. A block holds a polynomial modulo x^m - w^2, which becomes its residues
//   modulo
//          x^(m/2) - w and x^(m/2) + w: one w for each block.
//   merge: bit-reversed order to natural. A block holds the values of the even and of the odd part of a polynomial,
//          which become its own values: one w for each place in a block.
#pragma once

#include <vector>

#include "ntt_lanes.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace ntt {

inline usize reverse_bits(usize i, int bits) {
  usize r = 0;
  for (int b = 0; b < bits; b++) r = r << 1 | (i >> b & 1);
  return r;
}

template <class F>
F power(F base, usize e) {
  F acc = F::one();
  for (; e; e >>= 1, base = base.sqr()) {
    if (e & 1) acc *= base;
  }
  return acc;
}

enum class Order { Natural, BitReversed };

// first * ratio^k for k < 2^log_n, prepared as factors.
template <class L, class F>
std::vector<typename L::Factor> power_table(F first, const F& ratio, int log_n, Order order) {
  std::vector<typename L::Factor> table(usize{1} << log_n);
  for (usize k = 0; k < table.size(); k++, first *= ratio) {
    table[order == Order::BitReversed ? reverse_bits(k, log_n) : k] = L::factor(first);
  }
  return table;
}

#include "ifma_begin.h"

// (x0, x2), (x1, x3) by a, then (x0, x1) by b and (x2, x3) by c. Bounds (see ntt_lanes.h): 22 to 22, as x1 and x3 meet
// their products at 32 or less and x0 and x2 grow from 1.1 by 10 twice.
template <class L>
SNL_HD void butterfly4(L& x0, L& x1, L& x2, L& x3, const typename L::Factor& a, const typename L::Factor& b,
                       const typename L::Factor& c) {
  L y0 = L::trim(x0), y1 = x1, y2 = x2, y3 = x3;
  L::butterflies(y0, y2, a, y1, y3, a);
  L::butterflies(y0, y1, b, y2, y3, c);
  x0 = y0;
  x1 = y1;
  x2 = y2;
  x3 = y3;
}

// The same with a = b = 1. Bounds: 35 to 15.
template <class L>
SNL_HD void butterfly4(L& x0, L& x1, L& x2, L& x3, const typename L::Factor& c) {
  L y0 = L::settle(x0), y1 = L::settle(x1), y2 = L::settle(x2), y3 = L::settle(x3);
  L::butterfly(y0, y2);
  L::butterfly(y1, y3);
  L::butterfly(y0, y1);
  L::butterfly(y2, y3, c);
  x0 = y0;
  x1 = y1;
  x2 = y2;
  x3 = y3;
}

template <class L>
SNL_HD void butterfly2(L& x0, L& x1) {
  L y0 = L::settle(x0), y1 = L::settle(x1);
  L::butterfly(y0, y1);
  x0 = y0;
  x1 = y1;
}

// twiddles[b]: the powers of a root of order 2^log_rows or any multiple, in bit-reversed order.
template <class L>
void split(L* x, int log_rows, const typename L::Factor* twiddles) {
  const usize rows = usize{1} << log_rows;
  usize m = rows;
  if (log_rows & 1) {
    m /= 2;
    for (L* p = x; p < x + m; p++) butterfly2(p[0], p[m]);
  }
  for (; m > 1; m /= 4) {
    const usize q = m / 4;
    for (L* p = x; p < x + q; p++) butterfly4(p[0], p[q], p[2 * q], p[3 * q], twiddles[1]);
    for (usize b = 1; b < rows / m; b++) {
      L* const block = x + b * m;
      for (L* p = block; p < block + q; p++) {
        butterfly4(p[0], p[q], p[2 * q], p[3 * q], twiddles[b], twiddles[2 * b], twiddles[2 * b + 1]);
      }
    }
  }
}

// twiddles[i]: the power i of a root of order 2^(log_twiddles + 1), a multiple of 2^log_rows.
template <class L>
void merge(L* x, int log_rows, const typename L::Factor* twiddles, int log_twiddles) {
  L* const end = x + (usize{1} << log_rows);
  int log_q = 0;
  if (log_rows & 1) {
    for (L* p = x; p < end; p += 2) butterfly2(p[0], p[1]);
    log_q = 1;
  }
  for (; log_q < log_rows; log_q += 2) {
    const usize q = usize{1} << log_q, half_turn = usize{1} << log_twiddles, step = half_turn / (2 * q);
    for (L* p = x; p < end; p += 4 * q) butterfly4(p[0], p[2 * q], p[q], p[3 * q], twiddles[half_turn / 2]);
    for (usize j = 1; j < q; j++) {
      for (L* p = x + j; p < end; p += 4 * q) {
        butterfly4(p[0], p[2 * q], p[q], p[3 * q], twiddles[2 * j * step], twiddles[j * step],
                   twiddles[(j + q) * step]);
      }
    }
  }
}

// x[i] *= table[i]. Bounds: 35 to 10.
template <class L>
void scale(L* x, int log_rows, const typename L::Factor* table) {
  for (usize i = 0; i < usize{1} << log_rows; i++) x[i] = L::times(x[i], table[i]);
}

// Multiplies the value of index k, which bit-reversed order keeps at reverse_bits(k), by first * ratio^k in each lane:
// as two products, by ratio^(m i) and first * ratio^j for k = m i + j, since to prepare a factor costs more than a
// product. Bounds: 35 to 10.
template <class L>
void twist(L* x, int log_rows, const typename L::Constants& first, const typename L::Constants& ratio) {
  constexpr int max_log_m = 6;
  const int log_m = log_rows / 2, log_i = log_rows - log_m;
  const usize m = usize{1} << log_m, half = (usize{1} << log_rows) / 2;
  typename L::LaneFactor inner[usize{1} << max_log_m];
  auto power = first;
  for (usize j = 0; j < m; j++, power = L::times(power, ratio)) inner[j] = L::prepare(power);
  auto step = ratio, outer = L::all_lanes(L::Element::one());
  for (int i = 0; i < log_m; i++) step = L::times(step, step);
  for (usize i = 0; i < usize{1} << log_i; i++, outer = L::times(outer, step)) {
    const auto factor = L::prepare(outer);
    for (usize j = 0; j < m; j += 2) {
      L* const p = x + (reverse_bits(j, log_m) << log_i) + reverse_bits(i, log_i);
      L::times_twice(p[0], p[half], factor, inner[j], inner[j + 1]);
    }
  }
}

#include "ifma_end.h"

}  // namespace ntt
}  // namespace SNL_ISA
}  // namespace snarkline
