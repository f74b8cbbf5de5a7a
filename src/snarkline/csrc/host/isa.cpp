#include "isa.h"

namespace snarkline {

const std::vector<std::string>& instruction_sets() {
  static const std::vector<std::string> sets = [] {
    std::vector<std::string> found;
#if SNL_HAVE_portable
    found.push_back("portable");
#endif
#if SNL_HAVE_adx || SNL_HAVE_ifma
    // __builtin_cpu_supports includes the operating system's part: that it saves the AVX-512 registers.
    __builtin_cpu_init();
    const bool adx = __builtin_cpu_supports("adx") && __builtin_cpu_supports("bmi2");
    const bool ifma = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512ifma");
#if SNL_HAVE_adx
    if (adx) found.push_back("adx");
#endif
#if SNL_HAVE_ifma
    if (adx && ifma) found.push_back("ifma");
#endif
#endif
    return found;
  }();
  return sets;
}

const CurveKernels* find_kernels(const std::string& curve, const std::string& isa) {
  const bool bn254 = curve == "bn254";
  if (!bn254 && curve != "bls12_381") return nullptr;
#if SNL_HAVE_portable
  if (isa == "portable") return bn254 ? &table_portable_Bn254() : &table_portable_Bls12_381();
#endif
#if SNL_HAVE_adx
  if (isa == "adx") return bn254 ? &table_adx_Bn254() : &table_adx_Bls12_381();
#endif
#if SNL_HAVE_ifma
  if (isa == "ifma") return bn254 ? &table_ifma_Bn254() : &table_ifma_Bls12_381();
#endif
  return nullptr;
}

}  // namespace snarkline
