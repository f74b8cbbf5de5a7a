// The Poseidon permutation (Grassi, Khovratovich, Rechberger, Roy, Schofnegger, eprint 2019/458) for one output.
#pragma once

#include <vector>

#include "../common/curves.h"

namespace snarkline {
inline namespace SNL_ISA {

// An instance: x^5 S-boxes, `partial` rounds with one of them between two halves of the `full` rounds. The state is a
// tag and then the inputs.
template <class Fr>
struct Poseidon {
  u32 width, full, partial, output;
  const Fr* tag;
  const Fr* constants;  // width for each round
  const Fr* matrix;     // row by row

  // What circuit/gadgets/poseidon.py writes: the numbers above as field elements, then constants and matrix. False
  // where the lengths do not agree.
  bool read(const Fr* parameters, usize n) {
    if (n < 5) return false;
    const auto number = [&](int i) {
      const auto v = parameters[i].to_canonical();
      return v.limb[1] | v.limb[2] | v.limb[3] ? ~u64{0} : v.limb[0];
    };
    for (int i = 0; i < 4; i++) {
      if (number(i) > 1024) return false;
    }
    width = static_cast<u32>(number(0));
    full = static_cast<u32>(number(1));
    partial = static_cast<u32>(number(2));
    output = static_cast<u32>(number(3));
    tag = parameters + 4;
    constants = parameters + 5;
    matrix = constants + usize{width} * (full + partial);
    return width > 0 && output < width && n == 5 + usize{width} * (full + partial + width);
  }

  Fr hash(const Fr* inputs) const {
    std::vector<Fr> state(width), next(width);
    state[0] = *tag;
    for (u32 i = 1; i < width; i++) state[i] = inputs[i - 1];
    for (u32 round = 0; round < full + partial; round++) {
      const bool is_full = round < full / 2 || round >= full / 2 + partial;
      for (u32 i = 0; i < width; i++) state[i] += constants[usize{round} * width + i];
      for (u32 i = 0; i < (is_full ? width : 1); i++) state[i] = state[i].sqr().sqr() * state[i];
      for (u32 i = 0; i < width; i++) {
        Fr sum = Fr::zero();
        for (u32 j = 0; j < width; j++) sum += matrix[usize{i} * width + j] * state[j];
        next[i] = sum;
      }
      state.swap(next);
    }
    return state[output];
  }
};

}  // namespace SNL_ISA
}  // namespace snarkline
