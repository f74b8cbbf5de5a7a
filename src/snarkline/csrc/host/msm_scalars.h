// Scalars of an MSM as pairs of half-length scalars: k = k1 + k2 lambda mod r, where lambda is the eigenvalue of the
// endomorphism (x, y) -> (beta x, y) of y^2 = x^3 + b, on G1 and on G2. Gallant, Lambert, Vanstone, "Faster point
// multiplication on elliptic curves with efficient endomorphisms" (CRYPTO 2001), section 4.
#pragma once

#include "../common/curves.h"
#include "../common/point.h"
#include "exec.h"
#include "span.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace snarkline {
inline namespace SNL_ISA {

// Vectors (a, -m) and (m, b) of determinant r span the lattice {(u, v): u + v lambda = 0 mod r}; so lambda = a / m.
struct Lattice {
  u128 a, b;
  u64 m;
};
template <class Curve>
constexpr Lattice lattice();
template <>
constexpr Lattice lattice<Bn254>() {
  const u128 x = Bn254::seed;
  return {6 * x * x + 2 * x, 6 * x * x + 4 * x + 1, (u64)(2 * x + 1)};
}
template <>
constexpr Lattice lattice<Bls12_381>() {
  const u128 x = Bls12_381::seed;
  return {x * x - 1, x * x, 1};
}

struct HalfScalars {
  u128 k[2];  // k1, k2: two's complement, below 2^126.5 in size for both curves
};

template <class Curve>
class Decomposition {
 public:
  // k in [0, r)
  static HalfScalars split(const Int<4>& k) {
    const u128 c1 = round_times(k, g1), c2 = round_times(k, g2);
    const u128 low = k.limb[0] | (u128)k.limb[1] << 64;
    return {{low - c1 * basis.a - c2 * basis.m, c1 * basis.m - c2 * basis.b}};
  }

  // beta, as the ratio of x-coordinates of lambda P and P.
  template <class F>
  static typename Curve::Fp beta(const Affine<F>& generator) {
    using Fr = typename Curve::Fr;
    const Fr lambda = Fr::from_canonical(integer(basis.a)) * Fr::from_u64(basis.m).inverse();
    return base(multiply(generator, lambda.to_canonical()).to_affine().x * generator.x.inverse());
  }

 private:
  static constexpr Lattice basis = lattice<Curve>();
  static constexpr int precision = 316;

  static constexpr Int<4> integer(u128 x) { return {{(u64)x, (u64)(x >> 64), 0, 0}}; }
  static const typename Curve::Fp& base(const typename Curve::Fp& x) { return x; }
  static const typename Curve::Fp& base(const Fp2<typename Curve::Fp>& x) { return x.c0; }

  // floor(2^precision x / r), below 2^192: x < 2^128 and r > 2^253.
  static constexpr Int<3> scaled_ratio(u128 x) {
    Int<4> rest = integer(x);
    Int<3> quotient{};
    for (int i = 0; i < precision; i++) {
      add_in_place(rest, Int<4>(rest));
      add_in_place(quotient, Int<3>(quotient));
      if (less(rest, Curve::Fr::modulus)) continue;
      sub_in_place(rest, Curve::Fr::modulus);
      quotient.limb[0] |= 1;
    }
    return quotient;
  }
  static constexpr Int<3> g1 = scaled_ratio(basis.b), g2 = scaled_ratio(basis.m);

  // round(k g / 2^precision): the nearest integer to k b / r, or the other one if that is within 2^-60 of half-way.
  static u128 round_times(const Int<4>& k, const Int<3>& g) {
    u64 t[7] = {};
    for (int i = 0; i < 3; i++) {
      u64 carry = 0;
      for (int j = 0; j < 4; j++) t[i + j] = mul_add(t[i + j], k.limb[j], g.limb[i], carry);
      t[i + 4] = carry;
    }
    constexpr int shift = precision - 256;
    const u128 low = t[4] | (u128)t[5] << 64;
    return (low >> shift | (u128)t[6] << (128 - shift)) + (low >> (shift - 1) & 1);
  }
};

// The scalars that are not zero, by kind, in pieces of consecutive ones.
class HalfScalarTable {
 public:
  static constexpr usize piece_size = 8192;

  struct Piece {
    usize begin, end;          // of the scalars, and of this piece's room in the arrays
    usize wide, narrow, ones;  // wide from the front of the room, narrow from its end
  };

  // Scalars in [0, r).
  template <class Curve>
  static HalfScalarTable make(const u64* scalars, usize n, bool montgomery, const Exec& exec) {
    SNL_SPAN("msm.scalars");
    HalfScalarTable t;
    t.halves_.reset(new HalfScalars[n]);
    t.index_.reset(new u32[n]);
    t.ones_.reset(new u32[n]);
    t.pieces_.resize((n + piece_size - 1) / piece_size);
    parallel(exec, t.pieces_.size(), [&](usize i) {
      t.pieces_[i] = {i * piece_size, std::min(n, (i + 1) * piece_size), 0, 0, 0};
      t.fill<Curve>(t.pieces_[i], reinterpret_cast<const typename Curve::Fr*>(scalars), montgomery);
    });
    for (const Piece& p : t.pieces_) {
      t.wide_ += p.wide;
      t.narrow_ += p.narrow;
      t.n_ones_ += p.ones;
    }
    return t;
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  usize wide() const { return wide_; }
  usize narrow() const { return narrow_; }
  usize ones() const { return n_ones_; }

  // |k1| < 2^narrow_bits and k2 = 0 for narrow scalars.
  static constexpr int narrow_bits = 63;

  const HalfScalars& halves(usize i) const { return halves_[i]; }
  u32 index(usize i) const { return index_[i]; }
  u32 one(usize i) const { return ones_[i]; }  // the index, with the top bit for a scalar of -1

 private:
  template <class Curve>
  void fill(Piece& p, const typename Curve::Fr* scalars, bool montgomery) {
    using Fr = typename Curve::Fr;
    for (usize i = p.begin; i < p.end; i++) {
      if (scalars[i].is_zero()) continue;
      const Int<4> k = montgomery ? scalars[i].to_canonical() : scalars[i].v;
      const HalfScalars h = Decomposition<Curve>::split(k);
      const u128 size = (h.k[0] >> 127) ? -h.k[0] : h.k[0];
      if (h.k[1] == 0 && size == 1) {
        ones_[p.begin + p.ones++] = (u32)i | (u32)(h.k[0] >> 127) << 31;
        continue;
      }
      const bool narrow = h.k[1] == 0 && size < (u128)1 << narrow_bits;
      const usize at = narrow ? p.end - ++p.narrow : p.begin + p.wide++;
      halves_[at] = h;
      index_[at] = (u32)i;
    }
    static_assert(sizeof(Fr) == 32);
  }

  std::vector<Piece> pieces_;
  std::unique_ptr<HalfScalars[]> halves_;
  std::unique_ptr<u32[]> index_, ones_;
  usize wide_ = 0, narrow_ = 0, n_ones_ = 0;
};

}  // namespace SNL_ISA
}  // namespace snarkline
