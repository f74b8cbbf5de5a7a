// The SHA-256 compression function (FIPS 180-4, section 6.2.2), by the processor's instructions where it has them.
#pragma once

#include "../common/int.h"

namespace snarkline {

// The 64 constants of the rounds.
const u32* sha256_constants();
// state = compress(state, block): 8 words and 16 words.
void sha256_compress(u32* state, const u32* block);
// The same on bits: bit k of words[k / 64], 512 of the block and 256 of the state, most significant bit of each 32-bit
// word first. `out` has 256.
void sha256_compress_bits(const u64 (&words)[12], u64 (&out)[4]);

}  // namespace snarkline
