#include "fold.h"

#include "isa.h"

namespace snarkline {

Fold find_fold(const std::string& curve) {
  const bool bn254 = curve == "bn254";
  if (!bn254 && curve != "bls12_381") return nullptr;
  const std::string& isa = instruction_sets().back();
#if SNL_HAVE_ifma
  if (isa == "ifma") return bn254 ? fold_ifma_Bn254 : fold_ifma_Bls12_381;
#endif
#if SNL_HAVE_adx
  if (isa == "adx") return bn254 ? fold_adx_Bn254 : fold_adx_Bls12_381;
#endif
#if SNL_HAVE_portable
  if (isa == "portable") return bn254 ? fold_portable_Bn254 : fold_portable_Bls12_381;
#endif
  return nullptr;
}

}  // namespace snarkline
