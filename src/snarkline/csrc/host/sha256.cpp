#include "sha256.h"

#include <bit>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace snarkline {
namespace {

alignas(16) constexpr u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress_plain(u32* h, const u32* m) {
  u32 w[64], s[8];
  for (int i = 0; i < 16; i++) w[i] = m[i];
  for (int i = 16; i < 64; i++) {
    const u32 a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const u32 b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  for (int i = 0; i < 8; i++) s[i] = h[i];
  for (int i = 0; i < 64; i++) {
    const u32 e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const u32 a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const u32 t = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
    const u32 u = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    for (int k = 7; k > 0; k--) s[k] = s[k - 1];
    s[4] += t;
    s[0] = t + u;
  }
  for (int i = 0; i < 8; i++) h[i] += s[i];
}

#if defined(__x86_64__)
// Gulley, Gopal, Yap, Feghali, Guilford, Wolrich, "Intel SHA extensions" (Intel, 2013): two rounds an instruction, the
// state as ABEF and CDGH.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(u32* h, const u32* m) {
  const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)h), 0xb1);  // BADC, as words 3 to 0: CDAB
  const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i*)(h + 4)), 0x1b);  // EFGH
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i abef0 = abef, cdgh0 = cdgh;
  __m128i w[4];
  for (int i = 0; i < 4; i++) w[i] = _mm_loadu_si128((const __m128i*)(m + 4 * i));
  for (int i = 0; i < 16; i++) {
    const __m128i now = w[i & 3];
    const __m128i k = _mm_add_epi32(now, _mm_load_si128((const __m128i*)(K + 4 * i)));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
    // w[t] for the four rounds 16 later: s0(w[t - 15]) + w[t - 16], + w[t - 7], s1 of the last two.
    const __m128i next = w[(i + 1) & 3], last = w[(i + 3) & 3];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
    w[i & 3] = _mm_sha256msg2_epu32(sum, last);
  }
  abef = _mm_add_epi32(abef, abef0);
  cdgh = _mm_add_epi32(cdgh, cdgh0);
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i*)h, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128((__m128i*)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_ni() {
  u32 a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}
#endif

u32 reverse_bits(u32 x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  return __builtin_bswap32(x);
}

}  // namespace

const u32* sha256_constants() { return K; }

void sha256_compress(u32* state, const u32* block) {
#if defined(__x86_64__)
  static const bool fast = has_sha_ni();
  if (fast) {
    compress_sha_ni(state, block);
    return;
  }
#endif
  compress_plain(state, block);
}

void sha256_compress_bits(const u64 (&words)[12], u64 (&out)[4]) {
  u32 in[24];
  for (int i = 0; i < 24; i++) in[i] = reverse_bits(static_cast<u32>(words[i / 2] >> (i % 2 ? 32 : 0)));
  sha256_compress(in + 16, in);
  for (int i = 0; i < 4; i++) {
    out[i] = reverse_bits(in[16 + 2 * i]) | static_cast<u64>(reverse_bits(in[17 + 2 * i])) << 32;
  }
}

}  // namespace snarkline
