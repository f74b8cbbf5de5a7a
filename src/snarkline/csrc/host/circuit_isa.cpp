// Which build of the kernels for circuits runs.
#include <cstring>

#include "kernels.h"
#include "structured.h"
#include "synthesis.h"

namespace snarkline {

#define SNL_TABLES(isa)                                            \
  const StructuredKernels& SNL_JOIN(structured, isa, Bn254)();     \
  const StructuredKernels& SNL_JOIN(structured, isa, Bls12_381)(); \
  const SynthesisKernels& SNL_JOIN(synthesis, isa, Bn254)();       \
  const SynthesisKernels& SNL_JOIN(synthesis, isa, Bls12_381)();
SNL_TABLES(portable)
SNL_TABLES(adx)
SNL_TABLES(ifma)
#undef SNL_TABLES

namespace {

struct Tables {
  const StructuredKernels* structured = nullptr;
  const SynthesisKernels* synthesis = nullptr;
};

Tables find_tables(const char* curve, const char* isa) {
  const bool bn254 = std::strcmp(curve, "bn254") == 0;
  if (!bn254 && std::strcmp(curve, "bls12_381") != 0) return {};
#define SNL_FIND(name)                                                                                        \
  if (std::strcmp(isa, #name) == 0) {                                                                         \
    return bn254 ? Tables{&SNL_JOIN(structured, name, Bn254)(), &SNL_JOIN(synthesis, name, Bn254)()}          \
                 : Tables{&SNL_JOIN(structured, name, Bls12_381)(), &SNL_JOIN(synthesis, name, Bls12_381)()}; \
  }
#if SNL_HAVE_portable
  SNL_FIND(portable)
#endif
#if SNL_HAVE_adx
  SNL_FIND(adx)
#endif
#if SNL_HAVE_ifma
  SNL_FIND(ifma)
#endif
#undef SNL_FIND
  return {};
}

}  // namespace

const StructuredKernels* find_structured_kernels(const char* curve, const char* isa) {
  return find_tables(curve, isa).structured;
}
const SynthesisKernels* find_synthesis_kernels(const char* curve, const char* isa) {
  return find_tables(curve, isa).synthesis;
}

}  // namespace snarkline
