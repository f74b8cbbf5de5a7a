// SHA-256 compression over `ProvingSystem`, constraint for constraint as bellperson's gadget.
#pragma once

#include <array>

#include "synthesis_circuit.h"

namespace snarkline {
inline namespace SNL_ISA {

using Bits32 = std::array<Boolean, 32>;  // least significant first

template <class Fr>
class Sha256Circuit {
 public:
  using Cs = ProvingSystem<Fr>;
  using Lc = LinearCombination<Fr>;

  explicit Sha256Circuit(Cs& cs) : cs_(cs), left_(cs.zero()), right_(cs.zero()) {}

  Boolean alloc_bit(bool value) {
    const Variable v = cs_.alloc([&] { return value ? Fr::one() : Fr::zero(); });
    cs_.enforce([&](Lc lc) { return Lc(std::move(lc).add(Cs::one(), Fr::one()).add(v, -Fr::one())); },
                [&](Lc lc) { return Lc(std::move(lc).add(v, Fr::one())); }, [](Lc lc) { return lc; });
    return Boolean::is(v, value);
  }

  static Bits32 constant_word(u32 value) {
    Bits32 out;
    for (int i = 0; i < 32; i++) out[i] = Boolean::constant(value >> i & 1);
    return out;
  }

  std::array<Bits32, 8> compress(const Boolean* block, const std::array<Bits32, 8>& state, const u32* k) {
    std::vector<Bits32> w(64);
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < 32; j++) w[i][j] = block[32 * i + 31 - j];
    }
    for (int i = 16; i < 64; i++) {
      const Bits32 s0 = xor3(w[i - 15], 7, 18, shifted(w[i - 15], 3));
      const Bits32 s1 = xor3(w[i - 2], 17, 19, shifted(w[i - 2], 10));
      w[i] = sum({w[i - 16], s0, w[i - 7], s1});
    }
    // a and e are sums that are not taken before they are needed.
    std::vector<Bits32> a{state[0]}, e{state[4]};
    Bits32 b = state[1], c = state[2], d = state[3], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
      const Bits32 new_e = total(e);
      std::vector<Bits32> t{h, xor3(new_e, 6, 11, rotated(new_e, 25)), choose(new_e, f, g), constant_word(k[i]), w[i]};
      const Bits32 new_a = total(a);
      std::vector<Bits32> next_a = t, next_e = t;
      next_a.push_back(xor3(new_a, 2, 13, rotated(new_a, 22)));
      next_a.push_back(majority(new_a, b, c));
      next_e.push_back(d);
      h = g, g = f, f = new_e, d = c, c = b, b = new_a;
      a = std::move(next_a);
      e = std::move(next_e);
    }
    a.push_back(state[0]);
    e.push_back(state[4]);
    std::array<Bits32, 8> out;
    out[0] = sum(a);
    out[1] = sum({state[1], b});
    out[2] = sum({state[2], c});
    out[3] = sum({state[3], d});
    out[4] = sum(e);
    out[5] = sum({state[5], f});
    out[6] = sum({state[6], g});
    out[7] = sum({state[7], h});
    flush();
    return out;
  }

 private:
  static Bits32 rotated(const Bits32& x, int n) {
    Bits32 out;
    for (int i = 0; i < 32; i++) out[i] = x[(i + n) % 32];
    return out;
  }
  static Bits32 shifted(const Bits32& x, int n) {
    Bits32 out;
    for (int i = 0; i < 32; i++) out[i] = i + n < 32 ? x[i + n] : Boolean::constant(false);
    return out;
  }
  Bits32 xor3(const Bits32& x, int i, int j, const Bits32& last) {
    const Bits32 p = rotated(x, i), q = rotated(x, j);
    Bits32 first, out;
    for (int n = 0; n < 32; n++) first[n] = exclusive(p[n], q[n]);
    for (int n = 0; n < 32; n++) out[n] = exclusive(first[n], last[n]);
    return out;
  }
  Bits32 choose(const Bits32& e, const Bits32& f, const Bits32& g) {
    Bits32 out;
    for (int n = 0; n < 32; n++) out[n] = choose(e[n], f[n], g[n]);
    return out;
  }
  Bits32 majority(const Bits32& a, const Bits32& b, const Bits32& c) {
    Bits32 out;
    for (int n = 0; n < 32; n++) out[n] = majority(a[n], b[n], c[n]);
    return out;
  }

  Boolean allocated(bool value) {
    return Boolean::is(cs_.alloc([&] { return value ? Fr::one() : Fr::zero(); }), value);
  }
  static bool is(const Boolean& x, bool value) { return x.kind == Boolean::Constant && x.value == value; }
  static bool constant(const Boolean& x) { return x.kind == Boolean::Constant; }
  Lc term(Lc lc, const Boolean& x, const Fr& k) { return Lc(plus(cs_, std::move(lc), x, k)); }

  Boolean exclusive(Boolean x, Boolean y) {
    if (constant(x)) return x.value ? !y : y;
    if (constant(y)) return y.value ? !x : x;
    const bool negated = (x.kind == Boolean::Not) != (y.kind == Boolean::Not);
    if (negated && x.kind == Boolean::Not) std::swap(x, y);
    if (x.kind == Boolean::Not) x = !x;
    if (y.kind == Boolean::Not) y = !y;
    const Boolean out = allocated(x.value != y.value);
    cs_.enforce(
        [&](Lc lc) { return Lc(std::move(lc).add(x.wire(), Fr::one()).add(x.wire(), Fr::one())); },
        [&](Lc lc) { return Lc(std::move(lc).add(y.wire(), Fr::one())); },
        [&](Lc lc) {
          return Lc(std::move(lc).add(x.wire(), Fr::one()).add(y.wire(), Fr::one()).add(out.wire(), -Fr::one()));
        });
    return negated ? !out : out;
  }
  Boolean conjunction(Boolean x, Boolean y) {
    if (is(x, false) || is(y, false)) return Boolean::constant(false);
    if (is(x, true)) return y;
    if (is(y, true)) return x;
    if (x.kind == Boolean::Not && y.kind == Boolean::Is) std::swap(x, y);
    const Boolean out = allocated(x.value && y.value);
    cs_.enforce([&](Lc lc) { return term(std::move(lc), x, Fr::one()); },
                [&](Lc lc) { return term(std::move(lc), y, Fr::one()); },
                [&](Lc lc) { return Lc(std::move(lc).add(out.wire(), Fr::one())); });
    return out;
  }
  // a ? b : c
  Boolean choose(const Boolean& a, const Boolean& b, const Boolean& c) {
    if (constant(a) && constant(b) && constant(c)) return a.value ? b : c;
    if (is(a, false)) return c;
    if (is(b, false)) return conjunction(!a, c);
    if (is(c, false)) return conjunction(a, b);
    if (is(c, true)) return !conjunction(a, !b);
    if (is(b, true)) return !conjunction(!a, !c);
    const Boolean out = allocated(a.value ? b.value : c.value);
    cs_.enforce([&](Lc lc) { return term(term(std::move(lc), b, Fr::one()), c, -Fr::one()); },
                [&](Lc lc) { return term(std::move(lc), a, Fr::one()); },
                [&](Lc lc) { return term(Lc(std::move(lc).add(out.wire(), Fr::one())), c, -Fr::one()); });
    return out;
  }
  Boolean majority(const Boolean& a, const Boolean& b, const Boolean& c) {
    if (constant(a) && constant(b) && constant(c)) return Boolean::constant(a.value + b.value + c.value >= 2);
    if (is(a, false)) return conjunction(b, c);
    if (is(b, false)) return conjunction(a, c);
    if (is(c, false)) return conjunction(a, b);
    if (is(c, true)) return !conjunction(!a, !b);
    if (is(b, true)) return !conjunction(!a, !c);
    if (is(a, true)) return !conjunction(!b, !c);
    const Boolean out = allocated(a.value + b.value + c.value >= 2);
    const Boolean bc = conjunction(b, c);
    cs_.enforce(
        [&](Lc lc) {
          return term(term(term(term(std::move(lc), bc, Fr::one()), bc, Fr::one()), b, -Fr::one()), c, -Fr::one());
        },
        [&](Lc lc) { return term(std::move(lc), a, Fr::one()); },
        [&](Lc lc) { return Lc(term(std::move(lc), bc, Fr::one()).add(out.wire(), -Fr::one())); });
    return out;
  }

  Bits32 total(const std::vector<Bits32>& words) { return words.size() == 1 ? words[0] : sum(words); }
  Bits32 sum(const std::vector<Bits32>& words) {
    u64 value = 0, most = 0;
    bool all_constant = true;
    Lc lc = cs_.zero();
    for (const Bits32& word : words) {
      most += 0xffffffff;
      Fr k = Fr::one();
      for (int i = 0; i < 32; i++, k = k.dbl()) {
        value += u64{word[i].value} << i;
        all_constant = all_constant && constant(word[i]);
        lc = term(std::move(lc), word[i], k);
      }
    }
    if (all_constant) return constant_word(static_cast<u32>(value));
    Lc result = cs_.zero();
    Bits32 out;
    u32 n = 0;
    Fr k = Fr::one();
    for (; most != 0; most >>= 1, n++, k = k.dbl()) {
      const Boolean bit = alloc_bit(value >> n & 1);
      result = Lc(std::move(result).add(bit.wire(), k));
      if (n < 32) out[n] = bit;
    }
    equal(n, lc, result);
    return out;
  }

  // Equalities of n bits are packed into one constraint as long as the field has room.
  void equal(u32 n, const Lc& left, const Lc& right) {
    if (packed_bits_ + n >= 254) flush();
    Fr k = Fr::one();
    for (u32 i = 0; i < packed_bits_; i++) k = k.dbl();
    if (cs_.pool().cures.recycle) {
      left_ = Lc(std::move(left_).add(left, k));
      right_ = Lc(std::move(right_).add(right, k));
    } else {
      left_ = Lc(Lc(left_).add(left, k));
      right_ = Lc(Lc(right_).add(right, k));
    }
    packed_bits_ += n;
  }
  void flush() {
    if (packed_bits_ == 0) return;
    cs_.enforce([&](Lc lc) { return Lc(std::move(lc).add(left_)); },
                [&](Lc lc) { return Lc(std::move(lc).add(Cs::one(), Fr::one())); },
                [&](Lc lc) { return Lc(std::move(lc).add(right_)); });
    left_ = cs_.zero();
    right_ = cs_.zero();
    packed_bits_ = 0;
  }

  Cs& cs_;
  Lc left_, right_;
  u32 packed_bits_ = 0;
};

}  // namespace SNL_ISA
}  // namespace snarkline
