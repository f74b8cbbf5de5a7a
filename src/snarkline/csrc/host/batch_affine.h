// Affine additions in batches, with one field inversion for each batch.
#pragma once

#include <vector>

#include "../common/point.h"

namespace snarkline {
inline namespace SNL_ISA {

// x[i] = 1 / x[i], 0 stays 0, by Montgomery's trick: 1I + 3M an element. Montgomery, "Speeding the Pollard and elliptic
// curve methods of factorization" (1987), section 10.3.1. `before` is scratch of n elements.
template <class F>
void invert_batch(F* x, F* before, usize n) {
  F product = F::one();
  for (usize i = 0; i < n; i++) {
    before[i] = product;
    if (!x[i].is_zero()) product *= x[i];
  }
  F inverse = product.inverse();
  for (usize i = n; i-- > 0;) {
    if (x[i].is_zero()) continue;
    const F next = inverse * x[i];
    x[i] = inverse * before[i];
    inverse = next;
  }
}

// Sums of affine points, complete: equal, opposite and infinite operands give the right sum. 1I + 6M + 1S a sum, where
// an XYZZ addition takes 8M + 2S and has a point to normalise at the end.
template <class F>
class AffineAdder {
 public:
  explicit AffineAdder(usize capacity) : slope_(capacity), before_(capacity) {}

  // out(i) = left(i) + right(i) for i < n <= capacity. out(i) may be the same object as left(i) or right(i).
  template <class Out, class Left, class Right>
  void add(usize n, const Out& out, const Left& left, const Right& right) {
    for (usize i = 0; i < n; i++) slope_[i] = denominator(left(i), right(i));
    invert_batch(slope_.data(), before_.data(), n);
    for (usize i = 0; i < n; i++) out(i) = sum(left(i), right(i), slope_[i]);
  }

 private:
  // Of the slope of the line through p and q; zero where the sum needs no slope.
  static F denominator(const Affine<F>& p, const Affine<F>& q) {
    if (p.is_infinity() || q.is_infinity()) return F::zero();
    const F dx = q.x - p.x;
    if (!dx.is_zero()) return dx;
    return p.y == q.y ? p.y.dbl() : F::zero();
  }

  static Affine<F> sum(const Affine<F>& p, const Affine<F>& q, const F& inverse) {
    if (p.is_infinity()) return q;
    if (q.is_infinity()) return p;
    if (inverse.is_zero()) return Affine<F>::infinity();  // q = -p
    F slope;
    if (p.x == q.x) {
      const F xx = p.x.sqr();
      slope = (xx.dbl() + xx) * inverse;
    } else {
      slope = (q.y - p.y) * inverse;
    }
    const F x = slope.sqr() - p.x - q.x;
    return {x, slope * (p.x - x) - p.y};
  }

  std::vector<F> slope_, before_;
};

// out[i] = in[i] in affine coordinates: 1I + 6M + 1S a point.
template <class F>
void normalise(Affine<F>* out, const Xyzz<F>* in, usize n) {
  std::vector<F> inverse(n), before(n);
  for (usize i = 0; i < n; i++) inverse[i] = in[i].zzz;
  invert_batch(inverse.data(), before.data(), n);
  for (usize i = 0; i < n; i++) out[i] = in[i].to_affine(inverse[i]);
}

}  // namespace SNL_ISA
}  // namespace snarkline
