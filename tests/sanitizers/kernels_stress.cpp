// The kernels of one curve and the decoders, for a run under a sanitizer: every kernel is called on sizes at the edges,
// by two threads at once that each use three, and what comes out is held against laws that it must obey; the decoders
// are given damaged bytes. Exits with 0 if all laws hold.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "decode.h"
#include "kernels.h"
#include "check.h"

using namespace snarkline;

namespace snarkline {
const CurveKernels& SNL_KERNELS(table)();
}

namespace {

using Words = std::vector<u64>;
constexpr usize kFr = 4;

const CurveKernels& curve = SNL_KERNELS(table)();
const FieldKernels& fr = curve.fr;
const Exec exec{3, {}};

// Canonical elements of Fr: the edges first, then numbers below 2^252.
Words scalars(usize n, std::mt19937_64& rng) {
  Words out(n * kFr);
  for (usize i = 0; i < n; ++i)
    for (usize k = 0; k < kFr; ++k) out[i * kFr + k] = k == 3 ? rng() >> 4 : rng();
  for (usize i = 0; i < n && i < 3; ++i) {
    std::fill_n(&out[i * kFr], kFr, 0);
    if (i == 1) out[i * kFr] = 1;
    if (i == 2) std::memcpy(&out[i * kFr], fr.modulus, sizeof(u64) * kFr), out[i * kFr] -= 1;
  }
  return out;
}

Words montgomery(Words v) {
  fr.from_canonical(v.data(), v.data(), v.size() / kFr, exec);
  return v;
}

Words canonical(Words v) {
  fr.to_canonical(v.data(), v.data(), v.size() / kFr, exec);
  return v;
}

Words apply(Op op, const Words& a, const Words& b) {
  Words out(a.size());
  fr.pointwise(op, out.data(), a.data(), b.data(), b.size() == a.size() ? 1 : 0, a.size() / kFr, exec);
  return out;
}

Words sum(const Words& v) {  // of Montgomery elements
  Words total(kFr, 0);
  for (usize i = 0; i < v.size(); i += kFr) total = apply(Op::Add, total, Words(&v[i], &v[i] + kFr));
  return total;
}

// generator^((r - 1) / 2^log_n), Montgomery form.
Words root_of_unity(int log_n) {
  Words exponent(fr.modulus, fr.modulus + kFr);
  exponent[0] -= 1;
  Words result = montgomery({1, 0, 0, 0});
  const Words base = montgomery({fr.generator, 0, 0, 0});
  for (int bit = 255; bit >= log_n; --bit) {
    result = apply(Op::Mul, result, result);
    if (exponent[static_cast<usize>(bit) / 64] >> (bit % 64) & 1) result = apply(Op::Mul, result, base);
  }
  return result;
}

void check_field(std::mt19937_64& rng) {
  for (const usize n : {1, 2, 3, 7, 8, 9, 1000}) {
    const Words a = scalars(n, rng), b = scalars(n, rng), am = montgomery(a), bm = montgomery(b);
    CHECK(canonical(am) == a && fr.first_not_below_modulus(a.data(), n, exec) == npos);
    CHECK(apply(Op::Sub, apply(Op::Add, am, bm), bm) == am);
    Words inverse = am;
    fr.batch_inverse(inverse.data(), n, exec);
    CHECK(apply(Op::Mul, apply(Op::Mul, am, inverse), am) == am);
    Words zero(n * kFr, 0), product = apply(Op::Mul, am, bm), out(n * kFr);
    curve.mul_sub(out.data(), am.data(), bm.data(), product.data(), n, exec);
    CHECK(out == zero);
    Words large = a;
    std::memcpy(&large[(n - 1) * kFr], fr.modulus, sizeof(u64) * kFr);
    CHECK(fr.first_not_below_modulus(large.data(), n, exec) == n - 1);
  }
}

void check_ntt(std::mt19937_64& rng) {
  for (int log_n = 0; log_n <= 11; ++log_n) {
    const usize n = usize{1} << log_n;
    const Words v = montgomery(scalars(n, rng)), root = root_of_unity(log_n), shift = montgomery({7, 0, 0, 0});
    Words inverse = shift, w = v;
    fr.batch_inverse(inverse.data(), 1, exec);
    for (const u64* by : {static_cast<const u64*>(nullptr), shift.data()}) {
      curve.ntt(w.data(), log_n, root.data(), by, false, exec);
      if (by == nullptr) CHECK(Words(w.begin(), w.begin() + kFr) == sum(v));
      curve.ntt(w.data(), log_n, root.data(), by, true, exec);
      CHECK(w == v);
    }
    curve.coset_evaluations(w.data(), log_n, root.data(), shift.data(), exec);
    curve.coset_evaluations(w.data(), log_n, root.data(), inverse.data(), exec);
    CHECK(w == v);
  }
}

void check_sparse(std::mt19937_64& rng) {
  const usize rows = 700, columns = 90, entries = 2000;
  const Words coefficients = montgomery(scalars(11, rng)), w = scalars(columns, rng),
              v = montgomery(scalars(rows, rng));
  Words start(rows + 1, 0);
  for (usize i = 0; i < entries; ++i) ++start[1 + rng() % rows];
  for (usize i = 0; i < rows; ++i) start[i + 1] += start[i];
  std::vector<u32> column(entries), value(entries);
  for (u32& c : column) c = static_cast<u32>(rng() % columns);
  for (u32& c : value) c = static_cast<u32>(rng() % 11);
  const SparseView m{rows, columns, entries, start.data(), column.data(), value.data(), coefficients.data(), 11};
  Words product(rows * kFr), same(rows * kFr), transposed(columns * kFr);
  const Words wm = montgomery(w);
  curve.spmv(product.data(), m, w.data(), Form::Canonical, exec);
  curve.spmv(same.data(), m, wm.data(), Form::Montgomery, exec);
  curve.spmv_transposed(transposed.data(), m, v.data(), exec);
  CHECK(product == same);
  CHECK(sum(apply(Op::Mul, product, v)) == sum(apply(Op::Mul, transposed, wm)));
}

usize point_words(Group g) { return static_cast<usize>(curve.fp.limbs) * (g == Group::G1 ? 2 : 4); }

Words multiples(Group g, const Words& s) {
  Words out(s.size() / kFr * point_words(g));
  curve.fixed_base(g, out.data(), curve.generator(g), s.data(), s.size() / kFr, exec);
  return out;
}

void check_points(Group g, std::mt19937_64& rng, std::initializer_list<usize> sizes) {
  for (const usize n : sizes) {
    const Words s = scalars(n, rng), t = scalars(n, rng), tm = montgomery(t);
    Words points = multiples(g, s), found(2 * point_words(g));
    const MsmJob jobs[] = {{g, points.data(), found.data()}, {g, points.data(), found.data() + point_words(g)}};
    const Words expected = multiples(g, canonical(sum(apply(Op::Mul, montgomery(s), tm))));
    for (const bool in_montgomery : {false, true}) {
      curve.msm(jobs, 2, in_montgomery ? tm.data() : t.data(), n, in_montgomery, exec);
      CHECK(Words(found.begin(), found.begin() + static_cast<long>(point_words(g))) == expected);
      CHECK(Words(found.begin() + static_cast<long>(point_words(g)), found.end()) == expected);
    }
    CHECK(curve.first_bad_point(g, points.data(), n, n < 100, exec) == npos);
    points[(n - 1) * point_words(g)] ^= 2;
    CHECK(curve.first_bad_point(g, points.data(), n, false, exec) == n - 1);
  }
}

void check_pairing(std::mt19937_64& rng) {
  const Words a = scalars(4, rng), b = scalars(4, rng);
  const Words negated = canonical(apply(Op::Sub, Words(4 * kFr, 0), apply(Op::Mul, montgomery(a), montgomery(b))));
  Words p = multiples(Group::G1, a), q = multiples(Group::G2, b), one(4 * kFr, 0);
  for (usize i = 0; i < 4; ++i) one[i * kFr] = 1;
  const Words more_p = multiples(Group::G1, negated), more_q = multiples(Group::G2, one);
  CHECK(!curve.pairing_product_is_one(&p[3 * point_words(Group::G1)], &q[3 * point_words(Group::G2)], 1, exec));
  p.insert(p.end(), more_p.begin(), more_p.end());
  q.insert(q.end(), more_q.begin(), more_q.end());
  CHECK(curve.pairing_product_is_one(p.data(), q.data(), 8, exec));
  Words out(12 * static_cast<usize>(curve.fp.limbs));
  curve.pairing(out.data(), p.data(), q.data(), exec);
}

void damage(std::vector<u8>& data, std::mt19937_64& rng) {
  for (u64 i = rng() % 4; i > 0 && !data.empty(); --i) data[rng() % data.size()] = static_cast<u8>(rng());
  if (rng() % 4 == 0) data.resize(rng() % (data.size() + 1));
}

// As the readers of .zkey files call it. Every array is as long as the scan says, to the element.
void check_coefficients(std::mt19937_64& rng) {
  const u64 max_rows = 64, columns = 50;
  std::vector<u8> data(300 * coefficient_bytes);
  for (usize i = 0; i < 300; ++i) {
    const u32 head[3] = {static_cast<u32>(rng() % 2), static_cast<u32>(rng() % max_rows),
                         static_cast<u32>(rng() % columns)};
    std::memcpy(&data[i * coefficient_bytes], head, sizeof head);
    data[i * coefficient_bytes + 12] = static_cast<u8>(rng() % 5);
  }
  for (int round = 0; round < 300; ++round) {
    std::vector<u8> changed = data;
    damage(changed, rng);
    const usize n = changed.size() / coefficient_bytes;
    const CoefficientScan scan = scan_coefficients(changed.data(), n, max_rows, columns, exec);
    if (scan.fault != Fault::None) continue;
    Words starts[2] = {Words(scan.rows + 1), Words(scan.rows + 1)};
    std::vector<u32> indices[4];
    CsrOut out[2];
    for (usize m = 0; m < 2; ++m) {
      indices[2 * m].resize(scan.entries[m]), indices[2 * m + 1].resize(scan.entries[m]);
      out[m] = {starts[m].data(), indices[2 * m].data(), indices[2 * m + 1].data(), scan.rows, scan.entries[m]};
    }
    if (round % 3 == 0) damage(changed, rng), changed.resize(n * coefficient_bytes);  // the file changes meanwhile
    try {
      const auto values = gather_coefficients(changed.data(), n, scan.sorted, columns, out, exec);
      for (usize m = 0; m < 2; ++m) {
        CHECK(starts[m][scan.rows] == scan.entries[m]);
        for (const u32 v : indices[2 * m + 1]) CHECK(v < values.size());
        for (const u32 c : indices[2 * m]) CHECK(c < columns);
      }
    } catch (const Torn&) {
    }
  }
}

void check_constraints(std::mt19937_64& rng) {
  const u64 columns = 40;
  const usize rows = 60;
  std::vector<u8> data;
  const auto put = [&](u32 v) { data.insert(data.end(), reinterpret_cast<u8*>(&v), reinterpret_cast<u8*>(&v) + 4); };
  for (usize i = 0; i < 3 * rows; ++i) {
    const u32 n = static_cast<u32>(rng() % 4);
    put(n);
    for (u32 k = 0; k < n; ++k) {
      put(static_cast<u32>(rng() % columns));
      data.resize(data.size() + 31);
      data.push_back(static_cast<u8>(rng() % 3));
    }
  }
  for (int round = 0; round < 300; ++round) {
    std::vector<u8> changed = data;
    damage(changed, rng);
    Words starts[3] = {Words(rows + 1), Words(rows + 1), Words(rows + 1)};
    u64* const firsts[3] = {starts[0].data(), starts[1].data(), starts[2].data()};
    if (scan_constraints(changed.data(), changed.size(), rows, firsts).fault != Fault::None) continue;
    std::vector<u32> indices[6];
    CsrOut out[3];
    for (usize m = 0; m < 3; ++m) {
      const usize entries = starts[m][rows];
      indices[2 * m].resize(entries), indices[2 * m + 1].resize(entries);
      out[m] = {starts[m].data(), indices[2 * m].data(), indices[2 * m + 1].data(), rows, entries};
    }
    const usize size = changed.size();
    if (round % 3 == 0) damage(changed, rng), changed.resize(size);
    ConstraintScan scan;
    try {
      const auto values = gather_constraints(changed.data(), size, columns, out, scan, exec);
      if (scan.fault == Fault::None)
        for (usize m = 0; m < 3; ++m)
          for (const u32 v : indices[2 * m + 1]) CHECK(v < values.size());
    } catch (const Torn&) {
    }
  }
}

void check_interrupt(std::mt19937_64& rng) {
  const Words s = scalars(40'000, rng);
  Words out(s.size() / kFr * point_words(Group::G1));
  bool interrupted = false;
  try {
    curve.fixed_base(Group::G1, out.data(), curve.generator(Group::G1), s.data(), s.size() / kFr,
                     {3, [] { return true; }});
  } catch (const Interrupted&) {
    interrupted = true;
  }
  CHECK(interrupted);
}

void check_everything(u64 seed) {
  std::mt19937_64 rng(seed);
  check_coefficients(rng);
  check_constraints(rng);
  check_field(rng);
  check_ntt(rng);
  check_sparse(rng);
  check_points(Group::G1, rng, {1, 2, 3, 31, 300, 3000});
  check_points(Group::G2, rng, {1, 2, 3, 300});
  check_pairing(rng);
  check_interrupt(rng);
}

}  // namespace

int main() {
  std::thread other(check_everything, 2);
  check_everything(1);
  other.join();
  std::printf("%s ok\n", curve.name);
}
