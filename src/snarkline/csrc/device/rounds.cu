// Bucket sums by rounds of affine additions: in each round the points of every bucket are added in pairs. An affine
// addition costs 2M + 1S and one inversion, and all inversions of a round are made together, at three products each:
// 5M + 1S in all, where an XYZZ addition costs 8M + 2S.
//
// A round is three steps: `denominators` multiplies the denominators x2 - x1 of K additions of each thread up, the
// products are inverted (inverse.cu), `additions` takes the inverses apart on the way back and adds. In G2 the
// denominators' norms are inverted.
//
// Two sums that the next round adds are mostly made by neighbouring lanes of a warp. One hands its x over, the other
// leaves the denominator, so that `denominators` of the next round reads neither point. That takes a quarter (over 381
// bits) to almost a half (over 254) off its time, and makes `additions` 3 to 4 % longer.
//
// Infinity is x = 0: points of both groups with x = 0 would have order 3. A sum of the first round is written to
// `sums`, a later one over its first operand.
#include "group.h"
#include "warp.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 flag = 1u << 31;  // of an entry: the point is to be negated; of a place or a source: lists.h

// Where an addition takes its operands.
struct Operands {
  const AffinePoint *first, *second;
  bool negate_first, negate_second;
};

// What a denominator is read from: the x of the operands, or the one that the round before has left; zero there stands
// for a special case.
struct Difference {
  F x1, x2;
  bool left;

  SNL_DEVICE F value() const { return left ? x2 : x2 - x1; }
  SNL_DEVICE bool special(const F& d) const { return d.is_zero() | (!left && (x1.is_zero() | x2.is_zero())); }
};

// The first round reads the table of points. Lists as in lists.h.
struct FirstRound {
  using Source = uint2;
  struct Places {
    uint2 operands;
    u32 sum;
  };
  const uint2* list;
  const u32* sum_places;
  const AffinePoint* points;
  AffinePoint* sums;

  SNL_DEVICE Source source(u64 a) const { return list[a]; }
  SNL_DEVICE Difference difference(const Source& of) const {
    return Difference{load(&points[of.x & ~flag].x), load(&points[of.y & ~flag].x), false};
  }
  SNL_DEVICE Places places(u64 a) const { return Places{list[a], sum_places[a]}; }
  SNL_DEVICE bool makes_denominator(const Places& at) const { return (at.sum & flag) != 0; }
  SNL_DEVICE Operands operands(const Places& at) const {
    return Operands{points + (at.operands.x & ~flag), points + (at.operands.y & ~flag), (at.operands.x & flag) != 0,
                    (at.operands.y & flag) != 0};
  }
  SNL_DEVICE u32 place(const Places& at) const { return at.sum & ~flag; }  // of the result
};

struct LaterRound {
  using Source = u32;
  using Places = u32;
  const u32 *list, *sources;
  AffinePoint* sums;
  u32 stride;
  const Pair* left;  // the denominators that the round before has left
  u64 n_left;

  SNL_DEVICE Source source(u64 a) const { return sources[a]; }
  SNL_DEVICE Difference difference(Source of) const {
    if ((of & flag) == 0) return Difference{F::zero(), load_planes<F>(left, n_left, of), true};
    const AffinePoint* p = sums + (of & ~flag);
    return Difference{load(&p->x), load(&p[stride].x), false};
  }
  SNL_DEVICE Places places(u64 a) const { return list[a]; }
  SNL_DEVICE bool makes_denominator(const Places& at) const { return (at & flag) != 0; }
  SNL_DEVICE Operands operands(const Places& at) const {
    AffinePoint* p = sums + (at & ~flag);
    return Operands{p, p + stride, false, false};
  }
  SNL_DEVICE u32 place(const Places& at) const { return at & ~flag; }
};

// The x of the next lane.
SNL_DEVICE F of_next_lane(const F& x) {
  F next;
  const u64* from = reinterpret_cast<const u64*>(&x);
  u64* to = reinterpret_cast<u64*>(&next);
  SNL_UNROLL for (usize i = 0; i < sizeof(F) / sizeof(u64); i++) {
    const u32 low = __shfl_down_sync(all_lanes, static_cast<u32>(from[i]), 1);
    const u32 high = __shfl_down_sync(all_lanes, static_cast<u32>(from[i] >> 32), 1);
    to[i] = low | static_cast<u64>(high) << 32;
  }
  return next;
}

