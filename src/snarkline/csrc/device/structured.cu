// Structured systems (host/structured.h, structured_form.h): a, b, c and the wires from the packed values of a witness.
//
// A warp has 32 instances, whose values of a bit are one half of a word. For rows of bits it gives each thread a row:
// the sums of its bits stay sliced, a word for each of their binary digits, until the elements are written, instance
// after instance, 32 rows side by side. Rows that take field elements are summed before, a thread an instance.
#include "../common/records.h"
#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u32 warp_size = 32, all_lanes = ~0u;
constexpr u32 tile_rows = 32, block_warps = 4;
constexpr u32 max_planes = 7;  // a row has at most 120 bits
constexpr u32 n_small = 256;   // elements of the integers from -128 on

// Instances of a template, as one kernel takes them: `n_items` rows, columns or sums each,
// of which a block takes `chunk`.
struct Run {
  u64 count, first_out, bits, wides, first_block;
  u32 n_items, first_record, words, n_bits, n_wides, chunk;
};
struct RowRecord {
  u32 header, at;
};

// What a block works on: up to 32 instances of a run, and a chunk of their items.
struct Work {
  Run run;
  u64 first;  // instance
  u32 n;      // instances
  u32 chunk;
  u64 bits;   // where slot 0 of these instances is: words have 64, of which these are the low or the high half
  u64 group;  // the first of the up to 64 instances whose field elements lie together
  u32 group_size;

  SNL_DEVICE Work(const Run* runs, const u32* run_of_block, u64 block) : run(runs[run_of_block[block]]) {
    const u64 n_chunks = (run.n_items + run.chunk - 1) / run.chunk, number = block - run.first_block;
    chunk = static_cast<u32>(number % n_chunks);
    first = number / n_chunks * warp_size;
    n = static_cast<u32>(run.count - first < warp_size ? run.count - first : warp_size);
    group = first / 64 * 64;
    group_size = static_cast<u32>(run.count - group < 64 ? run.count - group : 64);
    const u64 batch = first / 64 / run.words, word = first / 64 % run.words;
    bits = 2 * (run.bits + batch * run.n_bits * run.words + word) + first / 32 % 2;
  }
  SNL_DEVICE u32 bits_of(const u32* values, u32 slot) const { return values[bits + u64{slot} * (2 * run.words)]; }
  // Where the value of the first of these instances is, among `n_wides` of each instance; the others' are behind it.
  SNL_DEVICE u64 wide_at(u64 base, u32 n_wides, u32 slot) const {
    return base + group * n_wides + u64{slot} * group_size + first % 64;
  }
};

template <u32 N>
struct Number {
  static constexpr u32 value = N;
};

// The rows of a tile that one warp writes. The caches are too small for what is written: it leaves them first.
template <u32 N>
SNL_DEVICE void store_rows_of(const Work& work, const u32 (&mine)[max_planes], u32 header, u32 at, u32 tile,
                              const Pair* wide, u64 first_wide, const Pair* small, Pair* out) {
  const u32 half = threadIdx.x % 2;
  for (u32 part = 0; part < 2; part++) {
    const u32 source = part * (warp_size / 2) + threadIdx.x % warp_size / 2, row = tile * tile_rows + source;
    u32 planes[N];
    SNL_UNROLL for (u32 k = 0; k < N; k++) planes[k] = __shfl_sync(all_lanes, mine[k], source);
    const u32 h = __shfl_sync(all_lanes, header, source), a = __shfl_sync(all_lanes, at, source);
    if (row >= work.run.n_items) continue;
    Pair* to = out + 2 * (work.run.first_out + work.first * work.run.n_items + row) + half;
    const u64 step = 2 * u64{work.run.n_items};
    if (h & is_wide) {
      const Pair* from = wide + 2 * (work.wide_at(work.run.wides, work.run.n_wides, a) - first_wide) + half;
#pragma unroll 4
      for (u32 l = 0; l < work.n; l++) __stcs(to + l * step, from[2 * l]);
    } else {
      // Negative bits are counted where they are 0.
      const int least = static_cast<signed char>(h >> 16) - static_cast<int>(h >> 8 & 0xff);
      const Pair* from = small + 2 * (static_cast<int>(n_small / 2) + least) + half;
      if (N == 1) {
        const Pair zero = from[0], one = from[2];
#pragma unroll 4
        for (u32 l = 0; l < work.n; l++) __stcs(to + l * step, planes[0] >> l & 1 ? one : zero);
      } else {
#pragma unroll 4
        for (u32 l = 0; l < work.n; l++) {
          u32 sum = 0;
          SNL_UNROLL for (u32 k = 0; k < N; k++) sum += (planes[k] >> l & 1) << k;
          __stcs(to + l * step, from[2 * sum]);
        }
      }
    }
  }
}

}  // namespace

