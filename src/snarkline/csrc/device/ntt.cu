// Number-theoretic transforms over Fr, in place, between natural and bit-reversed order.
//
// A transform of n = 2^k elements is done in one to three passes over memory. A pass works on an array of `rows` (a
// power of two, at least 8) by `columns` and transforms the columns within shared memory, in steps of radix 8 (the last
// step takes the remainder, radix 2 or 4 then). Bailey, "FFTs in external or hierarchical memory" (1990): between
// passes an element is multiplied by a root of unity to the power row * column. Here those factors are a table laid out
// like the data, so that a constant 1/n and the powers of a coset shift go into them for nothing.
//
// Forward passes (natural to bit-reversed; Gentleman and Sande) transform, then multiply; reversed passes (bit-reversed
// to natural; Cooley and Tukey) multiply, then transform, and go through the steps and passes the other way round.
//
// Values stay in [0, 2 p) until the last store. Costs for n elements: n/2 log n products by constants less those by 1,
// plus n for each boundary between passes; 64 n bytes of traffic a pass, and 32 n for the table of the widest pass.
#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;
using W = limbs32::Words<2 * Fr::N>;

struct Lazy {
  W w;  // [0, 2 p)
};

SNL_DEVICE Lazy lazy(const Fr& a) { return Lazy{limbs32::split(a.v)}; }
SNL_DEVICE Fr raw(const Lazy& a) { return Fr{limbs32::join(a.w)}; }
SNL_DEVICE Fr canonical(const Lazy& a) { return Fr{limbs32::join(limbs32::reduce_once<Fr>(a.w))}; }
// constant in [0, p)
SNL_DEVICE Lazy multiply(const Fr& constant, const Lazy& a) {
  return Lazy{limbs32::multiply_lazy<Fr>(limbs32::split(constant.v), a.w)};
}
SNL_DEVICE void butterfly(Lazy& a, Lazy& b) {
  const W difference = limbs32::sub_mod<Fr, true>(a.w, b.w);
  a.w = limbs32::add_mod<Fr, true>(a.w, b.w);
  b.w = difference;
}

// Transforms of 2^log_radix among 8 elements in registers: of all 8, or of their halves or quarters. `eighth` holds the
// first three powers of the root of order 8.
SNL_DEVICE void transform_forward(Lazy* x, int log_radix, const Fr* eighth) {
  if (log_radix >= 3) {
    SNL_UNROLL for (int i = 0; i < 4; i++) butterfly(x[i], x[i + 4]);
    SNL_UNROLL for (int i = 1; i < 4; i++) x[i + 4] = multiply(load_constant(eighth + i - 1), x[i + 4]);
  }
  if (log_radix >= 2) {
    SNL_UNROLL for (int i = 0; i < 2; i++) {
      butterfly(x[i], x[i + 2]);
      butterfly(x[i + 4], x[i + 6]);
    }
    const Fr quarter = load_constant(eighth + 1);
    x[3] = multiply(quarter, x[3]);
    x[7] = multiply(quarter, x[7]);
  }
  SNL_UNROLL for (int i = 0; i < 8; i += 2) butterfly(x[i], x[i + 1]);
}

SNL_DEVICE void transform_reversed(Lazy* x, int log_radix, const Fr* eighth) {
  SNL_UNROLL for (int i = 0; i < 8; i += 2) butterfly(x[i], x[i + 1]);
  if (log_radix >= 2) {
    const Fr quarter = load_constant(eighth + 1);
    x[3] = multiply(quarter, x[3]);
    x[7] = multiply(quarter, x[7]);
    SNL_UNROLL for (int i = 0; i < 2; i++) {
      butterfly(x[i], x[i + 2]);
      butterfly(x[i + 4], x[i + 6]);
    }
  }
  if (log_radix >= 3) {
    SNL_UNROLL for (int i = 1; i < 4; i++) x[i + 4] = multiply(load_constant(eighth + i - 1), x[i + 4]);
    SNL_UNROLL for (int i = 0; i < 4; i++) butterfly(x[i], x[i + 4]);
  }
}

// Shared memory: the two 16-byte halves of an element lie in two planes, and every eighth piece is followed by a gap,
// so that the strides of the steps fall on different banks.
SNL_DEVICE int padded(int e) { return e + (e >> 3); }

struct Tile {
  Pair* memory;
  int plane;

  SNL_DEVICE Lazy get(int e) const {
    const Pair low = memory[padded(e)], high = memory[plane + padded(e)];
    return lazy(Fr{{{low.x, low.y, high.x, high.y}}});
  }
  SNL_DEVICE void put(int e, const Lazy& a) const {
    const Fr f = raw(a);
    Pair low, high;
    low.x = f.v.limb[0];
    low.y = f.v.limb[1];
    high.x = f.v.limb[2];
    high.y = f.v.limb[3];
    memory[padded(e)] = low;
    memory[plane + padded(e)] = high;
  }
};

// The step number `step` (in forward order) of a pass of 2^log_rows rows: transforms of 2^log_radix elements that lie
// 2^log_stride rows apart, inside sub-transforms of 2^log_length rows.
struct Step {
  int log_length, log_radix, log_stride;

