// Many multiples of one point: tables of its multiples for every window of the scalar, and affine additions in batches.
// Brickell, Gordon, McCurley, Wilson, "Fast exponentiation with precomputation" (1992), with signed digits.
#pragma once

#include <algorithm>
#include <vector>

#include "batch_affine.h"
#include "exec.h"
#include "span.h"

namespace snarkline {
inline namespace SNL_ISA {

inline constexpr int scalar_bits = 256;

// Row j holds d * 2^(j * width) * base for d = 1 ... 2^(width - 1).
template <class F>
class BaseTable {
 public:
  BaseTable(const Affine<F>& base, int width, const Exec& exec)
      : width(width), windows(scalar_bits / width + 1), half(usize{1} << (width - 1)), entries_(windows * half) {
    SNL_SPAN("fixed_base.table");
    first_column(base);
    for (usize known = 1; known < half; known *= 2) {
      // Entries 1 ... known are there: entry known + i is entry known plus entry i.
      const usize n_tasks = (windows * known + batch - 1) / batch;
      parallel(exec, n_tasks,
               [&](usize task) { extend(known, task * batch, std::min(batch, windows * known - task * batch)); });
    }
  }

  const Affine<F>& multiple(usize window, usize digit) const { return entries_[window * half + digit - 1]; }

  const int width;
  const usize windows, half;

 private:
  static constexpr usize batch = 1024;

  void first_column(const Affine<F>& base) {
    std::vector<Xyzz<F>> powers(windows);
    Xyzz<F> p = Xyzz<F>::from_affine(base);
    for (usize j = 0; j < windows; j++) {
      powers[j] = p;
      for (int i = 0; i < width; i++) p = p.dbl();
    }
    std::vector<Affine<F>> affine(windows);
    normalise(affine.data(), powers.data(), windows);
    for (usize j = 0; j < windows; j++) entries_[j * half] = affine[j];
  }

  void extend(usize known, usize begin, usize n) {
    AffineAdder<F> adder(n);
    const auto row = [&](usize i) { return &entries_[(begin + i) / known * half]; };
    adder.add(
        n, [&](usize i) -> Affine<F>& { return row(i)[known + (begin + i) % known]; },
        [&](usize i) -> const Affine<F>& { return row(i)[known - 1]; },
        [&](usize i) -> const Affine<F>& { return row(i)[(begin + i) % known]; });
  }

  std::vector<Affine<F>> entries_;
};

// The width that makes additions fewest: windows * (n + 2^(width - 1)). At most 13, where a row has 0.25 to 0.75 MiB
// and stays in a second-level cache.
inline int fixed_base_width(usize n) {
  int best = 2;
  const auto cost = [n](int width) { return (scalar_bits / width + 1) * (n + (usize{1} << (width - 1))); };
  for (int width = 3; width <= 13; width++) {
    if (cost(width) < cost(best)) best = width;
  }
  return best;
}

// out[i] = scalars[i] * base for one batch, window by window.
template <class F>
void fixed_base_batch(Affine<F>* out, const BaseTable<F>& table, const Int<4>* scalars, usize n) {
  AffineAdder<F> adder(n);
  std::vector<Affine<F>> term(n);
  std::vector<u8> carry(n, 0);
  std::fill(out, out + n, Affine<F>::infinity());
  for (usize j = 0; j < table.windows; j++) {
    for (usize i = 0; i < n; i++) {
      // Digits in (-2^(width - 1), 2^(width - 1)]; the last window takes the last carry.
      const usize digit = bits_at(scalars[i], static_cast<int>(j) * table.width, table.width) + carry[i];
      carry[i] = digit > table.half;
      if (digit == 0 || digit == 2 * table.half) {
        term[i] = Affine<F>::infinity();
      } else {
        term[i] = carry[i] ? -table.multiple(j, 2 * table.half - digit) : table.multiple(j, digit);
      }
    }
    adder.add(
        n, [&](usize i) -> Affine<F>& { return out[i]; }, [&](usize i) -> const Affine<F>& { return out[i]; },
        [&](usize i) -> const Affine<F>& { return term[i]; });
  }
}

template <class F>
void fixed_base(u64* out, const u64* base, const u64* scalars, usize n, const Exec& exec) {
  const Affine<F> b = *reinterpret_cast<const Affine<F>*>(base);
  const auto* s = reinterpret_cast<const Int<4>*>(scalars);
  auto* o = reinterpret_cast<Affine<F>*>(out);
  constexpr usize few = 32;  // below, a table costs more than it saves
  if (n < few) {
    SNL_SPAN("fixed_base.multiples");
    return parallel(exec, n, [&](usize i) { o[i] = multiply(b, s[i]).to_affine(); });
  }
  constexpr usize batch = 1024;  // an inversion is about 500 products
  const BaseTable<F> table(b, fixed_base_width(n), exec);
  SNL_SPAN("fixed_base.multiples");
  parallel(exec, (n + batch - 1) / batch, [&](usize task) {
    const usize begin = task * batch;
    fixed_base_batch(o + begin, table, s + begin, std::min(batch, n - begin));
  });
}

}  // namespace SNL_ISA
}  // namespace snarkline
