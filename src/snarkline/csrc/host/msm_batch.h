// Batched affine additions: many accumulators, to each of which one point is added at the price of 5M + 1S and a share
// of one inversion (Montgomery's trick).
#pragma once

#include "inverse.h"
#include "msm_rows.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// Accumulators in slots of V::lanes lanes, slots in groups: the additions of a group are independent and fill each
// other's latency. `start` sets the first `count` accumulators to points of a table, `add` adds points to the first
// `count`.
template <class C>
class BatchAdder {
 public:
  using R = Rows<C>;
  using K = Coordinate<C>;
  using V = typename K::Base;
  using F = typename V::Scalar;
  using Point = typename R::Point;
  static constexpr usize lanes = V::lanes;
  static constexpr usize group = 4;                  // slots
  static constexpr usize granule = group * lanes;    // entries are read in groups of this many
  static constexpr usize ahead = 4 * granule;        // and their rows prefetched so many entries before
  static constexpr usize padding = ahead + granule;  // so entries of existing rows must follow the last for this many
  static constexpr usize most_additions = 15;        // to one accumulator

  void reserve(usize accumulators) {
    const usize slots = group * ((accumulators + granule - 1) / granule);
    if (slots <= slots_.size()) return;
    slots_.resize(slots);
    infinite_.resize(slots);
    passed_.resize(slots);
  }

  template <RowForm form>
  void start(const u64* table, const Entry* entries, usize count) {
    for (usize s = 0; s * lanes < count; s++) {
      prefetch(table, entries + s * lanes);
      slots_[s].sum = R::template load<form>(table, entries + s * lanes);
      infinite_[s] = 0;
    }
  }

  // No entry may be a row at infinity.
  template <RowForm form>
  void add(const u64* table, const Entry* entries, usize count) {
    const usize groups = (count + granule - 1) / granule;
    V product[group];
    std::fill(product, product + group, V::wide(F::one()));
    for (usize i = 0; i < groups; i++) {
      for (usize s = group * i; s < group * (i + 1); s++) load<form>(table, entries + s * lanes, s, count);
      multiply(i, product);
    }
    if (!invert(product)) retry(groups, product);
    for (usize i = groups; i-- > 0;) finish(i, product);
  }

  // The accumulators of slot s, coordinates below 2p, and which of them are infinity.
  Point sum(usize s) const {
    return {K::map([](const V& v) { return V::reduce(v); }, slots_[s].sum.x), reduced_y(slots_[s].sum.y)};
  }
  u8 infinite(usize s) const { return infinite_[s]; }

 private:
  using G = typename K::Scalar;
  // Bounds, in multiples of p. A loaded x is below X, a loaded |y| below YL. An accumulator's x is below X or, after an
  // addition, 1.2. Its y becomes product - y, without carries; the product is below 1.6 (in G2 of BN254, 1.2
  // elsewhere), so after 15 additions |y| < 8 * 1.6 + YL < Y, and y2 - y1 + (Y + YL) p is below 42 p.
  static constexpr u64 X = Scaling<V>::x_bound < 2 ? 2 : Scaling<V>::x_bound;
  static constexpr u64 YL = Scaling<V>::y_bound, Y = 17;
  static_assert(YL <= 4);

  struct Nothing {};
  struct Slot {
    Point sum;  // y before carries
    C y;        // of the point to be added, before carries
    C dx;       // x2 - x1 + X p; 1 in lanes that are passed over
    V before;   // product of the norms that precede this slot's in its chain
    [[no_unique_address]] std::conditional_t<K::degree == 1, Nothing, V> norm;  // of dx, where that is not dx itself
  };

  SNL_HD static void prefetch(const u64* table, const Entry* entries) {
    SNL_UNROLL for (usize i = 0; i < lanes; i++) R::prefetch(table, entries[ahead + i]);
  }
  SNL_HD static C reduced_y(const C& y) {
    return K::map([](const V& v) { return V::template sub_reduce<Y>(v, V::constant(F::zero())); }, y);
  }
  SNL_HD static C select(u8 mask, const C& a, const C& b) {
    return K::map([=](const V& u, const V& v) { return V::select(mask, u, v); }, a, b);
  }
  SNL_HD static V& norm(Slot& slot) {
    if constexpr (K::degree == 1) return slot.dx;
    if constexpr (K::degree == 2) return slot.norm;
  }

  template <RowForm form>
  SNL_HD void load(const u64* table, const Entry* entries, usize s, usize count) {
    prefetch(table, entries);
    Slot& slot = slots_[s];
    const Point p = R::template load<form>(table, entries);
    slot.y = p.y;
    slot.dx = K::map([](const V& a, const V& b) { return V::template sub<X>(a, b); }, p.x, slot.sum.x);
    const usize live = count > s * lanes ? count - s * lanes : 0;
    passed_[s] = live >= lanes ? 0 : (u8)(0xff << live);
    if (passed_[s] | infinite_[s]) [[unlikely]]
      pass(s, p);
    if constexpr (K::degree == 2) norm(slot) = K::norm(slot.dx);
  }
  // Lanes without a point are passed over; those with infinity take the point.
  [[gnu::noinline]] void pass(usize s, const Point& p) {
    Slot& slot = slots_[s];
    const u8 taken = infinite_[s] & ~passed_[s];
    slot.sum = {select(taken, p.x, slot.sum.x), select(taken, p.y, slot.sum.y)};
    infinite_[s] &= ~taken;
    passed_[s] |= taken;
    slot.dx = select(passed_[s], K::one(), slot.dx);
  }

