// Included once per vector length, within a namespace of its own and a target region. LANES_512: 512-bit instructions.

using Word8 = u64 __attribute__((vector_size(64), aligned(8)));
using Bytes = i8 __attribute__((vector_size(64), aligned(1)));

template <class W>
inline __attribute__((always_inline)) W choose(W e, W f, W g) {
  return g ^ (e & (f ^ g));
}
template <class W>
inline __attribute__((always_inline)) W majority(W a, W b, W c) {
  return (a & (b ^ c)) ^ (b & c);
}
template <class W>
inline __attribute__((always_inline)) W parity(W a, W b, W c) {
  return a ^ b ^ c;
}
#if LANES_512
inline __attribute__((always_inline)) Word8 choose(Word8 e, Word8 f, Word8 g) {
  return (Word8)_mm512_ternarylogic_epi64((__m512i)e, (__m512i)f, (__m512i)g, 0xca);
}
inline __attribute__((always_inline)) Word8 majority(Word8 a, Word8 b, Word8 c) {
  return (Word8)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0xe8);
}
inline __attribute__((always_inline)) Word8 parity(Word8 a, Word8 b, Word8 c) {
  return (Word8)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
#endif

template <class W>
void interpret(const u32* p, const u32* end, W* s) {
  W flip[2] = {};
  flip[1] = ~flip[0];
  const auto literal = [&](u32 l) __attribute__((always_inline)) { return s[l >> 1] ^ flip[l & 1]; };
  while (p < end) {
    const u32 d = p[0] >> 4;
    switch (p[0] & 15) {
      case 1:
        s[d] = literal(p[1]) ^ literal(p[2]);
        p += 3;
        break;
      case 2:
        s[d] = literal(p[1]) & literal(p[2]);
        p += 3;
        break;
      case 3:
        s[d] = choose(literal(p[1]), literal(p[2]), literal(p[3]));
        p += 4;
        break;
      case 4:
        s[d] = majority(literal(p[1]), literal(p[2]), literal(p[3]));
        p += 4;
        break;
      case 5:
        s[d] = literal(p[1]);
        p += 2;
        break;
      default: {  // the sum of k words of m literals, n bits of it, rippled through one word after the other
        const u32 n = d, k = p[1], m = p[2], low = m < n ? m : n;
        const u32* slot = p + 3;
        p += 3 + n;
        for (u32 i = 0; i < low; i++) s[slot[i]] = literal(p[i]);
        for (u32 i = low; i < n; i++) s[slot[i]] = flip[0];
        p += m;
        for (u32 j = 1; j < k; j++, p += m) {
          W carry = flip[0];
          for (u32 i = 0; i < low; i++) {
            const W x = s[slot[i]], y = literal(p[i]);
            s[slot[i]] = parity(x, y, carry);
            carry = majority(x, y, carry);
          }
          // The sum of j + 1 words has bit_width(j) bits more than a word.
          u32 top = m;
          for (u32 q = j; q != 0; q >>= 1) top++;
          for (u32 i = low; i < n && i < top; i++) {
            const W x = s[slot[i]];
            s[slot[i]] = x ^ carry;
            carry = x & carry;
          }
        }
      }
    }
  }
}

void run_bits(const u32* code, const u32* end, u64* slots, u32 words) {
  if (words == 1) {
    interpret<u64>(code, end, slots);
  } else {
    interpret<Word8>(code, end, reinterpret_cast<Word8*>(slots));
  }
}

// x + the bits of a word, one to a byte; x - them.
inline __attribute__((always_inline)) Bytes spread(u64 bits) {
#if LANES_512
  return (Bytes)_mm512_movm_epi8(bits);
#elif LANES_256
  // Byte k of the word to the eight bytes from 8 k on, of which each keeps its bit.
  const __m256i low = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i high = _mm256_add_epi8(low, _mm256_set1_epi8(4));
  const __m256i mask = _mm256_set1_epi64x((long long)0x8040201008040201);
  const __m256i word = _mm256_set1_epi64x((long long)bits);
  const __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(word, low), mask);
  const __m256i y = _mm256_and_si256(_mm256_shuffle_epi8(word, high), mask);
  const __m256i both[2] = {_mm256_cmpeq_epi8(x, mask), _mm256_cmpeq_epi8(y, mask)};
  Bytes out;
  std::memcpy(&out, both, 64);
  return out;
#else
  u64 out __attribute__((vector_size(64)));
  for (int i = 0; i < 8; i++) out[i] = (bits >> (8 * i) & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
  return (Bytes)((Bytes)out != (Bytes){});
#endif
}
// The sum of slots, less that of others.
inline __attribute__((always_inline)) Bytes sum_bits(const u32*& p, u32 plus, u32 minus, const u64* bits, u32 words,
                                                     Bytes x) {
  for (; plus != 0; plus--) x -= spread(bits[(usize)*p++ * words]);
  for (; minus != 0; minus--) x += spread(bits[(usize)*p++ * words]);
  return x;
}

const u32* digit_sums(const u32* p, const u64* bits, u32 words, i32 (*sums)[64]) {
  using Halves = short __attribute__((vector_size(128)));
  using Sums = i32 __attribute__((vector_size(256), aligned(4)));
  Halves group = {};
  u32 number = ~u32{0};
  const auto flush = [&]() __attribute__((always_inline)) {
    if (number == ~u32{0}) return;
    Sums* to = reinterpret_cast<Sums*>(sums[number]);
    *to = *to + __builtin_convertvector(group, Sums);
  };
  for (u32 digits = *p++; digits != 0; digits--) {
    const u32 exponent = p[0], plus = p[1], minus = p[2];
    p += 3;
    if (exponent / 8 != number) {
      flush();
      number = exponent / 8;
      group = Halves{};
    }
    // |x| <= 127, so that eight digits are within 127 * 255.
    const Bytes x = sum_bits(p, plus, minus, bits, words, Bytes{});
    group += __builtin_convertvector(x, Halves) << (short)(exponent % 8);
  }
  flush();
  return p;
}

const u32* row_codes(const u32* p, u32 n, const u64* bits, u32 words, i8* codes, u16* sums) {
  for (u32 r = 0; r < n; r++, codes += 64) {
    const u32 header = *p++;
    if (header >> 31) {
      sums[r] = (u16)header;
      *(Bytes*)codes = Bytes{} + wide_code;
      continue;
    }
    *(Bytes*)codes = sum_bits(p, header & 0xff, header >> 8 & 0xff, bits, words, Bytes{} + (i8)(header >> 16));
  }
  return p;
}

template <bool stream>
void store_elements(const StoreTile& t) {
  for (u32 side = 0; side < t.sides; side++) {
    const i8* codes = t.codes + (usize)side * tile_rows * 64;
    for (u32 lane = 0; lane < t.lanes; lane++) {
      u64* out = t.out[side] + 4 * lane * t.lane_stride;
      for (u32 r = 0; r < t.rows; r++, out += 4) {
        const int code = codes[r * 64 + lane];
        const u64* from = code == wide_code ? t.wide + 4 * ((usize)t.sums[side * tile_rows + r] * 64 + lane)
                                            : t.small + 4 * (code + 128);
#if LANES_256
        const __m256i x = _mm256_loadu_si256((const __m256i*)from);
        if (stream) {
          _mm256_stream_si256((__m256i*)out, x);
        } else {
          _mm256_storeu_si256((__m256i*)out, x);
        }
#elif defined(__SSE2__)
        const __m128i x = _mm_loadu_si128((const __m128i*)from), y = _mm_loadu_si128((const __m128i*)(from + 2));
        if (stream) {
          _mm_stream_si128((__m128i*)out, x);
          _mm_stream_si128((__m128i*)(out + 2), y);
        } else {
          _mm_storeu_si128((__m128i*)out, x);
          _mm_storeu_si128((__m128i*)(out + 2), y);
        }
#else
        std::memcpy(out, from, 32);
#endif
      }
    }
  }
}

void store_tile(const StoreTile& t) {
  if (t.stream) {
    store_elements<true>(t);
  } else {
    store_elements<false>(t);
  }
}

// Eight bytes of eight words: byte j of word i becomes byte i of word j (Warren, Hacker's Delight, section 7-3).
inline __attribute__((always_inline)) void transpose_bytes(u64 (&x)[8]) {
  const auto swap = [](u64& a, u64& b, int shift, u64 mask) __attribute__((always_inline)) {
    const u64 t = ((a >> shift) ^ b) & mask;
    a ^= t << shift;
    b ^= t;
  };
  for (int i = 0; i < 4; i++) swap(x[i], x[i + 4], 32, 0x00000000ffffffffu);
  for (int i = 0; i < 8; i += 4) {
    swap(x[i], x[i + 2], 16, 0x0000ffff0000ffffu);
    swap(x[i + 1], x[i + 3], 16, 0x0000ffff0000ffffu);
  }
  for (int i = 0; i < 8; i += 2) swap(x[i], x[i + 1], 8, 0x00ff00ff00ff00ffu);
}

void store_codes(const i8* codes, u32 rows, u32 lanes, i8* out, u64 lane_stride) {
  u32 r = 0;
  for (; r + 8 <= rows; r += 8) {
    for (u32 lane = 0; lane < lanes; lane += 8) {
      u64 x[8];
      for (int i = 0; i < 8; i++) std::memcpy(&x[i], codes + (r + i) * 64 + lane, 8);
      transpose_bytes(x);
      for (u32 i = 0; i < 8 && lane + i < lanes; i++) std::memcpy(out + (lane + i) * lane_stride + r, &x[i], 8);
    }
  }
  for (; r < rows; r++) {
    for (u32 lane = 0; lane < lanes; lane++) out[lane * lane_stride + r] = codes[r * 64 + lane];
  }
}

// Warren, Hacker's Delight, section 7-3.
void transpose(u64* a) {
  u64 mask = 0x00000000ffffffffu;
  for (int j = 32; j != 0; j >>= 1, mask ^= mask << j) {
    for (int k = 0; k < 64; k = ((k | j) + 1) & ~j) {
      const u64 t = ((a[k] >> j) ^ a[k | j]) & mask;
      a[k] ^= t << j;
      a[k | j] ^= t;
    }
  }
}

u64 low_bits(const u64* words) {
  u64 out = 0;
#if LANES_512
  const __m512i one = _mm512_set1_epi64(1);
  for (int i = 0; i < 8; i++) out |= (u64)_mm512_test_epi64_mask(_mm512_loadu_si512(words + 8 * i), one) << (8 * i);
#else
  for (int i = 0; i < 64; i++) out |= (words[i] & 1) << i;
#endif
  return out;
}