// Rows (a, b, c: three sides) or columns (one) of the blocks from `first_block` on. `wide` holds what their records
// call wide, from number `first_wide` on; `small` the integers from -128 to 127.
SNL_KERNEL(128, 8)
store_items(Pair* a, Pair* b, Pair* c, int sides, const Run* runs, const u32* run_of_block, u64 first_block,
            const RowRecord* records, const u32* slots, const u32* bits, const Pair* wide, u64 first_wide,
            const Pair* small) {
  __shared__ Pair integers[2 * n_small];
  for (u32 i = threadIdx.x; i < 2 * n_small; i += blockDim.x) integers[i] = __ldg(small + i);
  __syncthreads();
  const Work work(runs, run_of_block, first_block + blockIdx.x);
  const u32 lane = threadIdx.x % warp_size, tile = work.chunk * block_warps + threadIdx.x / warp_size;
  if (tile * tile_rows >= work.run.n_items) return;
  for (int side = 0; side < sides; side++) {
    const RowRecord record = records[work.run.first_record + (tile * sides + side) * tile_rows + lane];
    const u32 plus = record.header & 0xff, n = record.header & is_wide ? 0 : plus + (record.header >> 8 & 0xff);
    u32 planes[max_planes] = {};
    for (u32 i = 0; i < n; i++) {
      u32 x = work.bits_of(bits, n == 1 ? record.at : slots[record.at + i]);
      if (i >= plus) x = ~x;
      SNL_UNROLL for (u32 k = 0; k < max_planes; k++) {
        const u32 carry = planes[k] & x;
        planes[k] ^= x;
        x = carry;
      }
    }
    Pair* out = side == 0 ? a : side == 1 ? b : c;
    const auto store = [&](auto n_planes) {
      store_rows_of<decltype(n_planes)::value>(work, planes, record.header, record.at, tile, wide, first_wide, integers,
                                               out);
    };
    if (!__ballot_sync(all_lanes, n > 1)) {
      store(Number<1>{});
    } else if (!__ballot_sync(all_lanes, n > 3)) {
      store(Number<2>{});
    } else {
      store(Number<max_planes>{});
    }
  }
}

