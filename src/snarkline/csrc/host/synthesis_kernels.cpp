// See synthesis.h.
#include "synthesis.h"

#include "kernels.h"
#include "sha256.h"
#include "span.h"
#include "structured_combine.h"
#include "synthesis_sha256.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u32 initial_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

std::unique_ptr<Assignment> sha256_chain(const u8* bits, usize blocks, const Cures& cures) {
  SNL_SPAN("synthesis.classic");
  ProvingSystem<Fr> cs(cures);
  {
    Sha256Circuit<Fr> circuit(cs);
    std::vector<Boolean> message;
    for (usize i = 0; i < 512 * blocks; i++) message.push_back(circuit.alloc_bit(bits[i] != 0));
    std::array<Bits32, 8> state;
    for (int i = 0; i < 8; i++) state[i] = circuit.constant_word(initial_state[i]);
    for (usize i = 0; i < blocks; i++) state = circuit.compress(message.data() + 512 * i, state, sha256_constants());
  }
  return cs.finish();
}

constexpr usize rows_at_once = 4096;

void flat_published(u64* out, const FlatRows& m, const u64* values, const u64* w, const Exec& exec) {
  SNL_SPAN("synthesis.flat_published");
  const Fr* k = reinterpret_cast<const Fr*>(values);
  const Fr* x = reinterpret_cast<const Fr*>(w);
  parallel_ranges(exec, m.rows, rows_at_once, [&](usize begin, usize end) {
    for (usize r = begin; r < end; r++) {
      Fr sum = Fr::zero();
      for (u64 i = m.row_start[r]; i < m.row_start[r + 1]; i++) sum += k[i] * x[m.column[i]];
      reinterpret_cast<Fr*>(out)[r] = sum;
    }
  });
}

constexpr u8 class_minus_one = 253, class_integer = 254;

// A row of many entries: sums of integers in limbs of 64 bits, and one product.
Fr long_row(const FlatRows& m, u64 begin, u64 end, const u8* classes, const u64* integers, const u8* w) {
  u128 limb[4] = {};
  u64 minus = 0;
  for (u64 i = begin; i < end; i++) {
    const u64 bit = w[m.column[i]];
    if (classes[i] != class_minus_one) {
      limb[classes[i] / 64] += static_cast<u128>(bit) << (classes[i] % 64);
    } else if (i + 1 < end && classes[i + 1] == class_integer) {
      const u64* value = integers + 4 * usize{m.column[++i]};
      for (int k = 0; k < 4; k++) limb[k] += value[k] & (0 - bit);
    } else {
      minus += bit;
    }
  }
  Fr low{};
  u128 carry = 0;
  for (int k = 0; k < 4; k++) {
    carry += limb[k];
    low.v.limb[k] = static_cast<u64>(carry);
    carry >>= 64;
  }
  Int<4> rest = low.v;
  while (!sub_in_place(rest, Fr::modulus)) low.v = rest;
  Fr out = low * Fr{Fr::r2};
  for (; carry != 0; carry--) out += Fr{Fr::r2};
  return minus == 0 ? out : out - Fr::from_u64(minus);
}

void flat_classes(u64* out, const FlatRows& m, const u8* classes, const u64* integers, const u8* w, const Exec& exec) {
  SNL_SPAN("synthesis.flat_classes");
  constexpr u64 ahead = 16;
  const Fr* small = small_elements<Fr>();
  parallel_ranges(exec, m.rows, rows_at_once, [&](usize begin, usize end) {
    for (usize r = begin; r < end; r++) {
      const u64 first = m.row_start[r], last = m.row_start[r + 1];
      Fr& to = reinterpret_cast<Fr*>(out)[r];
      int sum = 0;
      u64 i = first;
      if (last - first <= 8) {
        for (; i < last && (classes[i] < 4 || classes[i] == class_minus_one); i++) {
          if (i + ahead < m.entries) __builtin_prefetch(w + m.column[i + ahead]);
          const int bit = w[m.column[i]];
          sum += classes[i] == class_minus_one ? -bit : bit << classes[i];
        }
      }
      to = i == last ? small[128 + sum] : long_row(m, first, last, classes, integers, w);
    }
  });
}

}  // namespace
}  // namespace SNL_ISA

const SynthesisKernels& SNL_KERNELS(synthesis)() {
  static constexpr SynthesisKernels table = {sha256_chain, flat_published, flat_classes};
  return table;
}

}  // namespace snarkline
