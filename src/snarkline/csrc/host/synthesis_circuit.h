// A circuit that is run constraint by constraint, in the shape of bellperson's: allocation and constraints take
// functions, linear combinations own vectors sorted by variable, and the sums of a constraint are taken at once.
#pragma once

#include <algorithm>
#include <utility>

#include "../common/curves.h"
#include "synthesis.h"

namespace snarkline {
inline namespace SNL_ISA {

struct Variable {
  u32 index;
  bool input;
};

template <class T>
struct CountingAllocator {
  using value_type = T;
  AllocationCount* count;

  T* allocate(usize n) {
    count->allocations++;
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, usize n) {
    count->bytes_freed += n * sizeof(T);
    ::operator delete(p);
  }
  template <class U>
  struct rebind {
    using other = CountingAllocator<U>;
  };
  bool operator==(const CountingAllocator&) const { return true; }
};

// The pool of vectors, and the count of what passes the allocator.
template <class Fr>
class TermPool {
 public:
  struct Term {
    u64 index;
    Fr coefficient;
  };
  using Terms = std::vector<Term, CountingAllocator<Term>>;

  explicit TermPool(const Cures& cures) : cures(cures) {}
  Terms take() {
    if (free_.empty()) return Terms(CountingAllocator<Term>{&count_});
    Terms terms = std::move(free_.back());
    free_.pop_back();
    return terms;
  }
  void give(Terms&& terms) {
    if (!cures.recycle || terms.capacity() == 0) return;
    terms.clear();
    free_.push_back(std::move(terms));
  }
  AllocationCount& count() { return count_; }
  void drop() { free_.clear(); }

  const Cures cures;

 private:
  AllocationCount count_;
  std::vector<Terms> free_;
};

template <class Fr>
class LinearCombination {
 public:
  using Pool = TermPool<Fr>;
  using Term = typename Pool::Term;

  explicit LinearCombination(Pool& pool) : pool_(&pool), inputs_(pool.take()), aux_(pool.take()) {}
  LinearCombination(LinearCombination&&) = default;
  LinearCombination(const LinearCombination& o) : pool_(o.pool_), inputs_(pool_->take()), aux_(pool_->take()) {
    inputs_.assign(o.inputs_.begin(), o.inputs_.end());
    aux_.assign(o.aux_.begin(), o.aux_.end());
  }
  LinearCombination& operator=(LinearCombination&& o) {
    std::swap(inputs_, o.inputs_);
    std::swap(aux_, o.aux_);
    std::swap(last_, o.last_);
    return *this;
  }
  ~LinearCombination() {
    pool_->give(std::move(inputs_));
    pool_->give(std::move(aux_));
  }

  LinearCombination&& add(Variable v, const Fr& k) && {
    insert(v, k);
    return std::move(*this);
  }
  LinearCombination&& add(const LinearCombination& o, const Fr& k) && {
    for (const Term& t : o.inputs_) insert({static_cast<u32>(t.index), true}, t.coefficient * k);
    for (const Term& t : o.aux_) insert({static_cast<u32>(t.index), false}, t.coefficient * k);
    return std::move(*this);
  }
  LinearCombination&& add(const LinearCombination& o) && {
    for (const Term& t : o.inputs_) insert({static_cast<u32>(t.index), true}, t.coefficient);
    for (const Term& t : o.aux_) insert({static_cast<u32>(t.index), false}, t.coefficient);
    return std::move(*this);
  }
  void insert(Variable v, const Fr& k) {
    auto& terms = v.input ? inputs_ : aux_;
    u32& last = last_[v.input];
    // Variables mostly come in order: that costs no search.
    if (terms.empty() || terms.back().index < v.index) {
      last = static_cast<u32>(terms.size());
      terms.push_back({v.index, k});
      return;
    }
    if (last < terms.size() && terms[last].index == v.index) {
      terms[last].coefficient += k;
      return;
    }
    if (last + 1 < terms.size() && terms[last + 1].index == v.index) {
      terms[++last].coefficient += k;
      return;
    }
    const auto at =
        std::lower_bound(terms.begin(), terms.end(), v.index, [](const Term& t, u64 index) { return t.index < index; });
    last = static_cast<u32>(at - terms.begin());
    if (at != terms.end() && at->index == v.index) {
      at->coefficient += k;
    } else {
      terms.insert(at, {v.index, k});
    }
  }
  const typename Pool::Terms& inputs() const { return inputs_; }
  const typename Pool::Terms& aux() const { return aux_; }

 private:
  Pool* pool_;
  typename Pool::Terms inputs_, aux_;
  u32 last_[2] = {};
};

template <class Fr>
class ProvingSystem {
 public:
  using Lc = LinearCombination<Fr>;

  explicit ProvingSystem(const Cures& cures) : pool_(cures) { push(out_.inputs, Fr::one()); }

  static constexpr Variable one() { return {0, true}; }
  TermPool<Fr>& pool() { return pool_; }
  Lc zero() { return Lc(pool_); }

  template <class Value>
  Variable alloc(const Value& value) {
    push(out_.aux, value());
    out_.a_density.push_back(false);
    out_.b_density.push_back(false);
    return {static_cast<u32>(out_.aux.size() / 4) - 1, false};
  }
  template <class A, class B, class C>
  void enforce(const A& a, const B& b, const C& c) {
    const Lc left = a(zero()), right = b(zero()), product = c(zero());
    push(out_.a, sum(left, &out_.a_density));
    push(out_.b, sum(right, &out_.b_density));
    push(out_.c, sum(product, nullptr));
  }
  std::unique_ptr<Assignment> finish() {
    pool_.drop();
    out_.count = pool_.count();
    return std::make_unique<Assignment>(std::move(out_));
  }

 private:
  static constexpr usize ahead = 8;

  static void push(std::vector<u64>& to, const Fr& x) { to.insert(to.end(), x.v.limb, x.v.limb + 4); }
  Fr sum(const Lc& lc, std::vector<bool>* density) const {
    Fr total = Fr::zero();
    for (const auto& t : lc.inputs())
      add(total, t.coefficient, reinterpret_cast<const Fr*>(out_.inputs.data())[t.index]);
    const Fr* w = reinterpret_cast<const Fr*>(out_.aux.data());
    const auto& terms = lc.aux();
    for (usize i = 0; i < terms.size(); i++) {
      if (pool_.cures.prefetch && i + ahead < terms.size()) __builtin_prefetch(w + terms[i + ahead].index);
      add(total, terms[i].coefficient, w[terms[i].index]);
      if (density != nullptr) (*density)[terms[i].index] = true;
    }
    return total;
  }
  static void add(Fr& total, const Fr& coefficient, const Fr& value) {
    total += coefficient == Fr::one() ? value : coefficient * value;
  }

  TermPool<Fr> pool_;
  Assignment out_;
};

// A wire that is a bit, its negation, or a constant.
struct Boolean {
  enum Kind : u8 { Constant, Is, Not } kind = Constant;
  bool value = false;  // of the Boolean
  u32 variable = 0;

  static Boolean constant(bool value) { return {Constant, value, 0}; }
  static Boolean is(Variable v, bool value) { return {Is, value, v.index}; }
  Boolean operator!() const { return {kind == Is ? Not : kind == Not ? Is : Constant, !value, variable}; }
  Variable wire() const { return {variable, false}; }
};

// lc + k * bit, by a combination of its own or directly.
template <class Fr>
LinearCombination<Fr>&& plus(ProvingSystem<Fr>& cs, LinearCombination<Fr>&& lc, const Boolean& bit, const Fr& k) {
  const auto into = [&](LinearCombination<Fr>& to) {
    if (bit.kind == Boolean::Not || (bit.kind == Boolean::Constant && bit.value)) to.insert(cs.one(), k);
    if (bit.kind != Boolean::Constant) to.insert(bit.wire(), bit.kind == Boolean::Not ? -k : k);
  };
  if (cs.pool().cures.add_to_lc) {
    into(lc);
    return std::move(lc);
  }
  LinearCombination<Fr> own = cs.zero();
  into(own);
  return std::move(lc).add(own);
}

}  // namespace SNL_ISA
}  // namespace snarkline