namespace {

SNL_DEVICE Fr coefficient_at(const Fr* coefficients, u32 number) {
  if (number == coefficient_one) return Fr::one();
  if (number == coefficient_minus_one) return -Fr::one();
  return load_constant(coefficients + number);
}

// 32 words, one a lane: bit j of word i becomes bit i of word j (Warren, Hacker's Delight, section 7-3).
SNL_DEVICE u32 transpose(u32 x) {
  const u32 lane = threadIdx.x % warp_size;
  u32 low = 0x0000ffff;
  SNL_UNROLL for (u32 j = warp_size / 2; j != 0; j /= 2, low ^= low << j) {
    const u32 other = __shfl_xor_sync(all_lanes, x, j);
    x = lane & j ? (x & ~low) | (other >> j & low) : (x & low) | (other << j & ~low);
  }
  return x;
}

// Bits times powers of two, by ascending exponent. Those of 32 digits at a time become one word an instance, of which
// those with one exponent are counted. `above` stays below 2^32 (n + 1): 32 exponents share a word.
SNL_DEVICE Fr sum_digits(const Work& work, const Digit* digits, u32 n, const u32* bits) {
  const u32 lane = threadIdx.x % warp_size;
  u32 word[8] = {}, at = 0;
  i64 above = 0;
  for (u32 begin = 0; begin < n; begin += warp_size) {
    Digit mine{0, ~0u};
    u32 values = 0;
    if (begin + lane < n) {
      mine = digits[begin + lane];
      values = work.bits_of(bits, mine.slot);
    }
    values = transpose(values);
    u32 rest = __ballot_sync(all_lanes, begin + lane < n);
    while (rest != 0) {
      const u32 exponent = __shfl_sync(all_lanes, mine.exponent, __ffs(rest) - 1) % 256;
      const u32 plus = __ballot_sync(all_lanes, mine.exponent == exponent);
      const u32 minus = __ballot_sync(all_lanes, mine.exponent == exponent + 256);
      rest &= ~(plus | minus);
      for (; at < exponent / 32; at++) {
        word[at] = static_cast<u32>(above);
        above >>= 32;
      }
      above += static_cast<i64>(__popc(values & plus) - __popc(values & minus)) << exponent % 32;
    }
  }
  for (; at < 8; at++) {
    word[at] = static_cast<u32>(above);
    above >>= 32;
  }
  Fr low;
  SNL_UNROLL for (int i = 0; i < 4; i++) low.v.limb[i] = word[2 * i] | static_cast<u64>(word[2 * i + 1]) << 32;
  for (Int<4> rest = low.v; !sub_in_place(rest, Fr::modulus);) low.v = rest;
  const Fr to_montgomery{Fr::r2};
  Fr out = low * to_montgomery;
  if (above != 0) {  // the part from 2^256 on, with its sign
    Fr part{};
    part.v.limb[0] = static_cast<u64>(above < 0 ? -above : above);
    part = part * to_montgomery * to_montgomery;
    out = above < 0 ? out - part : out + part;
  }
  return out;
}

}  // namespace

// The sums that rows take which are no small integers, from number `first_sum` on: a thread has one instance.
SNL_KERNEL(128, 4)
sum_items(Fr* sums, u64 first_sum, const Run* runs, const u32* run_of_block, u64 first_block, const SumRecord* records,
          const Digit* digits, const Term* terms, const Fr* coefficients, const u32* bits, const Fr* wides) {
  const Work work(runs, run_of_block, first_block + blockIdx.x);
  const u32 lane = threadIdx.x % warp_size;
  const u32 item = work.chunk * block_warps + threadIdx.x / warp_size;
  if (item >= work.run.n_items) return;
  const SumRecord record = records[work.run.first_record + item];
  Fr sum = record.constant == no_coefficient ? Fr::zero() : coefficient_at(coefficients, record.constant);
  if (record.n_digits != 0) sum += sum_digits(work, digits + record.digits, record.n_digits, bits);
  SNL_ROLLED for (u32 i = 0; i < record.n_masked; i++) {
    const Term term = terms[record.masked + i];
    if (work.bits_of(bits, term.slot) >> lane & 1) sum += coefficient_at(coefficients, term.coefficient);
  }
  if (lane >= work.n) return;
  SNL_ROLLED for (u32 i = 0; i < record.n_terms; i++) {
    const Term term = terms[record.terms + i];
    const Fr x = load(wides + work.wide_at(work.run.wides, work.run.n_wides, term.slot) + lane);
    if (term.coefficient == coefficient_one) {
      sum += x;
    } else if (term.coefficient == coefficient_minus_one) {
      sum -= x;
    } else {
      sum += load_constant(coefficients + term.coefficient) * x;
    }
  }
  store(sums + work.wide_at(work.run.first_out, work.run.n_items, item) + lane - first_sum, sum);
}

// Behind the n rows of a, b, c: the public wires in a, up to row `bound`, and zeros up to `size`.
SNL_KERNEL(256, 4) pad_products(Fr* a, Fr* b, Fr* c, const Fr* publics, u64 n, u64 bound, u64 size) {
  for (u64 i = n + global_index(); i < size; i += grid_size()) {
    store(a + i, i < bound ? load(publics + (i - n)) : Fr::zero());
    store(b + i, Fr::zero());
    store(c + i, Fr::zero());
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