  SNL_DEVICE Step(int log_rows, int step) {
    log_length = log_rows - 3 * step;
    log_radix = log_length < 3 ? log_length : 3;
    log_stride = log_length - log_radix;
  }
  // The row of element k (0 to 7) of a thread, and its place in the table of the step.
  SNL_DEVICE void locate(int k, int unit, int units, int& row, int& place) const {
    const int group = unit + (k >> log_radix) * units, element = k & ((1 << log_radix) - 1);
    const int offset = group & ((1 << log_stride) - 1);
    place = (element << log_stride) + offset;
    row = ((group >> log_stride) << log_length) + place;
  }
};

struct Pass {
  Fr* data;
  const Fr* between;                      // one factor for each element of a sub-transform, or null
  const Fr* steps;                        // eighth roots (3), then the factors of the steps but the last
  const Fr* rows_in;                      // forward: a factor for each row on the way in, or null
  int log_length, log_rows, log_columns;  // log_length: size of the sub-transforms, rows times all columns
};

// `Last`: the pass whose sub-transforms are its columns, contiguous in memory; the tile then holds several of them.
template <bool Last, bool Reversed>
struct Worker {
  Pass pass;
  Tile tile;
  int unit, units, column;
  u64 base, column_base;
  int log_all_columns;

  SNL_DEVICE Worker(const Pass& p, Pair* memory) : pass(p) {
    const int elements = 1 << (p.log_rows + p.log_columns), t = threadIdx.x;
    tile = Tile{memory, elements + (elements >> 3)};
    units = 1 << (p.log_rows - 3);
    log_all_columns = p.log_length - p.log_rows;
    if constexpr (Last) {
      unit = t & (units - 1);
      column = t >> (p.log_rows - 3);
      base = static_cast<u64>(blockIdx.x) << (p.log_rows + p.log_columns);
      column_base = 0;
    } else {
      column = t & ((1 << p.log_columns) - 1);
      unit = t >> p.log_columns;
      const int log_tiles = log_all_columns - p.log_columns;
      column_base = (static_cast<u64>(blockIdx.x) & ((1u << log_tiles) - 1)) << p.log_columns;
      base = (static_cast<u64>(blockIdx.x >> log_tiles) << p.log_length) + column_base;
    }
  }

  SNL_DEVICE int place_in_tile(int row) const {
    return Last ? (column << pass.log_rows) + row : (row << pass.log_columns) + column;
  }
  SNL_DEVICE u64 place_in_data(int row) const {
    return Last ? base + place_in_tile(row) : base + (static_cast<u64>(row) << log_all_columns) + column;
  }

  // The first step's inputs times the row factors, by way of the tile (one product in the code instead of eight).
  SNL_DEVICE void scale_rows() const {
    SNL_ROLLED for (int k = 0; k < 8; k++) {
      const int row = k * units + unit;
      tile.put(place_in_tile(row),
               multiply(load_constant(pass.rows_in + row), lazy(load(pass.data + place_in_data(row)))));
    }
  }

  SNL_DEVICE void multiply_factors(Lazy* x, const Step& s, bool last_step, const Fr* table) const {
    if (Last && last_step) return;
    SNL_UNROLL for (int k = 0; k < 8; k++) {
      int row, place;
      s.locate(k, unit, units, row, place);
      // A place below the stride has the factor 1.
      if (last_step || (k & ((1 << s.log_radix) - 1)) != 0) {
        const Fr* factor = last_step ? pass.between + column_base + (static_cast<u64>(row) << log_all_columns) + column
                                     : table + place;
        x[k] = multiply(load_constant(factor), x[k]);
      }
    }
  }

  SNL_DEVICE void run_step(int number, int n_steps) const {
    const int in_order = Reversed ? n_steps - 1 - number : number;
    const Step s(pass.log_rows, in_order);
    const Fr* table = pass.steps + 3;
    for (int i = 0; i < in_order; i++) table += (1 << pass.log_rows) >> (3 * i);
    const bool first = number == 0, final = number == n_steps - 1, last_step = in_order == n_steps - 1;
    const bool from_tile = !first || (Last && Reversed) || (!Reversed && pass.rows_in != nullptr);
    const bool to_tile = !final || (Last && !Reversed);

    if (!Reversed && first && pass.rows_in != nullptr) scale_rows();
    Lazy x[8];
    SNL_UNROLL for (int k = 0; k < 8; k++) {
      int row, place;
      s.locate(k, unit, units, row, place);
      x[k] = from_tile ? tile.get(place_in_tile(row)) : lazy(load(pass.data + place_in_data(row)));
    }
    if (!Reversed) transform_forward(x, s.log_radix, pass.steps);
    multiply_factors(x, s, last_step, table);
    if (Reversed) transform_reversed(x, s.log_radix, pass.steps);
    SNL_UNROLL for (int k = 0; k < 8; k++) {
      int row, place;
      s.locate(k, unit, units, row, place);
      if (to_tile) {
        tile.put(place_in_tile(row), x[k]);
      } else {
        store(pass.data + place_in_data(row), Reversed ? canonical(x[k]) : raw(x[k]));
      }
    }
  }

