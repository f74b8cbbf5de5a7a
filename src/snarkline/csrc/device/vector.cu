// Vectors over Fr: element-wise operations, powers, products with sparse matrices.
#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

template <class Operation>
SNL_DEVICE void for_each(u64 n, const Operation& operation) {
  for (u64 i = global_index(); i < n; i += grid_size()) operation(i);
}

}  // namespace

SNL_KERNEL(256, 4) add(Fr* out, const Fr* a, const Fr* b, u64 n) {
  for_each(n, [&](u64 i) { store(out + i, load(a + i) + load(b + i)); });
}
SNL_KERNEL(256, 4) multiply(Fr* out, const Fr* a, const Fr* b, u64 n) {
  for_each(n, [&](u64 i) { store(out + i, load(a + i) * load(b + i)); });
}
SNL_KERNEL(256, 4) multiply_subtract(Fr* out, const Fr* a, const Fr* b, const Fr* c, u64 n) {
  for_each(n, [&](u64 i) { store(out + i, load(a + i) * load(b + i) - load(c + i)); });
}
// out = a * factor[0]; with factor 1 (not in Montgomery form) that leaves Montgomery form, with R^2 it enters it.
SNL_KERNEL(256, 4) scale(Fr* out, const Fr* a, const Fr* factor, u64 n) {
  const Fr f = load_constant(factor);
  for_each(n, [&](u64 i) { store(out + i, load(a + i) * f); });
}

// out[i] = first * ratio^i; `squares` holds ratio^(2^k).
SNL_KERNEL(256, 2) powers(Fr* out, const Fr* first, const Fr* squares, u64 n) {
  constexpr u64 run = 16;
  for (u64 begin = global_index() * run; begin < n; begin += grid_size() * run) {
    Fr x = power_from_squares(squares, begin, load_constant(first));
    const Fr ratio = load_constant(squares);
    SNL_ROLLED for (u64 i = begin; i < n && i < begin + run; i++, x *= ratio) store(out + i, x);
  }
}

// 1 into `found` if an element is not below the modulus.
SNL_KERNEL(256, 4) find_unreduced(u32* found, const Fr* v, u64 n) {
  for_each(n, [&](u64 i) {
    if (!less(load(v + i).v, Fr::modulus)) *found = 1;
  });
}

// out[i] = in[index[i]]
SNL_KERNEL(256, 4) gather(Fr* out, const Fr* in, const u32* index, u64 n) {
  for_each(n, [&](u64 i) { store(out + i, load(in + index[i])); });
}

// ---- sparse products: rows in CSR form, `value` indexes `coefficients` (Montgomery form) ----

namespace {

struct Matrix {
  const u64* row_start;
  const u32 *column, *value;
  const Fr* coefficients;
};

// The entries begin, begin + step, ... below `end` of a row. Coefficients 1 and -1 cost no product.
SNL_DEVICE Fr sum_entries(const Matrix& m, const Fr* w, u64 begin, u64 end, u32 step) {
  Fr sum = Fr::zero();
  const Fr one = Fr::one(), minus_one = -Fr::one();
  SNL_ROLLED for (u64 i = begin; i < end; i += step) {
    const Fr x = load_constant(w + m.column[i]);
    if (x.is_zero()) continue;
    const Fr c = load_constant(m.coefficients + m.value[i]);
    if (c == one) {
      sum += x;
    } else if (c == minus_one) {
      sum -= x;
    } else {
      sum += c * x;
    }
  }
  return sum;
}

}  // namespace

// Rows of at most `limit` entries, one thread each; rows from n_rows to n_out are zero. The sums are multiplied by
// factor[0], or left as they are if it is null (the form of w).
SNL_KERNEL(256, 3)
multiply_rows(Fr* out, const u64* row_start, const u32* column, const u32* value, const Fr* coefficients, const Fr* w,
              const Fr* factor, u64 n_rows, u64 n_out, u64 limit) {
  const u64 r = global_index();
  if (r >= n_out) return;
  Fr sum = Fr::zero();
  if (r < n_rows) {
    const u64 begin = row_start[r], end = row_start[r + 1];
    if (end - begin > limit) return;
    sum = sum_entries(Matrix{row_start, column, value, coefficients}, w, begin, end, 1);
    if (factor != nullptr) sum *= load_constant(factor);
  }
  store(out + r, sum);
}

// The rows that are longer, one block each.
SNL_KERNEL(128, 3)
multiply_long_rows(Fr* out, const u64* row_start, const u32* column, const u32* value, const Fr* coefficients,
                   const Fr* w, const Fr* factor, const u32* rows) {
  __shared__ Pair memory[128 * sizeof(Fr) / sizeof(Pair)];
  Fr* sums = reinterpret_cast<Fr*>(memory);
  const u32 r = rows[blockIdx.x];
  const Matrix m{row_start, column, value, coefficients};
  store(sums + threadIdx.x, sum_entries(m, w, row_start[r] + threadIdx.x, row_start[r + 1], blockDim.x));
  __syncthreads();
  for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) store(sums + threadIdx.x, load(sums + threadIdx.x) + load(sums + threadIdx.x + half));
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    Fr sum = load(sums);
    if (factor != nullptr) sum *= load_constant(factor);
    store(out + r, sum);
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