// Writes each lane's point to its place among `sums`, where it has one. Two neighbouring lanes write their points
// together, so that every store of the two is a whole sector of 32 bytes: the even lane the even pieces of both, the
// odd lane the odd ones.
constexpr u32 no_place = ~0u;
SNL_DEVICE void store_by_pairs(AffinePoint* sums, u32 place, const AffinePoint& point) {
  const u32 odd = lane_id() % 2, other = __shfl_xor_sync(all_lanes, place, 1);
  const u32 first = odd != 0 ? other : place, second = odd != 0 ? place : other;
  const u64* words = reinterpret_cast<const u64*>(&point);
  SNL_UNROLL for (u32 i = 0; i < sizeof(AffinePoint) / sizeof(Pair); i += 2) {
    u64 to_first[2], to_second[2];
    SNL_UNROLL for (u32 k = 0; k < 2; k++) {
      const u64 even = words[2 * i + k], given = odd != 0 ? even : words[2 * i + 2 + k];
      const u64 got = __shfl_xor_sync(all_lanes, static_cast<u32>(given), 1) |
                      static_cast<u64>(__shfl_xor_sync(all_lanes, static_cast<u32>(given >> 32), 1)) << 32;
      to_first[k] = odd != 0 ? got : even;
      to_second[k] = odd != 0 ? words[2 * i + 2 + k] : got;
    }
    Pair piece;
    piece.x = to_first[0];
    piece.y = to_first[1];
    if (first != no_place) reinterpret_cast<Pair*>(sums + first)[i + odd] = piece;
    piece.x = to_second[0];
    piece.y = to_second[1];
    if (second != no_place) reinterpret_cast<Pair*>(sums + second)[i + odd] = piece;
  }
}

// Products of the inversion are kept in [0, 2 p): the final subtraction of each would be a sixth of its instructions.
SNL_DEVICE Fp lazy_product(const Fp& a, const Fp& b) { return limbs32::mul_lazy(a, b); }
SNL_DEVICE Fp2<Fp> lazy_product(const Fp2<Fp>& a, const Fp2<Fp>& b) { return a * b; }
SNL_DEVICE Fp reduced(const Fp& a) { return Fp{limbs32::join(limbs32::reduce_once<Fp>(limbs32::split(a.v)))}; }

SNL_DEVICE F y_of(const AffinePoint* p, bool negate) {
  const F y = load(&p->y);
  return negate ? -y : y;
}

// What an addition comes to when an operand is infinity or the x are equal.
enum class Case { Formula, First, Second, Infinity };

// That, and denominator and numerator of a slope for which the formula holds (doubling), or 1 for both.
struct Special {
  F denominator, numerator;
  Case outcome;
};

// By value: a variable whose address goes into a call lives in local memory, and is written there in every addition.
SNL_CALL Special special_case(Operands o) {
  const F x1 = load(&o.first->x), x2 = load(&o.second->x);
  Special special{F::one(), F::one(), Case::Formula};
  if (x1.is_zero() || x2.is_zero()) {
    special.outcome = x1.is_zero() ? Case::Second : Case::First;
    return special;
  }
  const F y1 = y_of(o.first, o.negate_first), y2 = y_of(o.second, o.negate_second);
  if (!(y1 == y2) || y1.is_zero()) {
    special.outcome = Case::Infinity;
    return special;
  }
  const F square = x1.sqr();
  special.denominator = y1.dbl();
  special.numerator = square.dbl() + square;
  return special;
}

// The points of an addition are two dependent loads away, at random addresses. So places are read ahead, and in
// `denominators`, where registers are free, the coordinates too.

// Thread t multiplies the denominators of the additions t, t + threads, ... up.
template <class Round>
SNL_DEVICE void denominators(const Round& round, u64 n, u32 threads, Pair* prefixes, Pair* products) {
  const u64 t = global_index(), last = n - 1;
  if (t >= threads) return;
  Fp product = Fp::one();
  Difference difference = round.difference(round.source(t < n ? t : last));
  auto next = round.source(t + threads < n ? t + threads : last);
  SNL_ROLLED for (u64 a = t; a < n; a += threads) {
    const Difference next_difference = round.difference(next);
    next = round.source(a + 2 * u64{threads} < n ? a + 2 * u64{threads} : last);
    F d = difference.value();
    if (difference.special(d)) d = special_case(round.operands(round.places(a))).denominator;
    const Fp factor = norm(d);
    if (a == t) {
      product = factor;
    } else {
      store_planes(prefixes, n, a, product);
      product = lazy_product(product, factor);
    }
    difference = next_difference;
  }
  store_planes(products, threads, t, reduced(product));
}

