// The table of kernels for one curve, compiled once for each instruction set. Everything above the templates (the
// bindings) sees this table only.
//
// Arrays are little-endian 64-bit limbs. Scalars and Fr elements: 4 limbs. Points are affine, Montgomery form, x then
// y, (c0, c1) for G2; infinity is all zero (0, 0 is on neither curve). Sizes are checked by the caller. The points of
// msm and first_bad_point may lie at any address (a key mapped from its file): they are read through load_affine.
#pragma once

#include "../common/int.h"
#include "exec.h"

namespace snarkline {

enum class Group : int { G1 = 0, G2 = 1 };
enum class Op : int { Add = 0, Sub = 1, Mul = 2 };
enum class Form : int { Canonical = 0, Montgomery = 1 };
inline constexpr usize npos = ~usize{0};

struct FieldKernels {
  int limbs;
  int two_adicity;
  const u64* modulus;                                                     // canonical
  u64 generator;                                                          // multiplicative generator
  void (*from_canonical)(u64* out, const u64* in, usize n, const Exec&);  // out may be in
  void (*to_canonical)(u64* out, const u64* in, usize n, const Exec&);
  usize (*first_not_below_modulus)(const u64* in, usize n, const Exec&);  // npos if none
  // b_stride: 1, or 0 to use the one element b for every a. out may be a or b.
  void (*pointwise)(Op, u64* out, const u64* a, const u64* b, usize b_stride, usize n, const Exec&);
  void (*batch_inverse)(u64* a, usize n, const Exec&);                                 // 0 stays 0
  void (*powers)(u64* out, const u64* first, const u64* ratio, usize n, const Exec&);  // out[i] = first * ratio^i
};

// A sparse matrix by rows. value[i] indexes `coefficients`, unique values in Montgomery form.
struct SparseView {
  usize rows, columns, entries;
  const u64* row_start;  // rows + 1
  const u32* column;     // entries
  const u32* value;      // entries
  const u64* coefficients;
  usize n_coefficients;
};

struct MsmJob {
  Group group;
  const u64* points;  // n of them
  u64* result;        // one affine point
};

struct CurveKernels {
  const char* name;
  FieldKernels fr, fp;

  // In-place transform of 2^log_n elements, natural order in and out. `root` is a primitive 2^log_n-th root of unity,
  // Montgomery form. Forward: out[i] = sum_j in[j] * (shift * root^i)^j; inverse undoes it. shift null: 1.
  void (*ntt)(u64* data, int log_n, const u64* root, const u64* shift, bool inverse, const Exec&);
  // In place: evaluations on the domain of `root` become evaluations of the same polynomial on shift times the domain
  // (inverse transform, powers of shift, forward transform; no reordering in between).
  void (*coset_evaluations)(u64* data, int log_n, const u64* root, const u64* shift, const Exec&);
  // out = a * b - c
  void (*mul_sub)(u64* out, const u64* a, const u64* b, const u64* c, usize n, const Exec&);
  // out[r] = sum over row r of value * w[column]: `rows` elements, in Montgomery form whatever the form of w.
  void (*spmv)(u64* out, const SparseView&, const u64* w, Form w_form, const Exec&);
  // out[column] = sum over rows r of value * v[r]: `columns` elements, in the form of v.
  void (*spmv_transposed)(u64* out, const SparseView&, const u64* v, const Exec&);

  // Sum scalars[i] * points[i] for every job; all jobs share the scalars, which are in [0, r), canonical or Montgomery.
  void (*msm)(const MsmJob* jobs, usize n_jobs, const u64* scalars, usize n, bool montgomery, const Exec&);
  // out[i] = scalars[i] * base, scalars canonical.
  void (*fixed_base)(Group, u64* out, const u64* base, const u64* scalars, usize n, const Exec&);
  // Index of the first point with a coordinate not below q, off the curve or (if asked) outside the order-r subgroup;
  // npos if none. Infinity passes.
  usize (*first_bad_point)(Group, const u64* points, usize n, bool subgroup, const Exec&);
  const u64* (*generator)(Group);

  // Product of e(p[i], q[i]) == 1, one final exponentiation. Infinity contributes 1.
  bool (*pairing_product_is_one)(const u64* p, const u64* q, usize n, const Exec&);
  // One pairing, as 12 Fp coefficients over Fp2's (1, u), Fp6's (1, v, v^2), Fp12's (1, w), innermost first.
  void (*pairing)(u64* out, const u64* p, const u64* q, const Exec&);
};

// Kernels of one area are compiled once for each curve and instruction set, under a name of their own: in the files
// *_kernels.cpp, SNL_KERNELS(ntt) names the function that enters that area's kernels in a table.
#define SNL_JOIN_(a, b, c) a##_##b##_##c
#define SNL_JOIN(a, b, c) SNL_JOIN_(a, b, c)
#define SNL_KERNELS(area) SNL_JOIN(area, SNL_ISA, SNL_CURVE)

#define SNL_TABLES(isa)                              \
  const CurveKernels& SNL_JOIN(table, isa, Bn254)(); \
  const CurveKernels& SNL_JOIN(table, isa, Bls12_381)();
SNL_TABLES(portable)
SNL_TABLES(adx)
SNL_TABLES(ifma)
#undef SNL_TABLES

}  // namespace snarkline
