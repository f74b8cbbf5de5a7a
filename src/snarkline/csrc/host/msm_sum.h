// Sums of points by key: the work of one task of an MSM. All sums advance together, one point each, by batched affine
// additions.
#pragma once

#include "msm_batch.h"

#include <algorithm>
#include <vector>

#include "ifma_begin.h"

namespace snarkline {
inline namespace SNL_ISA {

// entry[i] goes to the sum of key[i].
struct KeyedEntries {
  const Entry* entry;
  const Key* key;
  usize n;
};

template <class C>
class KeyedSums {
 public:
  using R = Rows<C>;
  using Adder = BatchAdder<C>;
  using V = typename Adder::V;
  using F = typename V::Scalar;

  // out[k], a row in the lanes' form, is the sum over the entries of key k < n_keys, or infinity. With an endomorphism
  // (x, y) -> (beta x, y), keys 2k and 2k + 1 both go to out[k], and the sum of the odd key passes through it: on the
  // few sums, not on the many points. `finite`, if not null, has a bit for each row of the table that is not infinity,
  // and the others are passed over; without it no row may be infinity. A row in the ordinary form is read once.
  template <RowForm form>
  void sum(const u64* table, KeyedEntries entries, usize n_keys, const F* beta, const u64* finite, u64* out) {
    if (finite) entries = without_infinity(entries, finite);
    const usize n_sums = beta ? n_keys / 2 : n_keys;
    std::fill(out, out + n_sums * R::limbs, 0);
    for (bool done = level<form>(table, entries, n_keys, beta, out); !done;) {
      // The parts of a key's sum become entries of that key.
      std::swap(rows_, part_rows_);
      next_entries_.clear();
      next_keys_.clear();
      for (usize p = 0; p < part_key_.size(); p++) {
        if (part_key_[p] == dropped) continue;
        next_entries_.push_back((Entry)p);
        next_keys_.push_back(part_key_[p]);
      }
      done = level<RowForm::Lanes>(rows_.data(), {next_entries_.data(), next_keys_.data(), next_keys_.size()}, n_sums,
                                   nullptr, out);
    }
  }

 private:
  static constexpr Key dropped = 0xffff;
  // Accumulators that share an inversion: with fewer, its cost (that of some 60 additions of eight lanes) shows.
  static constexpr usize wanted_parts = 2048;
  static constexpr int most_part_bits = 4;
  static_assert((1 << most_part_bits) <= Adder::most_additions + 1);

  KeyedEntries without_infinity(KeyedEntries in, const u64* finite) {
    finite_entries_.resize(in.n);
    finite_keys_.resize(in.n);
    usize n = 0;
    for (usize i = 0; i < in.n; i++) {
      const Entry row = in.entry[i] & ~subtracted;
      finite_entries_[n] = in.entry[i];
      finite_keys_[n] = in.key[i];
      n += finite[row / 64] >> (row % 64) & 1;
    }
    return {finite_entries_.data(), finite_keys_.data(), n};
  }

  // Cuts every key's entries into parts and sums up each part: to out if no sum has two parts (then returns true), else
  // to part_rows_, with its sum's number in part_key_.
  template <RowForm form>
  bool level(const u64* table, KeyedEntries entries, usize n_keys, const F* beta, u64* out) {
    plan(entries, n_keys);
    arrange(entries);
    for (usize step = 0; step < active_.size(); step++) {
      const Entry* list = list_.data() + offset_[step];
      if (step == 0) adder_.template start<form>(table, list, active_[step]);
      if (step > 0) adder_.template add<form>(table, list, active_[step]);
    }
    const bool single = name_parts(n_keys, beta != nullptr);
    emit(beta, single, out);
    return single;
  }

  // Parts of at most 2^part_bits_ entries each, numbered by key, and their rank by falling length: the parts that have
  // a point for step s are then the first active_[s].
  void plan(KeyedEntries entries, usize n_keys) {
    part_bits_ = 2;
    while (part_bits_ < most_part_bits && (wanted_parts << part_bits_) < entries.n) part_bits_++;
    const u32 most = u32{1} << part_bits_;
    count_.assign(n_keys, 0);
    for (usize i = 0; i < entries.n; i++) count_[entries.key[i]]++;

    first_part_.resize(n_keys + 1);
    u32 of_length[(1 << most_part_bits) + 1] = {};
    u32 parts = 0;
    for (usize k = 0; k < n_keys; k++) {
      first_part_[k] = parts;
      parts += (count_[k] + most - 1) >> part_bits_;
      of_length[most] += count_[k] >> part_bits_;
      if (count_[k] & (most - 1)) of_length[count_[k] & (most - 1)]++;
    }
    first_part_[n_keys] = parts;

    active_.clear();
    offset_.clear();
    u32 position[(1 << most_part_bits) + 1];
    u32 longer = 0, total = 0;
    for (u32 length = most; length > 0; length--) {
      position[length] = longer;
      longer += of_length[length];
    }
    for (u32 step = 0; step < most; step++) {
      const u32 live = position[step + 1] + of_length[step + 1];
      if (live == 0) break;
      active_.push_back(live);
      offset_.push_back(total);
      total += live;
    }
    rank_.resize(parts);
    part_at_.resize(parts);
    for (usize k = 0; k < n_keys; k++) {
      for (u32 p = first_part_[k], left = count_[k]; p < first_part_[k + 1]; p++, left -= std::min(left, most)) {
        rank_[p] = position[std::min(left, most)]++;
        part_at_[rank_[p]] = p;
      }
    }
  }

  // The entries in the order in which they are added: by step, then by rank of the part.
  void arrange(KeyedEntries entries) {
    list_.resize(entries.n + Adder::padding);
    std::fill(list_.begin() + entries.n, list_.end(), 0);
    for (usize i = entries.n; i-- > 0;) {
      const u32 place = --count_[entries.key[i]];
      const u32 part = first_part_[entries.key[i]] + (place >> part_bits_);
      list_[offset_[place & ((1 << part_bits_) - 1)] + rank_[part]] = entries.entry[i];
    }
    adder_.reserve(rank_.size());
  }

  // part_key_ for all parts, before the endomorphism's halves are joined; true if no sum will have two parts.
  bool name_parts(usize n_keys, bool endomorphism) {
    part_key_.resize(rank_.size());
    bool single = true;
    for (usize k = 0; k < n_keys; k++) {
      for (u32 p = first_part_[k]; p < first_part_[k + 1]; p++) part_key_[p] = (Key)k;
      single = single && first_part_[k + 1] - first_part_[k] <= 1;
      if (endomorphism && k % 2 == 1) single = single && first_part_[k + 1] - first_part_[k - 1] <= 1;
    }
    return single;
  }

  // The parts' sums to out or to part_rows_.
  void emit(const F* beta, bool to_out, u64* out) {
    const usize parts = rank_.size();
    part_rows_.resize((parts + 1) * R::limbs);
    u64* nowhere = part_rows_.data() + parts * R::limbs;
    const V lanes_beta = V::wide(beta ? *beta : F::one());
    for (usize s = 0; s * Adder::lanes < parts; s++) {
      typename R::Point p = adder_.sum(s);
      u64* row[Adder::lanes];
      u8 odd = 0;
      for (usize i = 0; i < Adder::lanes; i++) {
        row[i] = nowhere;
        const usize rank = s * Adder::lanes + i;
        if (rank >= parts) continue;
        const u32 part = part_at_[rank];
        Key& key = part_key_[part];
        if (beta) {
          odd |= (u8)((key & 1) << i);
          key >>= 1;
        }
        row[i] = to_out ? out + usize{key} * R::limbs : part_rows_.data() + usize{part} * R::limbs;
        if (adder_.infinite(s) >> i & 1) key = dropped;
      }
      if (odd) p.x = under_endomorphism(p.x, odd, lanes_beta);
      R::store(p, adder_.infinite(s), row);
    }
  }
  static C under_endomorphism(const C& x, u8 lanes, const V& beta) {
    const C image = Coordinate<C>::mul_base(x, beta);
    return Coordinate<C>::map([=](const V& a, const V& b) { return V::select(lanes, a, b); }, image, x);
  }

  Adder adder_;
  int part_bits_ = 0;
  std::vector<u32> count_, first_part_;  // by key
  std::vector<u32> rank_;                // by part
  std::vector<Key> part_key_;            // by part
  std::vector<u32> part_at_;             // by rank
  std::vector<u32> active_, offset_;     // by step: accumulators that take a point; where the step's entries begin
  std::vector<Entry> list_;
  std::vector<u64> part_rows_, rows_;
  std::vector<Entry> next_entries_, finite_entries_;
  std::vector<Key> next_keys_, finite_keys_;
};

}  // namespace SNL_ISA
}  // namespace snarkline

#include "ifma_end.h"
