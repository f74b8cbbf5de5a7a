// Bucket sums by rounds of affine additions: in each round the points of every bucket are added in pairs. An affine
// addition costs 2M + 1S and one inversion, and all inversions of a round are made together, at three products each:
// 5M + 1S in all, where an XYZZ addition costs 8M + 2S.
//
// A round is three steps: `denominators` multiplies the denominators x2 - x1 of K additions of each thread up, the
// products are inverted (inverse.cu), `additions` takes the inverses apart on the way back and adds. In G2 the
// denominators' norms are inverted.
//
// Infinity is x = 0: points of both groups with x = 0 would have order 3. A sum of the first round is written to
// `sums`, a later one over its first operand.
#include "group.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 sign_bit = 1u << 31;

// Where an addition takes its operands and leaves its result.
struct Operands {
  const AffinePoint *first, *second;
  bool negate_first, negate_second;
  AffinePoint* result;
};

// The first round reads the table of points through the sorted values.
struct FirstRound {
  struct Places {
    u32 first, second, sum;
  };
  const uint2* list;
  const u32* values;
  const AffinePoint* points;
  AffinePoint* sums;

  SNL_DEVICE Places places(u64 a) const {
    const uint2 item = list[a];
    return Places{values[item.x], values[item.x + 1], item.y};
  }
  SNL_DEVICE Operands operands(const Places& at) const {
    return Operands{points + (at.first & ~sign_bit), points + (at.second & ~sign_bit), (at.first & sign_bit) != 0,
                    (at.second & sign_bit) != 0, sums + at.sum};
  }
};

struct LaterRound {
  using Places = u32;
  const u32* list;
  AffinePoint* sums;
  u32 stride;

  SNL_DEVICE Places places(u64 a) const { return list[a]; }
  SNL_DEVICE Operands operands(const Places& at) const {
    AffinePoint* p = sums + at;
    return Operands{p, p + stride, false, false, p};
  }
};

SNL_DEVICE F y_of(const AffinePoint* p, bool negate) {
  const F y = load(&p->y);
  return negate ? -y : y;
}

// What an addition comes to when an operand is infinity or the x are equal.
enum class Case { Formula, First, Second, Infinity };

// Replaces denominator and numerator of the slope, so that the formula holds (doubling), or 1 for both.
SNL_CALL Case special_case(const Operands& o, F& denominator, F& numerator) {
  const F x1 = load(&o.first->x), x2 = load(&o.second->x);
  denominator = numerator = F::one();
  if (x1.is_zero()) return Case::Second;
  if (x2.is_zero()) return Case::First;
  const F y1 = y_of(o.first, o.negate_first), y2 = y_of(o.second, o.negate_second);
  if (!(y1 == y2) || y1.is_zero()) return Case::Infinity;
  const F square = x1.sqr();
  denominator = y1.dbl();
  numerator = square.dbl() + square;
  return Case::Formula;
}

// The points of an addition are two or three dependent loads away, at random addresses. So places are read ahead, and
// in `denominators`, where registers are free, the coordinates too.

// Thread t multiplies the denominators of the additions t, t + threads, ... up.
template <class Round>
SNL_DEVICE void denominators(const Round& round, u64 n, u32 threads, Pair* prefixes, Pair* products) {
  const u64 t = global_index();
  if (t >= threads || t >= n) return;
  const u64 last = n - 1;
  Fp product = Fp::one();
  Operands o = round.operands(round.places(t));
  F x1 = load(&o.first->x), x2 = load(&o.second->x);
  auto next = round.places(t + threads < n ? t + threads : last);
  SNL_ROLLED for (u64 a = t; a < n; a += threads) {
    const Operands next_o = round.operands(next);
    const F next_x1 = load(&next_o.first->x), next_x2 = load(&next_o.second->x);
    next = round.places(a + 2 * u64{threads} < n ? a + 2 * u64{threads} : last);
    F d = x2 - x1;
    if (d.is_zero() | x1.is_zero() | x2.is_zero()) {
      F numerator;
      special_case(o, d, numerator);
    }
    const Fp factor = norm(d);
    if (a == t) {
      product = factor;
    } else {
      store_planes(prefixes, n, a, product);
      product = product * factor;
    }
    o = next_o;
    x1 = next_x1;
    x2 = next_x2;
  }
  store_planes(products, threads, t, product);
}

