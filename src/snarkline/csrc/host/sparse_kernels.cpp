// Products of a sparse matrix with a vector. Constraint matrices hold few distinct values, most of them 1 and -1, and
// witnesses are mostly 0 and 1: neither costs a product here.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "../common/curves.h"
#include "kernels.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

enum class Coefficient : u8 { One, MinusOne, Other };

std::vector<Coefficient> classify(const Fr* coefficients, usize n) {
  std::vector<Coefficient> kinds(n);
  const Fr one = Fr::one(), minus_one = -Fr::one();
  for (usize i = 0; i < n; i++) {
    kinds[i] = coefficients[i] == one         ? Coefficient::One
               : coefficients[i] == minus_one ? Coefficient::MinusOne
                                              : Coefficient::Other;
  }
  return kinds;
}

// How many entries ahead the vector's elements are asked for: their addresses are random, a miss takes some 100 ns.
constexpr usize prefetch_distance = 12;

// One row's sum, in two parts: `lifted` is in Montgomery form, `plain` in the form of w.
struct RowSum {
  Fr lifted, plain;

  // w is 0 or 1 as an integer: the coefficient or nothing, without a branch on a witness bit, which is hard to predict.
  void add_bit(const Fr& coefficient, u64 bit) {
    Fr term;
    for (int k = 0; k < Fr::N; k++) term.v.limb[k] = coefficient.v.limb[k] & (0 - bit);
    lifted += term;
  }
  void add(const Fr& coefficient, Coefficient kind, const Fr& w) {
    if (kind == Coefficient::One) {
      plain += w;
    } else if (kind == Coefficient::MinusOne) {
      plain -= w;
    } else {
      plain += coefficient * w;
    }
  }
};

template <Form form>
void multiply_rows(Fr* out, const SparseView& m, const Coefficient* kinds, const Fr* w, usize begin, usize end) {
  const Fr* coefficients = reinterpret_cast<const Fr*>(m.coefficients);
  for (usize r = begin; r < end; r++) {
    RowSum sum{};
    for (usize i = m.row_start[r]; i < m.row_start[r + 1]; i++) {
      if (i + prefetch_distance < m.entries) __builtin_prefetch(w + m.column[i + prefetch_distance]);
      const Fr& x = w[m.column[i]];
      const u64 high = x.v.limb[1] | x.v.limb[2] | x.v.limb[3];
      if (form == Form::Canonical && (high | (x.v.limb[0] >> 1)) == 0) {
        sum.add_bit(coefficients[m.value[i]], x.v.limb[0]);
      } else if (form == Form::Canonical || (high | x.v.limb[0]) != 0) {
        sum.add(coefficients[m.value[i]], kinds[m.value[i]], x);
      }
    }
    if (form == Form::Canonical && !sum.plain.is_zero()) sum.plain *= Fr{Fr::r2};
    out[r] = sum.lifted + sum.plain;
  }
}

// The first row of piece i of n pieces of about equal work: a row costs as much as an entry.
usize first_row(const SparseView& m, usize i, usize n) {
  const usize work = (m.rows + m.entries) / n * i;
  usize low = 0, high = m.rows;
  while (low < high) {
    const usize middle = low + (high - low) / 2;
    if (m.row_start[middle] + middle < work) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

constexpr usize entries_per_task = usize{1} << 15;

void spmv(u64* out, const SparseView& m, const u64* w, Form w_form, const Exec& exec) {
  SNL_SPAN("spmv");
  const auto kinds = classify(reinterpret_cast<const Fr*>(m.coefficients), m.n_coefficients);
  const auto multiply = w_form == Form::Canonical ? multiply_rows<Form::Canonical> : multiply_rows<Form::Montgomery>;
  const usize n = 1 + (m.rows + m.entries) / entries_per_task;
  parallel(exec, n, [&](usize i) {
    const usize end = i + 1 == n ? m.rows : first_row(m, i + 1, n);
    multiply(reinterpret_cast<Fr*>(out), m, kinds.data(), reinterpret_cast<const Fr*>(w), first_row(m, i, n), end);
  });
}

// Columns are dealt out to tasks in blocks of 16, so that no two tasks write to one element or one cache line: task t
// of a power of two of them takes those with (column / 16) mod tasks == t. Each task reads all entries of the rows.
constexpr int column_block_bits = 4;

void scatter_rows(Fr* out, const SparseView& m, const Coefficient* kinds, const Fr* v, usize begin, usize end, u32 task,
                  u32 mask) {
  const Fr* coefficients = reinterpret_cast<const Fr*>(m.coefficients);
  for (usize r = begin; r < end; r++) {
    for (usize i = m.row_start[r]; i < m.row_start[r + 1]; i++) {
      if (((m.column[i] >> column_block_bits) & mask) != task) continue;
      Fr& sum = out[m.column[i]];
      const Coefficient kind = kinds[m.value[i]];
      if (kind == Coefficient::One) {
        sum += v[r];
      } else if (kind == Coefficient::MinusOne) {
        sum -= v[r];
      } else {
        sum += coefficients[m.value[i]] * v[r];
      }
    }
  }
}

void spmv_transposed(u64* out, const SparseView& m, const u64* v, const Exec& exec) {
  SNL_SPAN("spmv_transposed");
  const auto kinds = classify(reinterpret_cast<const Fr*>(m.coefficients), m.n_coefficients);
  parallel_ranges(exec, m.columns, 4096,
                  [&](usize begin, usize end) { std::memset(out + begin * Fr::N, 0, (end - begin) * sizeof(Fr)); });
  const u32 tasks = exec.threads > 1 ? std::bit_ceil(2 * exec.threads) : 1;
  const usize n = 1 + (m.rows + m.entries) / (usize{1} << 18);  // pieces of rows, one after the other
  for (usize i = 0; i < n; i++) {
    const usize begin = first_row(m, i, n), end = i + 1 == n ? m.rows : first_row(m, i + 1, n);
    parallel(exec, tasks, [&](usize t) {
      scatter_rows(reinterpret_cast<Fr*>(out), m, kinds.data(), reinterpret_cast<const Fr*>(v), begin, end,
                   static_cast<u32>(t), tasks - 1);
    });
  }
}

}  // namespace
}  // namespace SNL_ISA

void SNL_KERNELS(sparse)(CurveKernels& k) {
  k.spmv = spmv;
  k.spmv_transposed = spmv_transposed;
}

}  // namespace snarkline
