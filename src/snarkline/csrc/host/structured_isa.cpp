// Which build of the structured kernels runs.
#include <cstring>

#include "kernels.h"
#include "structured.h"

namespace snarkline {

#define SNL_TABLES(isa)                                        \
  const StructuredKernels& SNL_JOIN(structured, isa, Bn254)(); \
  const StructuredKernels& SNL_JOIN(structured, isa, Bls12_381)();
SNL_TABLES(portable)
SNL_TABLES(adx)
SNL_TABLES(ifma)
#undef SNL_TABLES

const StructuredKernels* find_structured_kernels(const char* curve, const char* isa) {
  const bool bn254 = std::strcmp(curve, "bn254") == 0;
  if (!bn254 && std::strcmp(curve, "bls12_381") != 0) return nullptr;
  const auto is = [&](const char* name) { return std::strcmp(isa, name) == 0; };
  (void)is;
#if SNL_HAVE_portable
  if (is("portable")) return bn254 ? &structured_portable_Bn254() : &structured_portable_Bls12_381();
#endif
#if SNL_HAVE_adx
  if (is("adx")) return bn254 ? &structured_adx_Bn254() : &structured_adx_Bls12_381();
#endif
#if SNL_HAVE_ifma
  if (is("ifma")) return bn254 ? &structured_ifma_Bn254() : &structured_ifma_Bls12_381();
#endif
  return nullptr;
}

}  // namespace snarkline
