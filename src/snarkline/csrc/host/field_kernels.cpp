// Element-wise operations on arrays of field elements.
#include "../common/curves.h"
#include "batch_affine.h"
#include "kernels.h"
#include "span.h"

#include <vector>

#include "field_lanes.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr usize grain = 4096;  // 4,096 products take 15 (with IFMA) to 200 us

template <class F>
F* elements(u64* limbs) {
  return reinterpret_cast<F*>(limbs);
}
template <class F>
const F* elements(const u64* limbs) {
  return reinterpret_cast<const F*>(limbs);
}

template <class F>
void from_canonical(u64* out, const u64* in, usize n, const Exec& exec) {
  SNL_SPAN("field.from_canonical");
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    usize i = begin;
#if SNL_ISA_ifma
    i = multiply_eights<F>(out, in, F{F::r2}, begin, end);
#endif
    for (; i < end; i++) elements<F>(out)[i] = F::from_canonical(elements<F>(in)[i].v);
  });
}

template <class F>
void to_canonical(u64* out, const u64* in, usize n, const Exec& exec) {
  SNL_SPAN("field.to_canonical");
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    usize i = begin;
#if SNL_ISA_ifma
    i = multiply_eights<F>(out, in, F{Int<F::N>{{1}}}, begin, end);
#endif
    for (; i < end; i++) elements<F>(out)[i].v = elements<F>(in)[i].to_canonical();
  });
}

template <class F>
usize first_not_below_modulus(const u64* in, usize n, const Exec& exec) {
  SNL_SPAN("field.range");
  return first_index(exec, n, 8 * grain, [=](usize begin, usize end) {
    for (usize i = begin; i < end; i++) {
      if (!less(elements<F>(in)[i].v, F::modulus)) return i;
    }
    return npos;
  });
}

template <class F, class Operation>
void pointwise(u64* out, const u64* a, const u64* b, usize b_stride, usize n, const Exec& exec, Operation operation) {
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    for (usize i = begin; i < end; i++) {
      elements<F>(out)[i] = operation(elements<F>(a)[i], elements<F>(b)[i * b_stride]);
    }
  });
}

template <class F>
void multiply(u64* out, const u64* a, const u64* b, usize b_stride, usize n, const Exec& exec) {
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    usize i = begin;
#if SNL_ISA_ifma
    i = b_stride == 0 ? multiply_eights<F>(out, a, *elements<F>(b), begin, end)
                      : multiply_eights<F>(out, a, b, begin, end);
#endif
    for (; i < end; i++) elements<F>(out)[i] = elements<F>(a)[i] * elements<F>(b)[i * b_stride];
  });
}

template <class F>
void pointwise(Op op, u64* out, const u64* a, const u64* b, usize b_stride, usize n, const Exec& exec) {
  SNL_SPAN("field.pointwise");
  // A lone right operand may lie inside `out`, so it is copied.
  const F lone = b_stride == 0 && n > 0 ? *elements<F>(b) : F::zero();
  if (b_stride == 0) b = lone.v.limb;
  switch (op) {
    case Op::Add:
      return pointwise<F>(out, a, b, b_stride, n, exec, [](const F& x, const F& y) { return x + y; });
    case Op::Sub:
      return pointwise<F>(out, a, b, b_stride, n, exec, [](const F& x, const F& y) { return x - y; });
    case Op::Mul:
      return multiply<F>(out, a, b, b_stride, n, exec);
  }
}

template <class F>
void mul_sub(u64* out, const u64* a, const u64* b, const u64* c, usize n, const Exec& exec) {
  SNL_SPAN("field.mul_sub");
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    usize i = begin;
#if SNL_ISA_ifma
    i = multiply_subtract_eights<F>(out, a, b, c, begin, end);
#endif
    for (; i < end; i++) elements<F>(out)[i] = elements<F>(a)[i] * elements<F>(b)[i] - elements<F>(c)[i];
  });
}

template <class F>
void batch_inverse(u64* a, usize n, const Exec& exec) {
  SNL_SPAN("field.inverse");
  parallel_ranges(exec, n, grain / 4, [=](usize begin, usize end) {
    std::vector<F> scratch(end - begin);
    invert_batch(elements<F>(a) + begin, scratch.data(), end - begin);
  });
}

template <class F>
void powers(u64* out, const u64* first, const u64* ratio, usize n, const Exec& exec) {
  SNL_SPAN("field.powers");
  const F f = *elements<F>(first), r = *elements<F>(ratio);
  parallel_ranges(exec, n, grain, [=](usize begin, usize end) {
    F x = f * r.pow(Int<1>{{begin}});
    for (usize i = begin; i < end; i++, x *= r) elements<F>(out)[i] = x;
  });
}

template <class P>
FieldKernels field_kernels() {
  using F = Field<P>;
  FieldKernels k{};
  k.limbs = F::N;
  k.two_adicity = Domain<F>::two_adicity;
  k.modulus = F::modulus.limb;
  k.generator = P::generator;
  k.from_canonical = from_canonical<F>;
  k.to_canonical = to_canonical<F>;
  k.first_not_below_modulus = first_not_below_modulus<F>;
  k.pointwise = pointwise<F>;
  k.batch_inverse = batch_inverse<F>;
  k.powers = powers<F>;
  return k;
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(field)(CurveKernels& k) {
  k.name = SNL_CURVE::name;
  k.fr = field_kernels<SNL_CURVE::FrParams>();
  k.fp = field_kernels<SNL_CURVE::FpParams>();
  k.mul_sub = mul_sub<SNL_CURVE::Fr>;
}

}  // namespace snarkline
