// Kernels over bits of many instances, compiled for several vector lengths and chosen at run time.
#pragma once

#include "structured.h"

namespace snarkline {

struct StoreTile {
  const i8* codes;   // [side][row][64 lanes]
  const u16* sums;   // [side][row]: number of the wide value
  const u64* wide;   // wide value n, lane l: wide + 4 * (n * 64 + l)
  const u64* small;  // field elements of -128 ... 127
  u64* out[3];       // row 0 of the tile in lane 0
  u64 lane_stride;   // rows from one lane to the next
  u32 rows, lanes, sides;
  bool stream;  // past the caches
};

struct LaneKernels {
  const char* name;
  // Runs code over bit slots of `words` (1 or 8) words. An instruction is op | d << 4 and its literals; an ADD is
  // op | n << 4, k, m, n slots, k * m literals.
  void (*run_bits)(const u32* code, const u32* end, u64* slots, u32 words);
  // Adds to sums[g][lane], g < 32, lane < 64, the value of 8 binary digits from digit 8 g on. The stream: the number of
  // digits; per digit its exponent (below 256), the numbers of positive and negative slots (at most 127), and these.
  // Returns the stream's end.
  const u32* (*digit_sums)(const u32* stream, const u64* bits, u32 words, i32 (*sums)[64]);
  // Codes of n rows, [row][64 lanes], and the numbers of wide values. Each row has a header, positive | negative << 8 |
  // constant << 16, and its slots; or 1 << 31 | number. Returns the stream's end.
  const u32* (*row_codes)(const u32* stream, u32 n, const u64* bits, u32 words, i8* codes, u16* sums);
  void (*store_tile)(const StoreTile&);
  // out[lane * lane_stride + row] = codes[row][lane]
  void (*store_codes)(const i8* codes, u32 rows, u32 lanes, i8* out, u64 lane_stride);
  // 64 words: bit j of word i becomes bit i of word j.
  void (*transpose)(u64* block);
  // Bit 0 of 64 words.
  u64 (*low_bits)(const u64* words);
};

// The one for this processor. `find_lanes` knows "base", "avx2" and "avx512"; null where it cannot run.
const LaneKernels& lane_kernels();
const LaneKernels* find_lanes(const char* name);

}  // namespace snarkline
