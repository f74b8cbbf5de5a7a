// Multiples of one point, from a table of its multiples by digit * 256^window.
#define SNL_CALLED_PRODUCTS 1
#include "group.h"

namespace snarkline {
inline namespace SNL_ISA {

constexpr int digit_bits = 8, n_digits = 256 / digit_bits, row_size = (1 << digit_bits) - 1;

// sums[i] = scalars[i] * base, scalars canonical; table[w * 255 + d - 1] = d * 256^w * base. The norm of ZZZ goes to
// norms (planes; 1 for infinity), to be inverted.
SNL_KERNEL(128, 3) multiply_base(const u64* scalars, u64 n, const AffinePoint* table, Sum* sums, Pair* norms) {
  const u64 i = global_index();
  if (i >= n) return;
  Sum sum = Sum::infinity();
  SNL_ROLLED for (int w = 0; w < n_digits; w++) {
    const u32 d = static_cast<u32>(scalars[4 * i + w / 8] >> (w % 8 * digit_bits)) & row_size;
    if (d == 0) continue;
    const AffinePoint* p = table + w * row_size + d - 1;
    add_point(sum, AffinePoint{load_constant(&p->x), load_constant(&p->y)});
  }
  sums[i] = sum;
  store_planes(norms, n, i, sum.is_infinity() ? Fp::one() : norm(sum.zzz));
}

SNL_KERNEL(128, 3) make_affine(const Sum* sums, u64 n, const Pair* inverse_norms, AffinePoint* out) {
  const u64 i = global_index();
  if (i >= n) return;
  const Sum sum = sums[i];
  AffinePoint p = AffinePoint::infinity();
  if (!sum.is_infinity()) p = sum.to_affine(inverse_from_norm(sum.zzz, load_planes<Fp>(inverse_norms, n, i)));
  store(&out[i].x, p.x);
  store(&out[i].y, p.y);
}

}  // namespace SNL_ISA
}  // namespace snarkline
