// Points between tables and lanes. A row holds one affine point: x then y, degree * N limbs each; (0, 0) is infinity.
#pragma once

#include "msm_lanes.h"

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// What the limbs of a table stand for.
enum class RowForm {
  Ordinary,  // canonical elements in ordinary Montgomery form
  Lanes,     // the lanes' own form (Scaling), below 2p
};

// One entry of a sum: the number of a row and, in the top bit, whether its point is subtracted.
using Entry = u32;
inline constexpr Entry subtracted = u32{1} << 31;
using Key = unsigned short;  // of a sum within a task

// Limbs of V::lanes rows of L limbs, limb i of all rows in limb[i]; and back.
template <class V, int L>
struct Columns {
  SNL_HD static void gather(const u64* const (&row)[1], u64 (&limb)[L]) {
    for (int i = 0; i < L; i++) limb[i] = row[0][i];
  }
  SNL_HD static void scatter(u64* const (&row)[1], const u64 (&limb)[L]) {
    for (int i = 0; i < L; i++) row[0][i] = limb[i];
  }
};

#if SNL_ISA_ifma
// Eight limbs at a time by transposing, then four if four are left (G1 with N = 6).
template <class F, Products products, int L>
struct Columns<Field8<F, products>, L> {
  SNL_HD static void gather(const u64* const (&row)[8], __m512i (&limb)[L]) {
    SNL_UNROLL for (int base = 0; base + 8 <= L; base += 8) {
      __m512i r[8];
      SNL_UNROLL for (int i = 0; i < 8; i++) r[i] = _mm512_loadu_si512(row[i] + base);
      transpose8(r);
      SNL_UNROLL for (int i = 0; i < 8; i++) limb[base + i] = r[i];
    }
    if constexpr (L % 8 == 4) {
      __m512i r[4];
      SNL_UNROLL for (int i = 0; i < 4; i++) {
        r[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)(row[i] + L - 4))),
                                  _mm256_loadu_si256((const __m256i*)(row[i + 4] + L - 4)), 1);
      }
      transpose4(r);
      SNL_UNROLL for (int i = 0; i < 4; i++) limb[L - 4 + i] = r[i];
    }
  }
  SNL_HD static void scatter(u64* const (&row)[8], const __m512i (&limb)[L]) {
    SNL_UNROLL for (int base = 0; base + 8 <= L; base += 8) {
      __m512i r[8];
      SNL_UNROLL for (int i = 0; i < 8; i++) r[i] = limb[base + i];
      transpose8(r);
      SNL_UNROLL for (int i = 0; i < 8; i++) _mm512_storeu_si512(row[i] + base, r[i]);
    }
    if constexpr (L % 8 == 4) {
      __m512i r[4];
      SNL_UNROLL for (int i = 0; i < 4; i++) r[i] = limb[L - 4 + i];
      transpose4(r);
      SNL_UNROLL for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256((__m256i*)(row[i] + L - 4), _mm512_castsi512_si256(r[i]));
        _mm256_storeu_si256((__m256i*)(row[i + 4] + L - 4), _mm512_extracti64x4_epi64(r[i], 1));
      }
    }
  }
};
#endif

template <class C>
struct Rows {
  using V = typename Coordinate<C>::Base;
  using F = typename V::Scalar;
  using G = typename Coordinate<C>::Scalar;
  using Scale = Scaling<V>;
  static constexpr int degree = Coordinate<C>::degree;
  static constexpr int limbs = 2 * degree * F::N;

  struct Point {
    C x, y;
  };

  static const u64* row(const u64* table, Entry entry) { return table + usize{limbs} * (entry & ~subtracted); }
  SNL_HD static void prefetch(const u64* table, Entry entry) {
    const char* at = reinterpret_cast<const char*>(row(table, entry));
    for (int i = 0; i < 8 * limbs; i += 64) __builtin_prefetch(at + i);
  }

  // The points of V::lanes entries. The sign of y is in its words (V::negate_words): x < x_bound p, |y| < y_bound p.
  template <RowForm form>
  SNL_HD static Point load(const u64* table, const Entry* entry) {
    constexpr bool ordinary = form == RowForm::Ordinary;
    const u64* rows[V::lanes];
    u8 negative = 0;
    SNL_UNROLL for (int i = 0; i < V::lanes; i++) {
      rows[i] = row(table, entry[i]);
      negative |= (u8)(entry[i] >> 31 << i);
    }
    typename V::Limb limb[limbs];
    Columns<V, limbs>::gather(rows, limb);
    Point p;
    p.x = coordinate<ordinary ? Scale::x_shift : 0>(limb);
    p.y = coordinate<ordinary ? Scale::y_shift : 0>(limb + degree * F::N);
    p.y = Coordinate<C>::map([=](const V& v) { return V::negate_words(negative, v); }, p.y);
    return p;
  }

  // Lane i to rows[i], in the lanes' form; lanes of `infinite` as infinity. Coordinates below 2p.
  SNL_HD static void store(const Point& p, u8 infinite, u64* const (&rows)[V::lanes]) {
    typename V::Limb limb[limbs];
    to_limbs(p.x, limb);
    to_limbs(p.y, limb + degree * F::N);
    Columns<V, limbs>::scatter(rows, limb);
    if (!infinite) return;
    for (int i = 0; i < V::lanes; i++) {
      if (infinite >> i & 1) *reinterpret_cast<Affine<G>*>(rows[i]) = Affine<G>::infinity();
    }
  }

  // A row in the lanes' form as an ordinary point.
  static Affine<G> read(const u64* row) {
    Affine<G> p = *reinterpret_cast<const Affine<G>*>(row);
    F* element = reinterpret_cast<F*>(&p);
    for (int i = 0; i < 2 * degree; i++) F::reduce_once(element[i].v);
    return {times(p.x, Scale::x_down), times(p.y, Scale::y_down)};
  }
  // One lane as an ordinary point, coordinates below 2p, and back.
  static Affine<G> get(const Point& p, int lane) {
    return {times(Coordinate<C>::get(p.x, lane), Scale::x_down), times(Coordinate<C>::get(p.y, lane), Scale::y_down)};
  }
  static void set(Point& p, int lane, const Affine<G>& a) {
    Coordinate<C>::set(p.x, lane, times(a.x, Scale::x_up));
    Coordinate<C>::set(p.y, lane, times(a.y, Scale::y_up));
  }

 private:
  static F times(const F& a, const F& k) { return a * k; }
  static Fp2<F> times(const Fp2<F>& a, const F& k) { return a * k; }

  template <int Shift>
  SNL_HD static C coordinate(const typename V::Limb* limb) {
    if constexpr (degree == 1) {
      return V::template from_limbs<Shift>(limb);
    } else {
      return {V::template from_limbs<Shift>(limb), V::template from_limbs<Shift>(limb + F::N)};
    }
  }
  SNL_HD static void to_limbs(const C& c, typename V::Limb* limb) {
    if constexpr (degree == 1) {
      c.to_limbs(limb);
    } else {
      c.c0.to_limbs(limb);
      c.c1.to_limbs(limb + F::N);
    }
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline

#include "ifma_end.h"