// The same additions from the last to the first. All lanes of a warp do their loops together: `threads` is a multiple
// of 32, and a lane that has no addition in the last step skips it. next_denominators: (n + 1) / 2 of them.
template <class Round>
SNL_DEVICE void additions(const Round& round, u64 n, u32 threads, const Pair* prefixes, const Pair* inverses,
                          Pair* next_denominators) {
  const u64 t = global_index(), last = n - 1;
  if (t >= threads) return;
  Fp running = load_planes<Fp>(inverses, threads, t);
  u64 a = t + last / threads * threads;
  auto next = round.places(a < n ? a : last);
  SNL_ROLLED for (;; a -= threads) {
    const auto at = next;
    next = round.places(a >= threads ? a - threads : 0);
    AffinePoint sum = AffinePoint::infinity();
    if (a < n) {
      const Operands o = round.operands(at);
      const F x1 = load(&o.first->x), x2 = load(&o.second->x);
      F d = x2 - x1, slope;
      Case outcome = Case::Formula;
      const bool special = d.is_zero() | x1.is_zero() | x2.is_zero();
      if (special) {
        const Special found = special_case(o);
        d = found.denominator;
        slope = found.numerator;
        outcome = found.outcome;
      }
      Fp inverse = running;
      if (a != t) {
        inverse = lazy_product(running, load_planes<Fp>(prefixes, n, a));
        running = lazy_product(running, norm(d));
      }
      const F y1 = y_of(o.first, o.negate_first);
      if (!special) slope = y_of(o.second, o.negate_second) - y1;
      slope = lazy_product(slope, inverse_from_norm(d, inverse));
      sum.x = slope.sqr() - x1 - x2;
      sum.y = slope * (x1 - sum.x) - y1;
      if (outcome != Case::Formula) {
        sum = AffinePoint::infinity();
        if (outcome == Case::First) sum = AffinePoint{x1, y1};
        if (outcome == Case::Second) sum = AffinePoint{x2, y_of(o.second, o.negate_second)};
      }
    }
    store_by_pairs(round.sums, a < n ? round.place(at) : no_place, sum);
    const F other_x = of_next_lane(sum.x);
    if (round.makes_denominator(at) && a < n) {
      const bool infinite = sum.x.is_zero() | other_x.is_zero();
      store_planes(next_denominators, (n + 1) / 2, a / 2, infinite ? F::zero() : other_x - sum.x);
    }
    if (a == t) break;
  }
}

}  // namespace

// Blocks a multiprocessor: 102 or 128 registers in G1, 168 and 255 in G2.
#if SNL_GROUP == 1
constexpr int denominators_blocks = 4, additions_blocks = sizeof(F) <= 32 ? 5 : 4;
#else
constexpr int denominators_blocks = 3, additions_blocks = 2;
#endif

SNL_KERNEL(128, denominators_blocks)
first_denominators(const uint2* list, const u32* places, const AffinePoint* points, AffinePoint* sums, u64 n,
                   u32 threads, Pair* prefixes, Pair* products) {
  denominators(FirstRound{list, places, points, sums}, n, threads, prefixes, products);
}
SNL_KERNEL(128, additions_blocks)
first_additions(const uint2* list, const u32* places, const AffinePoint* points, AffinePoint* sums, u64 n, u32 threads,
                const Pair* prefixes, const Pair* inverses, Pair* next_denominators) {
  additions(FirstRound{list, places, points, sums}, n, threads, prefixes, inverses, next_denominators);
}
// left: the denominators that the round before has left, of n_before additions.
SNL_KERNEL(128, denominators_blocks)
later_denominators(const u32* list, AffinePoint* sums, u32 stride, const u32* sources, const Pair* left, u64 n_before,
                   u64 n, u32 threads, Pair* prefixes, Pair* products) {
  denominators(LaterRound{list, sources, sums, stride, left, (n_before + 1) / 2}, n, threads, prefixes, products);
}
SNL_KERNEL(128, additions_blocks)
later_additions(const u32* list, AffinePoint* sums, u32 stride, u64 n, u32 threads, const Pair* prefixes,
                const Pair* inverses, Pair* next_denominators) {
  additions(LaterRound{list, nullptr, sums, stride, nullptr, 0}, n, threads, prefixes, inverses, next_denominators);
}

// The entry that the first round leaves over in a bucket of an odd number of them. `begin` of a bucket as in digits.cu.
SNL_KERNEL(128, 4)
copy_odd_entries(const u32* start, const u32* end, u32 n_buckets, const u32* values, const AffinePoint* points,
                 AffinePoint* sums) {
  const u64 b = global_index();
  if (b >= n_buckets) return;
  const u32 s = start[b], m = end[b] - s;
  if ((m & 1) == 0) return;
  const u32 v = values[s + m - 1];
  const AffinePoint* p = points + (v & ~flag);
  AffinePoint* out = sums + ((static_cast<u64>(s) + b + 1) >> 1) + m / 2;
  store(&out->x, load(&p->x));
  store(&out->y, y_of(p, (v & flag) != 0));
}

}  // namespace SNL_ISA
}  // namespace snarkline