  SNL_DEVICE void run(const Fr* rows_out) const {
    const int elements = 1 << (pass.log_rows + pass.log_columns), n_steps = (pass.log_rows + 2) / 3;
    if (Last && Reversed) {
      for (int e = threadIdx.x; e < elements; e += blockDim.x) tile.put(e, lazy(load(pass.data + base + e)));
      __syncthreads();
    }
    SNL_ROLLED for (int i = 0; i < n_steps; i++) {
      run_step(i, n_steps);
      if (i + 1 < n_steps || (Last && !Reversed)) __syncthreads();
    }
    if (Last && !Reversed) {
      SNL_ROLLED for (int e = threadIdx.x; e < elements; e += blockDim.x) {
        Lazy a = tile.get(e);
        if (rows_out != nullptr) a = multiply(load_constant(rows_out + (e & ((1 << pass.log_rows) - 1))), a);
        store(pass.data + base + e, canonical(a));
      }
    }
  }
};

}  // namespace

// One block for each tile of 2^(log_rows + log_columns) elements, with an eighth as many threads.
SNL_KERNEL(512, 1)
ntt_forward(Fr* data, const Fr* between, const Fr* steps, const Fr* rows_in, int log_length, int log_rows,
            int log_columns) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  const Worker<false, false> worker(Pass{data, between, steps, rows_in, log_length, log_rows, log_columns}, memory);
  worker.run(nullptr);
}

// rows_out: a factor for each row on the way out, or null.
SNL_KERNEL(512, 1)
ntt_forward_last(Fr* data, const Fr* steps, const Fr* rows_in, const Fr* rows_out, int log_rows, int log_columns) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  const Worker<true, false> worker(Pass{data, nullptr, steps, rows_in, log_rows, log_rows, log_columns}, memory);
  worker.run(rows_out);
}

SNL_KERNEL(512, 1)
ntt_reversed(Fr* data, const Fr* between, const Fr* steps, int log_length, int log_rows, int log_columns) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  const Worker<false, true> worker(Pass{data, between, steps, nullptr, log_length, log_rows, log_columns}, memory);
  worker.run(nullptr);
}

SNL_KERNEL(512, 1) ntt_reversed_last(Fr* data, const Fr* steps, int log_rows, int log_columns) {
  SNL_DYNAMIC_SHARED(Pair, memory);
  const Worker<true, true> worker(Pass{data, nullptr, steps, nullptr, log_rows, log_rows, log_columns}, memory);
  worker.run(nullptr);
}

// The factors of a pass or of a step: table[s][i] = first * root^(i * rev(s)) * row_ratio^rev(s) * column_ratio^i for
// s < 2^log_rows, i < 2^(log_length - log_rows), rev on log_rows bits. Each base is given by its 2^k-th powers (32).
SNL_KERNEL(256, 2)
ntt_factors(Fr* table, const Fr* first, const Fr* root, const Fr* row_ratio, const Fr* column_ratio, int log_length,
            int log_rows) {
  const u64 id = global_index();
  if (id >> log_length) return;
  const int log_columns = log_length - log_rows;
  const u64 column = id & ((u64{1} << log_columns) - 1), row = id >> log_columns;
  const u64 reversed = log_rows == 0 ? 0 : __brev(static_cast<u32>(row)) >> (32 - log_rows);
  Fr x = power_from_squares(root, column * reversed, load_constant(first));
  if (row_ratio != nullptr) x = power_from_squares(row_ratio, reversed, x);
  if (column_ratio != nullptr) x = power_from_squares(column_ratio, column, x);
  store(table + id, x);
}

// Exchanges elements whose indices are the bit reversals of each other.
SNL_KERNEL(256, 4) reverse_order(Fr* data, int log_n) {
  const u64 i = global_index();
  if (i >> log_n) return;
  const u64 j = log_n == 0 ? 0 : __brev(static_cast<u32>(i)) >> (32 - log_n);
  if (i >= j) return;
  const Fr a = load(data + i), b = load(data + j);
  store(data + i, b);
  store(data + j, a);
}

// A transform of at most 4 elements by its definition, natural order in and out: out[i] = scale * sum in[j] *
// pre^j * root^(i j) * post^i. Arguments as arrays of one element.
SNL_KERNEL(32, 1) ntt_small(Fr* data, const Fr* root, const Fr* pre, const Fr* scale, const Fr* post, int log_n) {
  const u32 i = threadIdx.x, n = 1u << log_n;
  if (i < n) {
    Fr sum = Fr::zero(), ratio = load_constant(pre), weight = Fr::one(), factor = load_constant(scale);
    for (u32 k = 0; k < i; k++) {
      ratio *= load_constant(root);
      factor *= load_constant(post);
    }
    for (u32 j = 0; j < n; j++, weight *= ratio) sum += weight * load(data + j);
    __syncwarp((u32{1} << n) - 1);
    store(data + i, factor * sum);
  }
}

}  // namespace SNL_ISA
}  // namespace snarkline
