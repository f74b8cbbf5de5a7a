// Instances of templates (host/structured.h): their values, and the wires that their ports read.
#pragma once

#include "../common/records.h"
#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

using Fr = SNL_CURVE::Fr;

constexpr u32 warp_size = 32, all_lanes = ~0u;

// A run and its template. Its ports' wiring begins at `first_wiring`, or its table at `table`.
struct Run {
  u64 count, first_wire, bits, wides, table;
  u32 words, n_aux, n_bits, n_wides, first_column, n_ports, first_port, first_wiring, has_table, unused;
};
struct Place {
  u32 header, slot;
};
struct Wiring {
  u64 base, stride;
};
// Where an instance's values are: bit `shift` of words[slot * bit_stride], and wides[slot * wide_stride].
struct Instance {
  u32* words;
  Fr* wides;
  u32 bit_stride, wide_stride, shift;

  SNL_DEVICE Instance(const Run& run, u64 i, u32* bits, Fr* elements) {
    const u64 group = i / 64 * 64, batch = i / 64 / run.words, word = i / 64 % run.words;
    words = bits + 2 * (run.bits + batch * run.n_bits * run.words + word) + i / 32 % 2;
    bit_stride = 2 * run.words;
    shift = static_cast<u32>(i % 32);
    wide_stride = static_cast<u32>(run.count - group < 64 ? run.count - group : 64);
    wides = elements + run.wides + group * run.n_wides + i % 64;
  }
  // Other threads of the warp set bits in between.
  SNL_DEVICE bool bit(u32 slot) const {
    return *const_cast<const volatile u32*>(words + u64{slot} * bit_stride) >> shift & 1;
  }
  SNL_DEVICE void set(u32 slot) const { atomicOr(words + u64{slot} * bit_stride, 1u << shift); }
  SNL_DEVICE Fr* wide(u32 slot) const { return wides + u64{slot} * wide_stride; }
};

// Where wires are. `places` are those of columns and of ports.
struct Wires {
  const Run* runs;
  u32 n_before;  // runs whose values are there
  const Place* places;
  const Wiring* wiring;
  const u32* tables;
  u64 n_public;

  SNL_DEVICE u64 of_port(const Run& run, u64 i, u32 port) const {
    if (run.has_table) return tables[run.table + i * run.n_ports + port];
    const Wiring w = wiring[run.first_wiring + port];
    return w.base + i * w.stride;
  }
  // Calls `at(instance, place)` for a wire that is not public.
  template <class At>
  SNL_DEVICE auto find(u64 wire, u32* bits, Fr* wides, const At& at) const {
    u32 low = 0, high = n_before;  // the last run that begins at the wire or before
    while (high - low > 1) {
      const u32 middle = (low + high) / 2;
      (runs[middle].first_wire <= wire ? low : high) = middle;
    }
    const Run& run = runs[low];
    const u32 offset = static_cast<u32>(wire - run.first_wire);
    const Instance from(run, offset / run.n_aux, bits, wides);
    return at(from, places[run.first_column + offset % run.n_aux]);
  }
  SNL_DEVICE Fr value(u64 wire, const Fr* publics, u32* bits, Fr* wides) const {
    if (wire <= n_public) return load(publics + wire);
    return find(wire, bits, wides, [](const Instance& from, const Place& place) {
      if (place.header & is_wide) return load(from.wide(place.slot));
      return from.bit(place.slot) ? Fr::one() : Fr::zero();
    });
  }
  // Of a wire that is a bit.
  SNL_DEVICE bool bit(u64 wire, const Fr* publics, u32* bits, Fr* wides) const {
    if (wire <= n_public) return !load(publics + wire).is_zero();
    return find(wire, bits, wides, [](const Instance& from, const Place& place) {
      return place.header & is_wide ? !load(from.wide(place.slot)).is_zero() : from.bit(place.slot);
    });
  }
};

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
