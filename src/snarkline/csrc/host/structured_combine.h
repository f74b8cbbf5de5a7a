// Linear combinations over the slots of up to 64 instances, for one curve and instruction set.
#pragma once

#include <algorithm>
#include <cstring>

#include "../common/curves.h"
#include "lanes.h"
#if SNL_ISA_ifma
#include "ifma.h"
#endif

namespace snarkline {
inline namespace SNL_ISA {

template <class Fr>
struct SmallElements {
  Fr of[256];  // of the integers -128 ... 127
  SmallElements() {
    of[128] = Fr::zero();
    for (int i = 1; i < 128; i++) of[128 + i] = of[127 + i] + Fr::one();
    for (int i = 1; i <= 128; i++) of[128 - i] = of[129 - i] - Fr::one();
  }
};

template <class Fr>
const Fr* small_elements() {
  static const SmallElements<Fr> table;
  return table.of;
}

// An integer of about 254 bits from its sums of eight digits: one product, and none below 128.
template <class Fr>
Fr from_digits(const i32 (*sums)[64], u32 groups, u32 lane) {
  if (groups <= 8) {
    __int128 total = 0;
    for (u32 g = groups; g-- > 0;) total = (total << 8) + sums[g][lane];
    if (total >= -128 && total < 128) return small_elements<Fr>()[128 + static_cast<int>(total)];
  }
  Fr low{};
  __int128 carry = 0;
  for (u32 limb = 0; limb < 4; limb++) {
    for (u32 k = 0; k < 8 && 8 * limb + k < groups; k++) carry += (__int128)sums[8 * limb + k][lane] << (8 * k);
    low.v.limb[limb] = static_cast<u64>(carry);
    carry >>= 64;
  }
  Int<4> rest = low.v;
  while (!sub_in_place(rest, Fr::modulus)) low.v = rest;
  Fr out = low * Fr{Fr::r2};
  if (carry != 0) {  // the part from 2^256 on, with its sign
    const Fr part = Fr::from_u64(static_cast<u64>(carry < 0 ? -carry : carry)) * Fr{Fr::r2};
    out = carry < 0 ? out - part : out + part;
  }
  return out;
}

template <class Fr>
Fr coefficient_at(const Fr* coefficients, u32 number) {
  return number == coefficient_one ? Fr::one() : number == coefficient_minus_one ? -Fr::one() : coefficients[number];
}

#if SNL_ISA_ifma
#include "ifma_begin.h"
// Adds sum_i coefficient_i w_i for eight lanes: one reduction for up to 16 products. Words of the accumulator stay
// below 5 (2 * 16 + 2) 2^52 < 2^60, and the result below (1 + 16 p / 2^260) p < 2 p.
inline constexpr u32 terms_at_once = 16;

template <class Fr>
using Words8 = typename Field8<Fr>::Words;

template <class Fr>
void add_products(const Words8<Fr>* const* coefficients, const u64* const* values, u32 n, u64* out) {
  using F8 = Field8<Fr>;
  F8 w[terms_at_once];
  for (u32 i = 0; i < n; i++) w[i] = F8::load(values[i]);
  __m512i t[F8::W + 1];
  SNL_UNROLL for (int k = 0; k <= F8::W; k++) t[k] = _mm512_setzero_si512();
  SNL_UNROLL for (int word = 0; word < F8::W; word++) {
    for (u32 i = 0; i < n; i++) F8::step_mul(t, w[i], F8::splat(coefficients[i]->w[word]));
    F8::step_reduce(t);
  }
  F8::add(F8::canonical(F8::template finish<true>(t)), F8::load(out)).store(out);
}
// x[i] *= y[i] for eight lanes. One factor is taken times 2^4, which makes up for the radix 2^260.
template <class Fr>
void multiply_eight(u64* x, const u64* y) {
  using F8 = Field8<Fr>;
  F8 a = F8::load(x);
  SNL_UNROLL for (int k = 0; k < F8::W; k++) a.w[k] = _mm512_slli_epi64(a.w[k], 4);
  a.normalise();
  F8::mul(a, F8::load(y)).store(x);
}
#include "ifma_end.h"
#endif

// x[lane] *= y[lane] for the lanes [begin, end).
template <class Fr>
void multiply_lanes(Fr* x, const Fr* y, u32 begin, u32 end) {
#if SNL_ISA_ifma
  if (begin == 0 && end % 8 == 0) {
    for (u32 lane = 0; lane < end; lane += 8) {
      multiply_eight<Fr>(reinterpret_cast<u64*>(x + lane), reinterpret_cast<const u64*>(y + lane));
    }
    return;
  }
#endif
  for (u32 lane = begin; lane < end; lane++) x[lane] *= y[lane];
}

// A template's combinations, with its coefficients in the form that products take them in.
template <class Fr>
class Combiner {
 public:
  Combiner(const TemplatePlan& plan, const LaneKernels& lanes)
      : plan_(plan), coefficients_(reinterpret_cast<const Fr*>(plan.coefficients.data())), lanes_(lanes) {
#if SNL_ISA_ifma
    const usize n = plan.n_wides != 0 ? plan.coefficients.size() / 4 : 0;
    for (usize i = 0; i < n; i++) wide_.push_back(words_of(coefficients_[i]));
    unit_ = words_of(Fr::one());
    minus_unit_ = words_of(-Fr::one());
#endif
  }

  const TemplatePlan& plan() const { return plan_; }
  const LaneKernels& lanes() const { return lanes_; }
  Fr coefficient(u32 number) const { return coefficient_at(coefficients_, number); }

  // out[lane] for the lanes [begin, end) of a group. `out` has room for 64.
  void combine(const Combination& k, const LaneGroup& group, u32 begin, u32 end, Fr* out) const {
    std::fill(out + begin, out + end, k.constant == no_coefficient ? Fr::zero() : coefficient(k.constant));
    if (k.layers != 0) add_digits(k, group, begin, end, out);
    add_terms(k, group, begin, end, out);
    const u32* p = plan_.words.data() + k.masked;
    for (u32 i = 0; i < k.n_masked; i++, p += 2) {
      const u64 bits = group.bits[usize{p[0]} * group.words];
      const Fr coefficient = this->coefficient(p[1]);
      for (u32 lane = begin; lane < end; lane++) {
        Fr term;
        for (int limb = 0; limb < Fr::N; limb++) {
          term.v.limb[limb] = coefficient.v.limb[limb] & (0 - (bits >> lane & 1));
        }
        out[lane] += term;
      }
    }
  }

 private:
  void add_digits(const Combination& k, const LaneGroup& group, u32 begin, u32 end, Fr* out) const {
    alignas(64) i32 sums[32][64];
    std::memset(sums, 0, k.groups * sizeof(sums[0]));
    const u32* p = plan_.words.data() + k.digits;
    for (u32 layer = 0; layer < k.layers; layer++) p = lanes_.digit_sums(p, group.bits, group.words, sums);
    for (u32 lane = begin; lane < end; lane++) out[lane] += from_digits<Fr>(sums, k.groups, lane);
  }
  void add_terms(const Combination& k, const LaneGroup& group, u32 begin, u32 end, Fr* out) const {
    const u32* p = plan_.words.data() + k.terms;
#if SNL_ISA_ifma
    if (begin == 0 && end % 8 == 0 && needs_products(p, k.n_terms)) {
      add_terms_by_eight(p, k.n_terms, group, end, out);
      return;
    }
#endif
    for (u32 i = 0; i < k.n_terms; i++, p += 2) {
      const Fr* w = reinterpret_cast<const Fr*>(group.wides) + usize{p[0]} * group.lanes;
      if (p[1] == coefficient_one) {
        for (u32 lane = begin; lane < end; lane++) out[lane] += w[lane];
      } else if (p[1] == coefficient_minus_one) {
        for (u32 lane = begin; lane < end; lane++) out[lane] -= w[lane];
      } else {
        for (u32 lane = begin; lane < end; lane++) out[lane] += coefficients_[p[1]] * w[lane];
      }
    }
  }
#if SNL_ISA_ifma
  static bool needs_products(const u32* p, u32 n) {
    for (u32 i = 0; i < n; i++) {
      if (p[2 * i + 1] < coefficient_minus_one) return true;
    }
    return false;
  }
  static Words8<Fr> words_of(const Fr& f) {
    const Int<4> v = Field8<Fr>::widen(f).v;
    const auto& limb = v.limb;
    constexpr u64 mask = Field8<Fr>::word_mask;
    return {{limb[0] & mask, (limb[0] >> 52 | limb[1] << 12) & mask, (limb[1] >> 40 | limb[2] << 24) & mask,
             (limb[2] >> 28 | limb[3] << 36) & mask, limb[3] >> 16}};
  }
  void add_terms_by_eight(const u32* p, u32 n, const LaneGroup& group, u32 end, Fr* out) const {
    const Words8<Fr>* coefficients[terms_at_once];
    const u64* values[terms_at_once];
    for (u32 first = 0; first < n; first += terms_at_once) {
      const u32 count = std::min(terms_at_once, n - first);
      for (u32 i = 0; i < count; i++) {
        const u32 number = p[2 * (first + i) + 1];
        coefficients[i] = number == coefficient_one         ? &unit_
                          : number == coefficient_minus_one ? &minus_unit_
                                                            : &wide_[number];
        values[i] = group.wides + 4 * (usize{p[2 * (first + i)]} * group.lanes);
      }
      for (u32 lane = 0; lane < end; lane += 8) {
        add_products<Fr>(coefficients, values, count, reinterpret_cast<u64*>(out + lane));
        for (u32 i = 0; i < count; i++) values[i] += 32;
      }
    }
  }
  std::vector<Words8<Fr>> wide_;
  Words8<Fr> unit_, minus_unit_;
#endif
  const TemplatePlan& plan_;
  const Fr* coefficients_;
  const LaneKernels& lanes_;
};

}  // namespace SNL_ISA
}  // namespace snarkline