template <class Round>
SNL_DEVICE void additions(const Round& round, u64 n, u32 threads, const Pair* prefixes, const Pair* inverses) {
  const u64 t = global_index();
  if (t >= threads || t >= n) return;
  Fp running = load_planes<Fp>(inverses, threads, t);
  u64 a = t + (n - t - 1) / threads * threads;
  auto next = round.places(a);
  SNL_ROLLED for (;; a -= threads) {
    const Operands o = round.operands(next);
    next = round.places(a != t ? a - threads : t);
    const F x1 = load(&o.first->x), x2 = load(&o.second->x);
    F d = x2 - x1, slope;
    Case outcome = Case::Formula;
    const bool special = d.is_zero() | x1.is_zero() | x2.is_zero();
    if (special) outcome = special_case(o, d, slope);
    Fp inverse = running;
    if (a != t) {
      inverse = running * load_planes<Fp>(prefixes, n, a);
      running = running * norm(d);
    }
    const F y1 = y_of(o.first, o.negate_first);
    if (!special) slope = y_of(o.second, o.negate_second) - y1;
    slope = slope * inverse_from_norm(d, inverse);
    AffinePoint sum;
    sum.x = slope.sqr() - x1 - x2;
    sum.y = slope * (x1 - sum.x) - y1;
    if (outcome != Case::Formula) {
      sum = AffinePoint::infinity();
      if (outcome == Case::First) sum = AffinePoint{x1, y1};
      if (outcome == Case::Second) sum = AffinePoint{x2, y_of(o.second, o.negate_second)};
    }
    store(&o.result->x, sum.x);
    store(&o.result->y, sum.y);
    if (a == t) break;
  }
}

}  // namespace

// Blocks a multiprocessor: 128 registers in G1, 168 and 255 in G2.
#if SNL_GROUP == 1
#define SNL_DENOMINATORS 4
#define SNL_ADDITIONS 4
#else
#define SNL_DENOMINATORS 3
#define SNL_ADDITIONS 2
#endif

SNL_KERNEL(128, SNL_DENOMINATORS)
first_denominators(const uint2* list, const u32* values, const AffinePoint* points, AffinePoint* sums, u64 n,
                   u32 threads, Pair* prefixes, Pair* products) {
  denominators(FirstRound{list, values, points, sums}, n, threads, prefixes, products);
}
SNL_KERNEL(128, SNL_ADDITIONS)
first_additions(const uint2* list, const u32* values, const AffinePoint* points, AffinePoint* sums, u64 n, u32 threads,
                const Pair* prefixes, const Pair* inverses) {
  additions(FirstRound{list, values, points, sums}, n, threads, prefixes, inverses);
}
SNL_KERNEL(128, SNL_DENOMINATORS)
later_denominators(const u32* list, AffinePoint* sums, u32 stride, u64 n, u32 threads, Pair* prefixes, Pair* products) {
  denominators(LaterRound{list, sums, stride}, n, threads, prefixes, products);
}
SNL_KERNEL(128, SNL_ADDITIONS)
later_additions(const u32* list, AffinePoint* sums, u32 stride, u64 n, u32 threads, const Pair* prefixes,
                const Pair* inverses) {
  additions(LaterRound{list, sums, stride}, n, threads, prefixes, inverses);
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
  const AffinePoint* p = points + (v & ~sign_bit);
  AffinePoint* out = sums + ((static_cast<u64>(s) + b + 1) >> 1) + m / 2;
  store(&out->x, load(&p->x));
  store(&out->y, y_of(p, (v & sign_bit) != 0));
}

}  // namespace SNL_ISA
}  // namespace snarkline
