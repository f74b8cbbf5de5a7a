// From here to ifma_end.h: code that may use AVX-512 IFMA, in translation units for SNL_ISA_ifma. No standard header
// may be included in between.
#if SNL_ISA_ifma
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,bmi2,adx")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC's own _mm512_undefined_epi32()
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
