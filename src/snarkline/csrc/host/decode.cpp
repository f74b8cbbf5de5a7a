#include "decode.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>

#include "span.h"

namespace snarkline {
namespace {

u32 load_u32(const u8* p) {
  u32 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Element load_element(const u8* p) {
  Element v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The distinct elements of a sequence, numbered by first occurrence: open addressing, linear probing. The hash is
// keyed by `seed`, drawn for each file, so that no file can be made whose values collide.
class Distinct {
 public:
  explicit Distinct(const Element& seed) : seed_(seed), slots_(256, vacant) {}

  u32 number(const Element& v) {
    if (2 * values.size() >= slots_.size()) grow();
    usize i = hash(v);
    for (; slots_[i] != vacant; i = (i + 1) & (slots_.size() - 1)) {
      if (values[slots_[i]] == v) return slots_[i];
    }
    slots_[i] = static_cast<u32>(values.size());
    values.push_back(v);
    return slots_[i];
  }

  std::vector<Element> values;

 private:
  static constexpr u32 vacant = ~u32{0};

  static u64 fold(u64 a, u64 b) {
    const u128 t = static_cast<u128>(a) * b;
    return static_cast<u64>(t) ^ static_cast<u64>(t >> 64);
  }
  usize hash(const Element& v) const {
    return (fold(v[0] ^ seed_[0], v[1] ^ seed_[1]) + fold(v[2] ^ seed_[2], v[3] ^ seed_[3])) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(2 * slots_.size(), vacant);
    for (u32 id = 0; id < values.size(); id++) {
      usize i = hash(values[id]);
      while (slots_[i] != vacant) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = id;
    }
  }

  Element seed_;
  std::vector<u32> slots_;
};

Element draw_seed() {
  std::random_device source;
  Element seed;
  for (u64& word : seed) word = static_cast<u64>(source()) << 32 | source();
  return seed;
}

// The distinct values of all chunks, and for each chunk what its own numbers become.
std::vector<Element> merge(const std::vector<std::vector<Element>>& chunks, const Element& seed,
                           std::vector<std::vector<u32>>& renumber) {
  Distinct all(seed);
  renumber.resize(chunks.size());
  for (usize c = 0; c < chunks.size(); c++) {
    for (const Element& v : chunks[c]) renumber[c].push_back(all.number(v));
  }
  return std::move(all.values);
}

// Chunks are fixed by the data alone, so the numbering does not depend on the number of threads.
constexpr usize chunk_records = usize{1} << 14;
constexpr usize chunk_rows = usize{1} << 12;

usize n_chunks(usize n, usize chunk) { return (n + chunk - 1) / chunk; }

void require(bool holds) {
  if (!holds) throw Torn();
}

struct Record {
  u32 matrix, row, column;
  const u8* value;
};

Record record(const u8* records, usize i) {
  const u8* p = records + i * coefficient_bytes;
  return {load_u32(p), load_u32(p + 4), load_u32(p + 8), p + 12};
}

CoefficientScan scan_chunk(const u8* records, usize begin, usize end, u64 max_rows, u64 n_columns) {
  CoefficientScan s;
  u32 previous = begin ? record(records, begin - 1).row : 0;
  for (usize i = begin; i < end; i++) {
    const Record r = record(records, i);
    const Fault fault = r.matrix > 1            ? Fault::Matrix
                        : r.row >= max_rows     ? Fault::Row
                        : r.column >= n_columns ? Fault::Column
                                                : Fault::None;
    if (fault != Fault::None) {
      s.fault = fault;
      s.index = i;
      s.found = fault == Fault::Matrix ? r.matrix : fault == Fault::Row ? r.row : r.column;
      return s;
    }
    s.entries[r.matrix]++;
    s.rows = std::max<usize>(s.rows, usize{r.row} + 1);
    s.sorted &= r.row >= previous;
    previous = r.row;
  }
  return s;
}

// Places records [begin, end) of a file sorted by row; next[m] is where matrix m's entries of this chunk begin.
void place_sorted(const u8* records, usize begin, usize end, u64 n_columns, usize next[2], const CsrOut out[2],
                  Distinct& distinct) {
  usize row = begin ? record(records, begin - 1).row : 0;
  for (usize i = begin; i < end; i++) {
    const Record r = record(records, i);
    require(r.matrix <= 1 && r.row >= row && r.row < out[0].rows && r.column < n_columns);
    for (; row < r.row; row++) {
      for (int m = 0; m < 2; m++) out[m].row_start[row + 1] = next[m];
    }
    const CsrOut& o = out[r.matrix];
    usize& at = next[r.matrix];
    require(at < o.entries);
    o.column[at] = r.column;
    o.value[at++] = distinct.number(load_element(r.value));
  }
}

std::vector<Element> gather_sorted(const u8* records, usize n, u64 n_columns, const CsrOut out[2], const Exec& exec) {
  const usize chunks = n_chunks(n, chunk_records);
  const Element seed = draw_seed();
  std::vector<std::array<usize, 2>> start(chunks + 1);
  parallel(exec, chunks, [&](usize c) {
    usize ones = 0;
    const usize begin = c * chunk_records, end = std::min(n, begin + chunk_records);
    for (usize i = begin; i < end; i++) ones += record(records, i).matrix == 1;
    start[c + 1] = {end - begin - ones, ones};
  });
  for (usize c = 0; c < chunks; c++) {
    for (int m = 0; m < 2; m++) start[c + 1][m] += start[c][m];
  }
  for (int m = 0; m < 2; m++) require(start[chunks][m] == out[m].entries);

  std::vector<std::vector<Element>> values(chunks);
  parallel(exec, chunks, [&](usize c) {
    Distinct distinct(seed);
    usize next[2] = {start[c][0], start[c][1]};
    place_sorted(records, c * chunk_records, std::min(n, (c + 1) * chunk_records), n_columns, next, out, distinct);
    require(next[0] == start[c + 1][0] && next[1] == start[c + 1][1]);
    values[c] = std::move(distinct.values);
  });
  for (int m = 0; m < 2; m++) {
    const usize last = n ? std::min<usize>(record(records, n - 1).row, out[m].rows - 1) : 0;
    out[m].row_start[0] = 0;
    for (usize row = n ? last : 0; row < out[m].rows; row++) out[m].row_start[row + 1] = out[m].entries;
  }

  std::vector<std::vector<u32>> renumber;
  std::vector<Element> all = merge(values, seed, renumber);
  parallel(exec, chunks, [&](usize c) {
    for (int m = 0; m < 2; m++) {
      for (usize i = start[c][m]; i < start[c + 1][m]; i++) out[m].value[i] = renumber[c][out[m].value[i]];
    }
  });
  return all;
}

// Any order, by counting: one thread, since no known writer leaves a file unsorted.
std::vector<Element> gather_unsorted(const u8* records, usize n, u64 n_columns, const CsrOut out[2]) {
  for (int m = 0; m < 2; m++) std::fill_n(out[m].row_start, out[m].rows + 1, u64{0});
  for (usize i = 0; i < n; i++) {
    const Record r = record(records, i);
    require(r.matrix <= 1 && r.row < out[0].rows);
    out[r.matrix].row_start[r.row + 1]++;
  }
  std::vector<u64> next[2];
  for (int m = 0; m < 2; m++) {
    for (usize row = 0; row < out[m].rows; row++) out[m].row_start[row + 1] += out[m].row_start[row];
    require(out[m].row_start[out[m].rows] == out[m].entries);
    next[m].assign(out[m].row_start, out[m].row_start + out[m].rows);
  }
  Distinct distinct(draw_seed());
  for (usize i = 0; i < n; i++) {
    const Record r = record(records, i);
    require(r.matrix <= 1 && r.row < out[0].rows && r.column < n_columns);
    const u64 at = next[r.matrix][r.row]++;
    require(at < out[r.matrix].entries);
    out[r.matrix].column[at] = r.column;
    out[r.matrix].value[at] = distinct.number(load_element(r.value));
  }
  return std::move(distinct.values);
}

}  // namespace

CoefficientScan scan_coefficients(const u8* records, usize n, u64 max_rows, u64 n_columns, const Exec& exec) {
  SNL_SPAN("decode.scan");
  std::vector<CoefficientScan> parts(n_chunks(n, chunk_records));
  parallel(exec, parts.size(), [&](usize c) {
    parts[c] = scan_chunk(records, c * chunk_records, std::min(n, (c + 1) * chunk_records), max_rows, n_columns);
  });
  CoefficientScan total;
  for (const CoefficientScan& part : parts) {
    if (part.fault != Fault::None) return part;
    for (int m = 0; m < 2; m++) total.entries[m] += part.entries[m];
    total.rows = std::max(total.rows, part.rows);
    total.sorted &= part.sorted;
  }
  return total;
}

std::vector<Element> gather_coefficients(const u8* records, usize n, bool sorted, u64 n_columns, const CsrOut out[2],
                                         const Exec& exec) {
  SNL_SPAN("decode.gather");
  require(out[0].rows == out[1].rows && (n == 0 || out[0].rows > 0));
  return sorted ? gather_sorted(records, n, n_columns, out, exec) : gather_unsorted(records, n, n_columns, out);
}

ConstraintScan scan_constraints(const u8* data, usize size, usize rows, u64* const row_start[3]) {
  SNL_SPAN("decode.scan");
  ConstraintScan s;
  for (int m = 0; m < 3; m++) row_start[m][0] = 0;
  for (s.row = 0; s.row < rows; s.row++) {
    for (s.combination = 0; s.combination < 3; s.combination++) {
      const usize left = size - s.offset;
      const u64 count = left < 4 ? 0 : load_u32(data + s.offset);
      if (left < 4 || count > (left - 4) / term_bytes) {
        s.fault = Fault::Truncated;
        s.found = left < 4 ? left : count;
        return s;
      }
      row_start[s.combination][s.row + 1] = row_start[s.combination][s.row] + count;
      s.offset += 4 + count * term_bytes;
    }
  }
  if (s.offset != size) {
    s.fault = Fault::Trailing;
    s.found = size - s.offset;
  }
  return s;
}

std::vector<Element> gather_constraints(const u8* data, usize size, u64 n_columns, const CsrOut out[3],
                                        ConstraintScan& scan, const Exec& exec) {
  SNL_SPAN("decode.gather");
  const usize rows = out[0].rows, chunks = n_chunks(rows, chunk_rows);
  const Element seed = draw_seed();
  std::vector<std::vector<Element>> values(chunks);
  std::mutex fault_lock;
  parallel(exec, chunks, [&](usize c) {
    Distinct distinct(seed);
    for (usize row = c * chunk_rows; row < std::min(rows, (c + 1) * chunk_rows); row++) {
      u64 offset = 12 * row;
      for (int m = 0; m < 3; m++) offset += term_bytes * out[m].row_start[row];
      for (usize m = 0; m < 3; m++) {
        offset += 4;
        for (u64 i = out[m].row_start[row]; i < out[m].row_start[row + 1]; i++, offset += term_bytes) {
          require(i < out[m].entries && offset + term_bytes <= size);
          const u32 column = load_u32(data + offset);
          if (column >= n_columns) {
            std::lock_guard guard(fault_lock);
            if (scan.fault == Fault::None || row < scan.row) scan = {Fault::Column, row, m, offset, column};
            return;
          }
          out[m].column[i] = column;
          out[m].value[i] = distinct.number(load_element(data + offset + 4));
        }
      }
    }
    values[c] = std::move(distinct.values);
  });
  if (scan.fault != Fault::None) return {};
  std::vector<std::vector<u32>> renumber;
  std::vector<Element> all = merge(values, seed, renumber);
  parallel(exec, chunks, [&](usize c) {
    const usize begin = c * chunk_rows, end = std::min(rows, begin + chunk_rows);
    for (int m = 0; m < 3; m++) {
      for (u64 i = out[m].row_start[begin]; i < out[m].row_start[end]; i++) {
        out[m].value[i] = renumber[c][out[m].value[i]];
      }
    }
  });
  return all;
}

}  // namespace snarkline
