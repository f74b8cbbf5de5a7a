// Batched affine additions: many accumulators, to each of which one point is added at the price of 5M + 1S and a share
// of one inversion (Montgomery's trick).
#pragma once

#include "inverse.h"
#include "msm_rows.h"

#include <vector>

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// Accumulators in slots of V::lanes lanes, slots in groups: the additions of a group are independent and fill each other's
// latency. `start` sets the first `count` accumulators to points of a table, `add` adds points to the first `count`.
template <class C>
class BatchAdder {
 public:
  using R = Rows<C>;
  using K = Coordinate<C>;
  using V = typename K::Base;
  using F = typename V::Scalar;
  using Point = typename R::Point;
  static constexpr usize lanes = V::lanes;
  static constexpr usize group = 4;             // slots
  static constexpr usize granule = group * lanes;   // entries are read in groups of this many
  static constexpr usize ahead = 8 * granule;   // and their rows prefetched so many entries before
  static constexpr usize padding = ahead + granule;  // so entries of existing rows must follow the last for this many

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
      Point p = R::template load<form>(table, entries + s * lanes);
      p.y = positive(p.y);
      slots_[s].sum = p;
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
      load<form>(table, entries, i, count);
      multiply(i, product);
    }
    if (!invert(product)) retry(groups, product);
    for (usize i = groups; i-- > 0;) finish(i, product);
  }

  // The accumulators of slot s, coordinates below 2p, and which of them are infinity.
  Point sum(usize s) const {
    return {K::map([](const V& v) { return V::reduce(v); }, slots_[s].sum.x),
            K::map([](const V& v) { return V::reduce(v); }, slots_[s].sum.y)};
  }
  u8 infinite(usize s) const { return infinite_[s]; }

 private:
  using Scale = Scaling<V>;
  // Bounds, in multiples of p: a loaded x, a loaded |y|, an accumulator's x and y. (After an addition both are below 1.6.)
  static constexpr u64 X = Scale::x_bound, Y = Scale::y_bound, SX = X < 2 ? 2 : X, SY = 2 * Y;

  struct Slot {
    Point sum;
    Point other;  // what is added
    V before;     // product of the denominators that precede this slot's in its chain
  };

  SNL_HD static void prefetch(const u64* table, const Entry* entries) {
    SNL_UNROLL for (usize i = 0; i < lanes; i++) R::prefetch(table, entries[ahead + i]);
  }
  SNL_HD static C positive(const C& y) {
    return K::map([](const V& v) { return V::template sub<Y>(v, V::constant(F::zero())); }, y);
  }
  // x2 - x1, and 1 in the lanes that are passed over.
  SNL_HD static V denominator(const Slot& slot, u8 passed, C& dx) {
    dx = K::map([](const V& a, const V& b) { return V::template sub<SX>(a, b); }, slot.other.x, slot.sum.x);
    const V d = K::norm(dx);
    return passed ? V::select(passed, V::wide(F::one()), d) : d;
  }

  template <RowForm form>
  SNL_HD void load(const u64* table, const Entry* entries, usize index, usize count) {
    for (usize h = 0; h < group; h++) {
      const usize s = group * index + h, first = s * lanes;
      prefetch(table, entries + first);
      slots_[s].other = R::template load<form>(table, entries + first);
      const usize live = count > first ? count - first : 0;
      passed_[s] = live >= lanes ? 0 : (u8)(0xff << live);
      if (infinite_[s] & ~passed_[s]) [[unlikely]] replace_infinite(s);
    }
  }
  // infinity + P = P
  void replace_infinite(usize s) {
    Slot& slot = slots_[s];
    const u8 mask = infinite_[s] & ~passed_[s];
    auto choose = [=](const V& a, const V& b) { return V::select(mask, a, b); };
    slot.sum.x = K::map(choose, slot.other.x, slot.sum.x);
    slot.sum.y = K::map(choose, positive(slot.other.y), slot.sum.y);
    infinite_[s] &= ~mask;
    passed_[s] |= mask;
  }

  SNL_HD void multiply(usize index, V (&product)[group]) {
    for (usize h = 0; h < group; h++) {
      Slot& slot = slots_[group * index + h];
      C dx;
      const V d = denominator(slot, passed_[group * index + h], dx);
      slot.before = product[h];
      product[h] = V::mul(product[h], d);
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
    F inverse = DivisionSteps<F>::invert(all) * Scale::inverse_form;
    for (usize i = lanes; i-- > 0;) {
      const F next = inverse * value[i];
      value[i] = inverse * before[i];
      inverse = next;
    }
    x = V::load(value[0].v.limb);
    return true;
  }

  using G = typename K::Scalar;
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

  [[gnu::noinline]] void retry(usize groups, V (&product)[group]) {
    resolve(groups);
    for (V& p : product) p = V::wide(F::one());
    for (usize i = 0; i < groups; i++) multiply(i, product);
    invert(product);
  }
  // Pairs with equal x are not for the formula: their sums are put into the accumulators here, and they are passed over.
  void resolve(usize groups) {
    for (usize s = 0; s < group * groups; s++) {
      Slot& slot = slots_[s];
      C dx;
      const u8 equal = V::zero_mask(denominator(slot, passed_[s], dx));
      if (!equal) continue;
      for (usize lane = 0; lane < lanes; lane++) {
        if (!(equal >> lane & 1)) continue;
        const auto p = R::get(slot.sum, lane);
        const auto q = R::get(Point{slot.other.x, positive(slot.other.y)}, lane);
        if (p.y == q.y) {
          R::set(slot.sum, lane, doubled(p));
        } else {
          infinite_[s] |= (u8)(1 << lane);
        }
      }
      passed_[s] |= equal;
    }
  }

  // lambda = (y2 - y1) / (x2 - x1); x3 = lambda^2 - x1 - x2; y3 = lambda (x1 - x3) - y1.
  SNL_HD void finish(usize index, V (&inverse)[group]) {
    C dx[group], lambda[group], square[group];
    V over[group];
    Slot* slot = &slots_[group * index];
    const u8* passed = &passed_[group * index];
    for (usize h = 0; h < group; h++) {
      const V d = denominator(slot[h], passed[h], dx[h]);
      over[h] = V::mul(inverse[h], slot[h].before);
      inverse[h] = V::mul(inverse[h], d);
    }
    for (usize h = 0; h < group; h++) {
      const C dy = K::map([](const V& a, const V& b) { return V::template sub<Y + SY>(a, b); }, slot[h].other.y,
                          slot[h].sum.y);
      lambda[h] = K::mul(dy, K::invert(dx[h], over[h]));
    }
    for (usize h = 0; h < group; h++) square[h] = K::sqr(lambda[h]);
    for (usize h = 0; h < group; h++) {
      const Point p = slot[h].sum;
      Point q;
      q.x = K::map([](const V& a, const V& b, const V& c) { return V::template sub_sub_reduce<X + SX>(a, b, c); },
                   square[h], slot[h].other.x, p.x);
      const C run = K::map([](const V& a, const V& b) { return V::template sub<2>(a, b); }, p.x, q.x);
      q.y = K::map([](const V& a, const V& b) { return V::template sub_reduce<SY>(a, b); }, K::mul(run, lambda[h]), p.y);
      if (passed[h]) [[unlikely]] {
        auto choose = [mask = passed[h]](const V& a, const V& b) { return V::select(mask, a, b); };
        q.x = K::map(choose, p.x, q.x);
        q.y = K::map(choose, p.y, q.y);
      }
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