  SNL_HD void multiply(usize index, V (&product)[group]) {
    for (usize h = 0; h < group; h++) {
      Slot& slot = slots_[group * index + h];
      slot.before = product[h];
      product[h] = V::mul(product[h], norm(slot));
    }
  }

  // Every lane of all products to its inverse; false if one is zero, and then nothing is done.
  static bool invert(V (&product)[group]) {
    V before[group], all = product[0];
    for (usize h = 1; h < group; h++) {
      before[h] = all;
      all = V::mul(all, product[h]);
    }
    if (!invert_lanes(all)) return false;
    for (usize h = group - 1; h > 0; h--) {
      const V next = V::mul(all, product[h]);
      product[h] = V::mul(all, before[h]);
      all = next;
    }
    product[0] = all;
    return true;
  }
  [[gnu::noinline]] static bool invert_lanes(V& x) {
    F value[lanes], before[lanes], all = F::one();
    x.store(value[0].v.limb);
    for (usize i = 0; i < lanes; i++) {
      before[i] = all;
      all *= value[i];
    }
    if (all.is_zero()) return false;
    F inverse = DivisionSteps<F>::invert(all) * Scaling<V>::inverse_form;
    for (usize i = lanes; i-- > 0;) {
      const F next = inverse * value[i];
      value[i] = inverse * before[i];
      inverse = next;
    }
    x = V::load(value[0].v.limb);
    return true;
  }

  // A denominator is zero: mends the slots and starts again.
  [[gnu::noinline]] void retry(usize groups, V (&product)[group]) {
    for (usize s = 0; s < group * groups; s++) resolve(s);
    std::fill(product, product + group, V::wide(F::one()));
    for (usize i = 0; i < groups; i++) multiply(i, product);
    invert(product);
  }
  // Points with equal x are not for the formula: their sums go to the accumulators here, and their lanes are passed
  // over.
  void resolve(usize s) {
    Slot& slot = slots_[s];
    const u8 equal = V::zero_mask(norm(slot));
    if (!equal) return;
    for (int lane = 0; lane < (int)lanes; lane++) {
      if (!(equal >> lane & 1)) continue;
      Point p = {slot.sum.x, reduced_y(slot.sum.y)};
      const Affine<G> a = R::get(p, lane);
      if (a.y == R::get({slot.sum.x, reduced_y(slot.y)}, lane).y) {
        R::set(p, lane, doubled(a));
        slot.sum = {select((u8)(1 << lane), p.x, slot.sum.x), select((u8)(1 << lane), p.y, slot.sum.y)};
      } else {
        infinite_[s] |= (u8)(1 << lane);
      }
    }
    passed_[s] |= equal;
    slot.dx = select(equal, K::one(), slot.dx);
    if constexpr (K::degree == 2) norm(slot) = K::norm(slot.dx);
  }
  static F inverse_of(const F& x) { return DivisionSteps<F>::invert(x); }
  static Fp2<F> inverse_of(const Fp2<F>& x) {
    const F t = inverse_of(x.c0.sqr() + x.c1.sqr());
    return {x.c0 * t, -(x.c1 * t)};
  }
  static Affine<G> doubled(const Affine<G>& p) {
    const G xx = p.x.sqr(), lambda = (xx.dbl() + xx) * inverse_of(p.y.dbl());
    const G x = lambda.sqr() - p.x.dbl();
    return {x, lambda * (p.x - x) - p.y};
  }

  // lambda = (y2 - y1) / dx; x3 = lambda^2 - dx - 2 x1 = lambda^2 - x2 - x1; y3 = lambda (x1 - x3) - y1.
  SNL_HD void finish(usize index, V (&inverse)[group]) {
    C over[group], lambda[group];
    Slot* slot = &slots_[group * index];
    const u8* passed = &passed_[group * index];
    for (usize h = 0; h < group; h++) {
      over[h] = K::invert(slot[h].dx, V::mul(inverse[h], slot[h].before));
      inverse[h] = V::mul(inverse[h], norm(slot[h]));
    }
    for (usize h = 0; h < group; h++) {
      const C dy =
          K::map([](const V& a, const V& b) { return V::template sub<Y + YL>(a, b); }, slot[h].y, slot[h].sum.y);
      lambda[h] = K::mul(dy, over[h]);
    }
    for (usize h = 0; h < group; h++) {
      const Point p = slot[h].sum;
      Point q;
      q.x = K::map([](const V& a, const V& b, const V& c) { return V::template sub_twice_reduce<3 * X>(a, b, c); },
                   K::sqr_words(lambda[h]), slot[h].dx, p.x);
      const C run = K::map([](const V& a, const V& b) { return V::template sub<2>(a, b); }, p.x, q.x);
      q.y = K::map([](const V& a, const V& b) { return V::sub_words(a, b); }, K::mul_words(run, lambda[h]), p.y);
      if (passed[h]) [[unlikely]]
        q = {select(passed[h], p.x, q.x), select(passed[h], p.y, q.y)};
      slot[h].sum = q;
    }
  }

  std::vector<Slot> slots_;
  std::vector<u8> infinite_;  // by slot: lanes whose accumulator is infinity
  std::vector<u8> passed_;    // by slot, for one addition: lanes that it leaves alone
};

}  // namespace SNL_ISA
}  // namespace snarkline

#include "ifma_end.h"
